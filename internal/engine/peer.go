// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/internal/credit"
	"gompi/internal/fault"
	"gompi/internal/match"
	"gompi/internal/retry"
	"gompi/internal/ring"
	"gompi/internal/wire"
	"gompi/transport"
)

type peerState uint8

const (
	peerNew        peerState = iota // never spoken to
	peerConnecting                  // a goroutine fetches its contact
	peerUp
	peerEnding // its connection has ended; what came by its other contact is yet to be seen
	peerLost   // its connection has ended, and the control plane has yet to say why
	peerDown
)

// Peer is another process (or this one) as the engine sees it.
type Peer struct {
	proc   wire.ProcID
	link   *link
	slot   transport.Slot
	state  peerState
	full   bool              // the transport refused; EvWritable will come
	slow   bool              // full, or sends lie aside
	box    transport.FastBox // its messages alone; nil if not known
	dying  bool              // the control plane says that it has ended; EvDown will come
	broken bool              // this process gives the connection up; EvDown will come
	why    error             // of that, or of EvDown
	down   *fault.Fault
	listed bool // in e.blocked

	// other is a second contact, of messages that come in: the peer and this
	// process have begun one at the same time, by transports of which one of them
	// cannot use the first. nil: none.
	other     *link
	otherSlot transport.Slot

	credit        credit.Pair
	announcements ring.List[arrival] // that nobody has received
	tight         bool               // in flow.tight
	filledBy      wire.ContextID     // who has most of these, once it was told that it gets no more
	filler        wire.ContextID     // whose messages fill the receiver

	ctl    []ctlFrame // control frames, before all else
	tells  bool       // receives wait until these have left: see received
	frames frameQueue // of remote memory, before sends
	parts  []byte     // of a frame that comes in parts
	sends  sendQueue
	// stalled are earlier sends than those of the same communicator in sends.
	stalled sendQueue

	out streamList // sends that the peer has pulled, oldest first
	in  streamList // receives that have pulled

	ping uint64 // of one that is lost, or cannot be answered

	ops ring.List[Request] // see Request.hang
}

// ctlFrame is a frame of the engine itself; its payload is want, if that is
// not 0.
type ctlFrame struct {
	h    wire.Header
	want int64
}

// ready reports whether a message may go to the transport at once: the link
// stands, and nothing waits in front of it.
func (p *Peer) ready() bool {
	return p.state == peerUp && p.sends.first == nil && !p.slow && len(p.ctl) == 0
}

func (p *Peer) hasQueued() bool {
	return p.sends.first != nil || p.stalled.first != nil || len(p.ctl) > 0 || p.frames.first != nil || p.out.first != nil
}

// peerOf returns the record of a process, making it on first use. That of one
// whose end was told is not kept.
func (e *Engine) peerOf(proc wire.ProcID) *Peer {
	if p := e.peers[proc]; p != nil {
		return p
	}
	if d := e.dead[proc]; d != nil {
		return &Peer{proc: proc, state: peerDown, down: d.fault()}
	}
	p := &Peer{proc: proc}
	e.credit.Start(&p.credit)
	if proc == e.cfg.Self {
		p.link, p.state = e.links[0], peerUp
		p.link.setPeer(0, p)
	}
	e.peers[proc] = p
	return p
}

// connect starts to make contact; the queue is pumped when it stands.
func (e *Engine) connect(p *Peer) {
	p.state = peerConnecting
	go func() {
		var r retry.Retry
		for !e.connected(p, &r) {
			time.Sleep(r.Pause())
		}
	}()
}

// connected is an attempt to make contact. false: it may do a little later.
func (e *Engine) connected(p *Peer, r *retry.Retry) bool {
	c, err := e.cfg.Control.Contact(p.proc)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || p.state != peerConnecting {
		if err == nil {
			closeContact(c)
		}
		return true
	}
	if err == nil {
		err = e.attach(p, c)
	}
	switch {
	case err == nil || p.dying && p.link != nil:
	case !p.dying && (errors.Is(err, errAnswering) || r.Worth(err)):
		return false
	case p.link == nil:
		e.linkDown(p, err)
	default:
		// The peer has made the link. If it has ended since, its messages come
		// first, then EvDown.
		p.why = err
		e.suspect(p)
	}
	e.cfg.Sleeper.Wake()
	return true
}

