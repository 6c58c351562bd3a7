// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/transport"
)

const (
	// readBuffer holds two of the largest messages. A link gets such a buffer when
	// firstBuffer is too small.
	readBuffer  = 2 * (msgHead + eagerLimit)
	firstBuffer = 16 << 10
	// If less than tailLeast is free behind the input, the input is moved to the front.
	tailLeast = msgHead + eagerLimit
	// headRead is the size of a read while bulk data is expected: enough for frame heads, and
	// little to copy if data follows.
	headRead = 4 << 10
	// turnBytes bounds what one link moves in one direction in a Poll.
	turnBytes = 1 << 20
)

var (
	errEOF  = errors.New("end of input")
	errDead = errors.New("reported dead")
)

// input is the input of a link that was not delivered yet.
type input struct {
	buf       []byte
	r, w      int     // buf[r:w] is not parsed; delivered payloads lie before r
	bulk      *bulkIn // transfer of the current data frame
	left      int     // bytes of the current data frame that are still to come
	lastTurn  uint64  // Transport.turn of the last payload delivered from buf
	checkTurn uint64  // lastTurn at the last Check
	queued    bool    // in Transport.ready
	endErr    error   // why no more input will come
}

// requeue gives l another turn in the next Poll.
func (t *Transport) requeue(l *link) {
	if !l.queued {
		l.queued = true
		t.ready = append(t.ready, l)
	}
}

// read reads and delivers the input of a link. At the end of the input it ends the peer.
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
			// Other links must get a turn, or payloads fill the buffer.
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

// ended ends a peer whose connection is over and whose input is all delivered.
func (t *Transport) ended(l *link) {
	p := l.peer
	where := "between"
	if l.w > l.r || l.left > 0 {
		where = "inside"
	}
	t.fail(p, fmt.Errorf("%w: process %v: the connection ended %s frames: %w", transport.ErrPeerGone, p.proc, where, l.endErr))
}

// grow gives l a buffer of full size. Delivered payloads stay in the old one.
func (l *link) grow() {
	b := make([]byte, readBuffer)
	l.w = copy(b, l.buf[l.r:l.w])
	l.r, l.buf = 0, b
}

var _ transport.Checker = (*Transport)(nil)

// Check implements transport.Checker. A link without a message since the last Check goes back to
// a small buffer.
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

// fill reads once, about limit bytes at most. full says that there may be more. The error is
// EAGAIN if there is no input; any other error means that the link has ended.
func (t *Transport) fill(l *link, limit int) (n int, full bool, err error) {
	if l.w == len(l.buf) && len(l.buf) < readBuffer {
		l.grow()
	}
	// Payloads that were delivered in this Poll must not move.
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

// parse delivers all complete frames. It returns false if it stopped because Poll takes no more
// events.
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
