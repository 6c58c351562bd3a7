// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/retry"
	"gompi/internal/base/wire"
	"gompi/transport"
)

// failGrace is how long a dead process's connection may take to end. Its
// kernel ends it at once; only that of a dead host does not.
const failGrace = 50 * time.Millisecond

type peerState uint8

const (
	peerDialing  peerState = iota // no link stands yet
	peerUp                        // link stands
	peerDown                      // EvDown is told or waits in Transport.pending
	peerReleased                  // its slot is no longer its own
)

// peer is one slot. Its owner is the Transport.
type peer struct {
	state peerState
	slot  transport.Slot
	proc  wire.ProcID

	addrs    []string
	nextAddr int
	redials  int
	dialled  bool // a dial has begun
	dialErr  error
	retry    retry.Retry
	redialAt time.Duration // when to dial again, since Transport.start

	link  *link
	spare *link // parked: proven, to be used when link ends

	sent  uint64 // frames sent or queued; the last one's seq
	acked uint64 // of these, known to have arrived
	taken uint64 // frames taken; the last one's seq

	out      output
	writeErr error // the link takes no more
	refused  bool  // Send said Full, so EvWritable is owed

	bulks

	failing   bool // Fail was called
	expired   bool // and its time is up
	remaining int  // bytes that lay in the link then, and are still delivered
}

// newPeer gives a process the next free slot.
func (t *Transport) newPeer(proc wire.ProcID) *peer {
	p := &peer{proc: proc, state: peerDialing}
	if k := len(t.freeSlots); k > 0 {
		p.slot = t.freeSlots[k-1]
		t.freeSlots = t.freeSlots[:k-1]
		t.peers[p.slot] = p
	} else {
		p.slot = transport.Slot(len(t.peers))
		t.peers = append(t.peers, p)
	}
	t.byProc[proc] = p
	return p
}

// at returns the peer of a slot that the engine holds.
func (t *Transport) at(s transport.Slot) *peer {
	if int(s) >= len(t.peers) || t.peers[s] == nil {
		panic(fmt.Sprintf("gompi: BUG: tcp slot %d is not in use", s))
	}
	return t.peers[s]
}

// emit hands an event to the Poll under way, or keeps it for the next.
func (t *Transport) emit(p *peer, e transport.Event) {
	if p.state == peerReleased {
		return
	}
	if e.Token == 0 && (e.Kind == transport.EvSent || e.Kind == transport.EvBulk) {
		return // nobody waits for the answer
	}
	e.Slot = p.slot
	if t.room() {
		t.events[t.emitted] = e
		t.emitted++
		return
	}
	t.pending = append(t.pending, e)
}

// room reports whether the Poll under way takes another event. While events
// are pending none may overtake them.
func (t *Transport) room() bool { return t.emitted < len(t.events) && len(t.pending) == 0 }

// fail ends a peer: everything it was to answer is answered, then EvDown.
func (t *Transport) fail(p *peer, err error) {
	if p.state == peerDown || p.state == peerReleased {
		return
	}
	t.dropLink(p)
	for !p.out.empty() {
		t.retire(p)
	}
	t.endBulks(p, err)
	p.state = peerDown
	p.refused = false
	t.emit(p, transport.Event{Kind: transport.EvDown, Err: err})
}

// Cut implements transport.Transport.
func (t *Transport) Cut(s transport.Slot, why error) { t.cut(t.at(s), why) }

// cut ends a peer and tells it: its link goes on as that of a released one.
func (t *Transport) cut(p *peer, why error) {
	if l := p.link; p.state == peerUp && p.writeErr == nil {
		q := &peer{state: peerReleased, proc: p.proc, link: l, sent: p.sent, taken: p.taken, out: t.takeOver(p)}
		l.peer, p.link = q, nil
		var f [cutSize]byte
		t.control(q, kindCut, f[:])
		t.linger(q)
	}
	t.fail(p, why)
}

// dropLink closes a peer's link, if it has one.
func (t *Transport) dropLink(p *peer) {
	if l := p.link; l != nil {
		p.link = nil
		t.closeLink(l)
	}
}

// Fail implements transport.Transport. The news may be faster than the last
// bytes, so the end of the connection is awaited a short while.
func (t *Transport) Fail(s transport.Slot) {
	p := t.at(s)
	if p.failing || p.state == peerDown {
		return
	}
	p.failing = true
	t.failing = append(t.failing, p)
}

// startFailing begins what Fail has asked for.
func (t *Transport) startFailing() {
	for _, p := range t.failing {
		if p.spare != nil {
			t.closeLink(p.spare)
			p.spare = nil
		}
		if p.state == peerUp {
			t.setDeadline(p.link, failGrace)
			t.read(p.link)
		} else {
			t.fail(p, fmt.Errorf("%w: process %v: %w", transport.ErrPeerGone, p.proc, errDead))
		}
	}
	clear(t.failing)
	t.failing = t.failing[:0]
}

// Release implements transport.Transport.
func (t *Transport) Release(s transport.Slot) {
	p := t.at(s)
	spare := p.spare
	p.spare = nil
	t.pending = slices.DeleteFunc(t.pending, func(e transport.Event) bool { return e.Slot == s })
	t.failing = slices.DeleteFunc(t.failing, func(q *peer) bool { return q == p })
	up := p.state == peerUp
	p.state = peerReleased
	p.bulks = bulks{}
	delete(t.byProc, p.proc)
	t.peers[s] = nil
	t.freeSlots = append(t.freeSlots, s)
	if up {
		t.linger(p)
	} else {
		t.dropLink(p)
	}
	if spare != nil { // it has called again already
		t.introduce(spare)
	}
}

// linger ends a link in good order without waiting: flush, shut down, read to
// the end. A socket closed with unread input resets the connection, and the
// reset may overtake what we sent last.
func (t *Transport) linger(p *peer) {
	l := p.link
	l.state = linkLingering
	t.up--
	t.lingering++
	if t.direct == l {
		t.stopDirect()
	}
	l.bulk, l.buf = nil, nil // what was delivered from buf stays as it is
	t.setDeadline(l, t.opt.LingerTimeout)
	t.pump(p)
	t.discard(l)
}

// discard moves a lingering link on.
func (t *Transport) discard(l *link) {
	p := l.peer
	if p.out.empty() && !l.shut {
		l.shut = true
		if err := unix.Shutdown(l.fd, unix.SHUT_WR); err != nil {
			t.dropLink(p)
			return
		}
	}
	if p.writeErr != nil {
		t.dropLink(p)
		return
	}
	for budget := turnBytes; budget > 0; {
		n, e := recv(l.fd, t.scratch[:])
		if e == unix.EAGAIN || e == unix.EINTR {
			return
		}
		if n == 0 {
			t.dropLink(p)
			return
		}
		budget -= n
	}
}