// attach connects p by the first transport that can reach it; by none before
// that by which it has reached this process.
func (e *Engine) attach(p *Peer, c wire.Contact) error {
	var failed error
	for _, l := range e.links[max(1, slices.Index(e.links, p.link)):] {
		if l.caps.Local && !c.SameHost {
			continue
		}
		s, err := l.Connect(c)
		if err == nil {
			e.bind(p, l, s)
			if p.dying {
				l.Fail(s)
			}
			e.pump(p)
			return nil
		}
		c.Segment, c.Bell = -1, -1 // were Connect's
		failed = errors.Join(failed, fmt.Errorf("by %s: %w", l.caps.Name, err))
		if next, later := e.tryNext(p, l, err); later {
			return errAnswering
		} else if !next {
			return failed
		}
	}
	if failed != nil {
		return failed
	}
	closeContact(c)
	return fmt.Errorf("%w by any of this process's transports", transport.ErrUnreachable)
}

// errAnswering: another transport is tried when transfers have ended that this one
// answers.
var errAnswering = errors.New("transfers from the peer go on")

// tryNext reports whether to connect p by another transport after l could not, or
// later to try again: while a transfer from p can only be answered by l. It says
// neither if l may do a little later, and if it was not l that failed.
func (e *Engine) tryNext(p *Peer, l *link, err error) (next, later bool) {
	for _, no := range [...]error{transport.ErrPeerGone, transport.ErrCut, transport.ErrProtocol} {
		if errors.Is(err, no) || retry.Files(err) {
			return false, false
		}
	}
	if p.link == nil {
		return true, false
	}
	if p.link != l || p.other != nil || p.dying || p.broken || slices.Index(e.links, l) == len(e.links)-1 {
		return false, false
	}
	for r := range p.ops.All {
		if r.bulk {
			return false, true
		}
	}
	p.other, p.otherSlot, p.link, p.box = l, p.slot, nil, nil
	return true, false
}

func (e *Engine) bind(p *Peer, l *link, s transport.Slot) {
	p.link, p.slot, p.state = l, s, peerUp
	l.setPeer(s, p)
}

// dropOther ends the second contact of a peer.
func (p *Peer) dropOther() {
	if l := p.other; l != nil {
		p.other = nil
		l.setPeer(p.otherSlot, nil)
		l.Release(p.otherSlot)
	}
}

// peerUp takes an incoming contact. If this process is connecting to the same
// peer, its own Connect will be given the same slot.
func (e *Engine) peerUp(l *link, s transport.Slot, proc wire.ProcID) {
	p := e.peerOf(proc)
	l.setPeer(s, p)
	switch {
	case p.state == peerLost && p.link == nil:
		// It was made before the attempt to connect failed, and is seen after it.
		p.link, p.slot, p.state = l, s, peerConnecting
		return
	case p.state >= peerEnding:
		l.Fail(s) // nothing of it counts any more
		return
	case p.state != peerNew:
		if p.link == nil {
			p.link, p.slot = l, s
			if p.dying {
				l.Fail(s)
			}
		} else if p.link != l && p.other != l {
			p.dropOther()
			p.other, p.otherSlot = l, s
		}
		return
	}
	e.bind(p, l, s)
	if p.dying {
		l.Fail(s)
	} else if l.caps.NeedsConnect {
		e.connect(p)
	} else {
		e.pump(p)
	}
}

// refused books that the transport takes no more for p until EvWritable. A
// transport that was armed before need not have thought of that.
func (e *Engine) refused(p *Peer) {
	p.full, p.slow = true, true
	e.prog.Wake()
}

// maxControl bounds the answers kept for a peer that asks and does not read:
// more than its credit can ask for.
func (p *Peer) maxControl() int {
	return int(8*credit.Envelopes + 2*p.credit.Given())
}

