// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/transport"
)

const (
	// readBuffer holds a whole message and as much again; a link has it once
	// it needs more than firstBuffer.
	readBuffer  = 2 * (msgHead + eagerLimit)
	firstBuffer = 16 << 10
	// tailLeast: with less room behind the input, it is moved to the front.
	tailLeast = msgHead + eagerLimit
	// headRead is what a read takes while bulk data is expected: enough for
	// frame heads, little to copy if data follows.
	headRead = 4 << 10
	// turnBytes is the most that one link moves in one direction in a Poll.
	turnBytes = 1 << 20
)

var (
	errEOF  = errors.New("end of input")
	errDead = errors.New("reported dead")
)

// input is what has come over a link and is not delivered.
type input struct {
	buf       []byte
	r, w      int     // buf[r:w] is not parsed; before r lie delivered payloads
	bulk      *bulkIn // whose data comes next
	left      int     // bytes of the current data frame to come
	lastTurn  uint64  // Transport.turn in which a payload in buf was delivered
	checkTurn uint64  // turn at the last Check
	queued    bool    // in Transport.ready
	endErr    error   // why no more will come
}

// again asks for another turn for l in the next Poll.
func (t *Transport) requeue(l *link) {
	if !l.queued {
		l.queued = true
		t.ready = append(t.ready, l)
	}
}

// read takes what a link holds, delivers it and ends the peer at its end.
func (t *Transport) read(l *link) {
	p := l.peer
	drained := false
	for budget := turnBytes; ; {
		whole, err := t.parse(l)
		if err != nil {
			err = fmt.Errorf("process %v: %w", p.proc, err)
			if errors.Is(err, transport.ErrCut) {
				t.fail(p, err)
			} else {
				t.cut(p, err)
			}
			return
		}
		switch {
		case !whole:
			t.requeue(l)
			return
		case l.endErr != nil:
			t.ended(l)
			return
		case drained && !p.expired:
			return
		case budget <= 0, l.left == 0 && l.w == len(l.buf) && l.lastTurn == t.turn && len(l.buf) == readBuffer:
			// Enough for others to wait, or payloads fill the buffer.
			t.requeue(l)
			return
		}
		n, full, err := t.fill(l, budget)
		switch {
		case err == nil:
			budget -= n
			drained = !full
			if p.expired {
				if p.remaining -= n; p.remaining <= 0 {
					l.endErr = errDead
				}
			}
		case err != unix.EAGAIN:
			l.endErr = err
		case p.writeErr != nil:
			l.endErr = p.writeErr
		case p.expired:
			l.endErr = errDead
		default:
			return
		}
	}
}

// ended: the connection is over and everything in it is delivered.
func (t *Transport) ended(l *link) {
	p := l.peer
	where := "between"
	if l.w > l.r || l.left > 0 {
		where = "inside"
	}
	t.fail(p, fmt.Errorf("%w: process %v: the connection ended %s frames: %w", transport.ErrPeerGone, p.proc, where, l.endErr))
}

// grow gives l its full buffer. Delivered payloads stay in the old one.
func (l *link) grow() {
	b := make([]byte, readBuffer)
	l.w = copy(b, l.buf[l.r:l.w])
	l.r, l.buf = 0, b
}

var _ transport.Checker = (*Transport)(nil)

// Check implements transport.Checker: a link over which no message has come since the last Check
// gives its full buffer back.
func (t *Transport) Check() {
	for _, l := range t.links {
		if l == nil || len(l.buf) < readBuffer {
			continue
		}
		if l.lastTurn == l.checkTurn && l.r == l.w {
			l.buf, l.r, l.w = make([]byte, firstBuffer), 0, 0
		}
		l.checkTurn = l.lastTurn
	}
}

// fill reads once, at most about limit bytes. full: there may be more. The
// error is EAGAIN if there is nothing, else the link has ended.
func (t *Transport) fill(l *link, limit int) (n int, full bool, err error) {
	if l.w == len(l.buf) && len(l.buf) < readBuffer {
		l.grow()
	}
	// Payloads delivered in this Poll must stay where they are.
	if l.lastTurn != t.turn && l.r > 0 && (l.r == l.w || len(l.buf)-l.w < tailLeast) {
		l.w = copy(l.buf, l.buf[l.r:l.w])
		l.r = 0
	}
	var e unix.Errno
	want := 0
	if l.left > 0 {
		rest := l.bulk.buf[l.bulk.got:][:min(l.left, limit)]
		t.vec.add(rest)
		if len(rest) == l.left {
			t.vec.add(l.buf[l.w:min(l.w+dataHead, len(l.buf))])
		}
		want = t.vec.bytes
		n, e = t.vec.recv(l.fd)
		direct := min(n, len(rest))
		l.bulk.got += direct
		l.left -= direct
		l.w += n - direct
		if l.left == 0 && e == 0 && n > 0 {
			t.bulkTaken(l)
		}
	} else {
		space := l.buf[l.w:]
		if len(l.peer.recvs) > 0 && len(space) > headRead && l.w == l.r {
			space = space[:headRead]
		}
		want = len(space)
		n, e = recv(l.fd, space)
		l.w += n
	}
	switch {
	case e == unix.EAGAIN || e == unix.EINTR:
		return 0, false, unix.EAGAIN
	case e != 0:
		return 0, false, e
	case n == 0:
		return 0, false, errEOF
	}
	return n, n == want, nil
}

// parse delivers the frames that are whole. It reports false if it stopped
// because Poll takes no more events.
func (t *Transport) parse(l *link) (whole bool, err error) {
	p := l.peer
	for {
		if l.left > 0 {
			n := copy(l.bulk.buf[l.bulk.got:][:l.left], l.buf[l.r:l.w])
			l.r += n
			l.bulk.got += n
			l.left -= n
			if l.left > 0 {
				return true, nil
			}
			t.bulkTaken(l)
		}
		b := l.buf[l.r:l.w]
		if len(b) < frameHead {
			return true, nil
		}
		h, err := decodeHead(b)
		if err != nil {
			return true, err
		}
		size := frameHead + h.body
		if h.kind == kindData {
			size = dataHead
		}
		if len(b) < size {
			return true, nil
		}
		if h.kind == kindMsg && !t.room() {
			return false, nil
		}
		if h.seq != p.taken+1 {
			return true, fmt.Errorf("%w: frame %d follows frame %d", transport.ErrProtocol, h.seq, p.taken)
		}
		if h.ack < p.acked || h.ack > p.sent {
			return true, fmt.Errorf("%w: frame %d acknowledges %d, sent are %d, acknowledged %d",
				transport.ErrProtocol, h.seq, h.ack, p.sent, p.acked)
		}
		p.taken, p.acked = h.seq, h.ack
		if l.slotsInUse > 0 {
			t.reclaim(l)
		}
		l.r += size
		switch h.kind {
		case kindMsg:
			l.lastTurn = t.turn
			t.emit(p, transport.Event{Kind: transport.EvRecv,
				Header: getHeader(b[frameHead:]), Payload: b[msgHead:size:size]})
		case kindAccept:
			err = t.takeAccept(p, b)
		case kindRefuse:
			err = t.takeRefuse(p, b)
		case kindCut:
			err = transport.ErrCut
		case kindData:
			n := h.body - (dataHead - frameHead)
			if l.bulk, err = p.takeData(b, n); err == nil {
				if l.left = n; n == 0 {
					t.bulkTaken(l)
				}
			}
		}
		if err != nil {
			return true, err
		}
	}
}
