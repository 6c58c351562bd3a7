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

// failGrace is how long a dead process's connection may take to end. The kernel of the dead
// process ends it at once; only the connection of a dead host takes longer.
const failGrace = 50 * time.Millisecond

type peerState uint8

const (
	peerDialing  peerState = iota // there is no link yet
	peerUp                        // the link carries frames
	peerDown                      // EvDown was reported, or waits in Transport.pending
	peerReleased                  // the slot may belong to another peer
)

// peer is the state of one slot. The Transport owns it.
type peer struct {
	state peerState
	slot  transport.Slot
	proc  wire.ProcID

	addrs    []string
	nextAddr int
	redials  int
	dialled  bool // a dial has started
	dialErr  error
	retry    retry.Retry
	redialAt time.Duration // time of the next dial, since Transport.start

	link  *link
	spare *link // parked: authenticated, for use when link ends

	sent  uint64 // sequence number of the last frame that was sent or queued
	acked uint64 // sequence number of the last frame that the peer has taken
	taken uint64 // sequence number of the last frame taken from the peer

	out      output
	writeErr error // the link accepts no more output
	refused  bool  // Send answered Full, so the peer is owed an EvWritable

	bulks

	failing   bool // Fail was called
	expired   bool // failGrace is over
	remaining int  // bytes that the link held at that time; they are still delivered
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

// emit adds an event to the running Poll, or keeps it for the next one.
func (t *Transport) emit(p *peer, e transport.Event) {
	if p.state == peerReleased {
		return
	}
	if e.Token == 0 && (e.Kind == transport.EvSent || e.Kind == transport.EvBulk) {
		return // token 0: nobody waits for the answer
	}
	e.Slot = p.slot
	if t.room() {
		t.events[t.emitted] = e
		t.emitted++
		return
	}
	t.pending = append(t.pending, e)
}

// room reports whether the running Poll takes another event. Pending events come first: while
// there are any, there is no room.
func (t *Transport) room() bool { return t.emitted < len(t.events) && len(t.pending) == 0 }

// fail ends a peer: it answers all operations, then reports EvDown.
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

// cut ends a peer and tells it. The link then lingers, like the link of a released peer.
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

// Fail implements transport.Transport. The news of a death may arrive before the last bytes of
// the process, so the transport waits a short time for the end of the connection.
func (t *Transport) Fail(s transport.Slot) {
	p := t.at(s)
	if p.failing || p.state == peerDown {
		return
	}
	p.failing = true
	t.failing = append(t.failing, p)
}

// startFailing starts the wait that Fail has asked for.
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
	if spare != nil { // the peer has already connected again
		t.introduce(spare)
	}
}

// linger ends a link in an orderly way without blocking: flush, shut down, read to the end. The
// close of a socket with unread input resets the connection, and the reset may overtake the
// last output.
func (t *Transport) linger(p *peer) {
	l := p.link
	l.state = linkLingering
	t.up--
	t.lingering++
	if t.direct == l {
		t.stopDirect()
	}
	l.bulk, l.buf = nil, nil // payloads in the old buffer stay valid
	t.setDeadline(l, t.opt.LingerTimeout)
	t.pump(p)
	t.discard(l)
}

// discard advances a lingering link.
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
