// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Send implements transport.Transport. It never queues a payload with token 0 in place: it copies
// the payload, or answers Full.
func (t *Transport) Send(s transport.Slot, h *wire.Header, b []byte, tok transport.Token) transport.Status {
	p := t.at(s)
	if len(b) > t.opt.EagerMax {
		panic(fmt.Sprintf("gompi: BUG: tcp: payload of %d bytes, EagerMax is %d", len(b), t.opt.EagerMax))
	}
	if p.state == peerDown || p.writeErr != nil {
		return transport.Broken
	}
	if p.state != peerUp || !p.out.empty() {
		if p.out.full() {
			p.refused = true
			return transport.Full
		}
		t.putMsg(p, h, len(b))
		t.copyIn(&p.out, t.scratch[:msgHead])
		return t.queue(p, b, tok)
	}
	t.putMsg(p, h, len(b))
	var n int
	var e unix.Errno
	if len(b) <= copyMax {
		n, e = send(p.link.fd, t.scratch[:msgHead+copy(t.scratch[msgHead:], b)])
	} else {
		t.vec.add(t.scratch[:msgHead])
		t.vec.add(b)
		n, e = t.vec.send(p.link.fd, false)
	}
	if n == msgHead+len(b) {
		return transport.Sent
	}
	if e != 0 && !isTransient(e) {
		t.writeFailed(p, e)
		return transport.Broken
	}
	t.block(p.link)
	if n < msgHead {
		t.copyIn(&p.out, t.scratch[n:msgHead])
	}
	return t.queue(p, b[max(0, n-msgHead):], tok)
}

// putMsg numbers a message and writes its head into scratch.
func (t *Transport) putMsg(p *peer, h *wire.Header, payload int) {
	p.sent++
	putHead(t.scratch[:], head{kind: kindMsg, body: wire.HeaderBytes + payload, seq: p.sent, ack: p.taken})
	putHeader(t.scratch[frameHead:], h)
}

// queue appends the rest of a message's payload to the output.
func (t *Transport) queue(p *peer, b []byte, tok transport.Token) transport.Status {
	if len(b) <= copyMax || tok == 0 {
		t.copyIn(&p.out, b)
		return transport.Sent
	}
	p.out.push(segment{b: b, tok: tok})
	p.out.refs++
	return transport.Queued
}

// isTransient reports whether the call may work later.
func isTransient(e unix.Errno) bool {
	return e == unix.EAGAIN || e == unix.EINTR || e == unix.ENOBUFS || e == unix.ENOMEM
}

// writeFailed records that a link takes no more output. Input of the peer may still be there to
// read; the peer ends when that has ended.
func (t *Transport) writeFailed(p *peer, err error) {
	p.writeErr = err
	t.requeue(p.link)
}

// block makes the next send wait for EPOLLOUT.
func (t *Transport) block(l *link) {
	t.setBlocked(l, true)
	t.setInterest(l, unix.EPOLLIN|unix.EPOLLOUT)
}

// write passes the front of a link's output to the kernel. want is the number of bytes it offered.
func (t *Transport) write(l *link) (n, want int, e unix.Errno) {
	p := l.peer
	d := &t.splicer
	if q := &p.out.segments[p.out.first]; d.owner != l && len(q.b) > 0 && t.copiedBytes(l, q) == 0 {
		d.stage(l, q, p.sent)
	}
	if d.owner == l {
		want = d.pipeBytes
		n, e = d.send()
		return n, want, e
	}
	more := t.gather(l, &p.out)
	want = t.vec.bytes
	n, e = t.vec.send(l.fd, more)
	return n, want, e
}

// pump sends queued output, and a bounded part of the bulk transfers.
func (t *Transport) pump(p *peer) {
	l := p.link
	if l == nil || l.state != linkUp && l.state != linkLingering || l.blocked || p.writeErr != nil {
		return
	}
	for budget := turnBytes; ; {
		if p.out.empty() && !t.nextChunk(p) {
			if l.interest&unix.EPOLLOUT != 0 {
				t.setInterest(l, unix.EPOLLIN)
			}
			break
		}
		if budget <= 0 {
			t.requeue(l)
			break
		}
		n, want, e := t.write(l)
		if e != 0 && !isTransient(e) {
			t.writeFailed(p, e)
			return
		}
		t.consume(p, n)
		budget -= n
		if n < want {
			t.block(l)
			break
		}
	}
	if p.refused && p.out.drained() {
		p.refused = false
		t.emit(p, transport.Event{Kind: transport.EvWritable})
	}
}