// control sends a frame of the engine itself, before queued messages.
func (e *Engine) control(p *Peer, key match.Key, k kind, flags uint8, aux uint32) {
	e.controlBytes(p, key, k, flags, aux, 0)
}

// controlBytes is control of a frame that tells a number of bytes, if that is
// not 0.
func (e *Engine) controlBytes(p *Peer, key match.Key, k kind, flags uint8, aux uint32, want int64) {
	if p.state == peerDown || e.closed {
		return
	}
	if len(p.ctl) >= p.maxControl() {
		e.protocol(p, fmt.Errorf("%w: %d answers are waiting, and it takes none", transport.ErrProtocol, len(p.ctl)))
		return
	}
	if p.state == peerLost && p.link != nil {
		return
	}
	f := ctlFrame{header(key, k, flags, aux), want}
	if len(p.ctl) == 0 && p.state == peerUp && !p.full {
		switch e.sendControl(p, &f) {
		case transport.Sent, transport.Queued:
			return
		case transport.Broken:
			return
		case transport.Full:
			e.refused(p)
		}
	}
	p.ctl = append(p.ctl, f)
	e.list(p)
	if p.state == peerNew {
		e.connect(p)
	}
}

func (e *Engine) sendControl(p *Peer, f *ctlFrame) transport.Status {
	e.head = f.h
	if f.want == 0 {
		return p.link.Send(p.slot, &e.head, nil, 0)
	}
	putLength(e.frame[:], f.want)
	return p.link.Send(p.slot, &e.head, e.frame[:rtsLen], 0)
}

func (e *Engine) list(p *Peer) {
	if !p.listed {
		p.listed = true
		e.blocked = append(e.blocked, p)
	}
}

// pumpAll retries every peer with something queued, and goes on with streams.
// It returns how many pieces of these it has sent.
func (e *Engine) pumpAll() (pieces int) {
	kept := e.blocked[:0]
	all := e.blocked
	for _, p := range all {
		e.pump(p)
		pieces += e.feed(p)
		if p.hasQueued() && p.state != peerDown {
			kept = append(kept, p)
		} else {
			p.listed = false
		}
	}
	clear(all[len(kept):])
	e.blocked = kept
	return pieces
}

// pump sends what is queued for p, as far as transport and credit allow.
func (e *Engine) pump(p *Peer) {
	if p.state != peerUp || p.full {
		return
	}
	for len(p.ctl) > 0 {
		if e.sendControl(p, &p.ctl[0]) == transport.Full {
			e.refused(p)
			return
		}
		p.ctl = p.ctl[1:]
		if len(p.ctl) == 0 {
			p.ctl = nil
		}
	}
	if p.tells {
		e.hasHeard(p)
	}
	if !e.pumpFrames(p) {
		return
	}
	for p.sends.first != nil {
		// Off the queue first: a request that completes may be recycled.
		r := p.sends.first
		p.sends.remove(r)
		if p.stalled.first != nil && p.stall(r) || e.transmit(p, r) || !p.full && p.stall(r) {
			continue
		}
		p.sends.pushFront(r)
		return
	}
}

func (e *Engine) enqueue(p *Peer, r *Request) {
	r.pend |= pendQueue
	r.hangOn(p)
	p.sends.push(r)
	e.list(p)
}

// dequeue removes r from the queue that it is in.
func (p *Peer) dequeue(r *Request) {
	if !r.aside {
		p.sends.remove(r)
		return
	}
	r.aside = false
	p.stalled.remove(r)
	p.stalls()
}

// TransportOf names the transport that carries messages to a rank, "self", "shm",
// "tcp", or before the first one the memory that it shares with this process; ""
// if there is neither.
func (e *Engine) TransportOf(c *Context, rank int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := *c.known(seat(rank))
	if p == nil {
		p = e.peers[c.Targets().At(rank)]
	}
	if p != nil && p.link != nil {
		return p.link.caps.Name
	}
	if c.board != nil {
		return e.sharingLink().caps.Name
	}
	return ""
}
