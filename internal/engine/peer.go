// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/internal/base/credit"
	"gompi/internal/base/fault"
	"gompi/internal/base/list"
	"gompi/internal/base/retry"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
	"gompi/transport"
)

type peerState uint8

const (
	peerNew        peerState = iota // never spoken to
	peerConnecting                  // a goroutine fetches its contact
	peerUp
	peerEnding // its connection has ended; messages by its second contact are still unread
	peerLost   // its connection has ended; the control plane has not said why
	peerDown
)

// Peer is another process (or this one) as the engine sees it.
type Peer struct {
	// The connection. link and slot are set in state peerUp, and before it when
	// the peer has connected first.
	proc   wire.ProcID
	link   *link
	slot   transport.Slot
	state  peerState
	full   bool              // the transport refused a message; EvWritable will come
	slow   bool              // messages must be queued: full, or stalled is not empty
	box    transport.FastBox // the messages of this peer alone; nil: not known
	dying  bool              // the control plane reported its end; EvDown will come
	broken bool              // this process gives the connection up; EvDown will come
	why    error             // the reason of broken, or of EvDown
	down   *fault.Fault      // set in state peerDown
	listed bool              // in network.blocked

	// A second contact, for incoming messages: peer and process have connected
	// at the same time, by different transports, because one of them cannot use
	// the first. other is nil if there is none.
	other     *link
	otherSlot transport.Slot

	// Flow control.
	credit        credit.Account
	announcements list.List[arrival] // without a receive
	tight         bool               // in flow.tight
	filledBy      wire.ContextID     // has most of announcements; set when the peer is told that there is no more
	filler        wire.ContextID     // whose messages fill the receiver

	// Queues of outgoing frames, in the order in which they are sent.
	ctl        []ctlFrame // control frames of the engine
	receipts   bool       // receives wait until ctl is empty: see received
	frames     frameQueue // of remote memory
	frameParts []byte     // of an incoming frame in parts
	sends      sendQueue
	// stalled are sends put aside, older than the sends of the same communicator
	// in sends.
	stalled sendQueue

	// recalls are sends that this process has asked to cancel, in the order of
	// the answers to come. A send may have ended since.
	recalls []Handle

	// Streams, oldest first: sends that the peer has pulled, and receives that
	// this process has pulled.
	out streamList
	in  streamList

	ping uint64 // id of the query about a peer that is lost or cannot be answered

	ops list.List[Request] // see Request.hang
}

// network has the peers of a process, and how they are reached.
type network struct {
	process *process
	live    *liveness
	flow    *flow
	up      interface {
		// pump sends what is queued for a peer whose link has room.
		pump(p *Peer)
		// linkDown reports that a connection has ended.
		linkDown(p *Peer, err error)
	}

	loop    *loop // transport of a process to itself; also links[0]
	links   []*link
	checks  *time.Timer // nil if no transport needs them
	peers   map[wire.ProcID]*Peer
	blocked []*Peer                          // with something in their queues
	head    wire.Header                      // of the message being sent; here, not on the stack
	frame   [rtsLen + transport.MaxDesc]byte // payload of an RTS, likewise
	pack    packer
	bells   map[wire.ProcID]*bell // of processes with a shared area and without a connection
}

// ctlFrame is a control frame of the engine. Its payload is want, if that is not 0.
type ctlFrame struct {
	h    wire.Header
	want int64
}

// ready reports whether a message may go to the transport at once: the peer is connected,
// and no message is queued before it.
func (p *Peer) ready() bool {
	return p.state == peerUp && p.sends.first == nil && !p.slow && len(p.ctl) == 0
}

func (p *Peer) hasQueued() bool {
	return p.sends.first != nil || p.stalled.first != nil || len(p.ctl) > 0 || p.frames.first != nil || p.out.first != nil
}

// peerOf returns the record of a process, and makes it on first use. The record of a
// process that has ended is not kept.
func (nt *network) peerOf(proc wire.ProcID) *Peer {
	if p := nt.peers[proc]; p != nil {
		return p
	}
	if d := nt.live.dead[proc]; d != nil {
		return &Peer{proc: proc, state: peerDown, down: d.fault()}
	}
	p := &Peer{proc: proc}
	nt.flow.credit.Start(&p.credit)
	if proc == nt.process.cfg.Self {
		p.link, p.state = nt.links[0], peerUp
		p.link.setPeer(0, p)
	}
	nt.peers[proc] = p
	return p
}

// connect starts to connect. The queue is pumped when the connection is up.
func (nt *network) connect(p *Peer) {
	p.state = peerConnecting
	go func() {
		var r retry.Retry
		for !nt.connected(p, &r) {
			time.Sleep(r.NextPause())
		}
	}()
}

// connected is one attempt to connect. False means that it may succeed later.
func (nt *network) connected(p *Peer, r *retry.Retry) bool {
	c, err := nt.process.cfg.Control.Contact(p.proc)
	nt.process.mu.Lock()
	defer nt.process.mu.Unlock()
	if nt.process.closed || p.state != peerConnecting {
		if err == nil {
			closeContact(c)
		}
		return true
	}
	if err == nil {
		err = nt.attach(p, c)
	}
	switch {
	case err == nil || p.dying && p.link != nil:
	case !p.dying && (errors.Is(err, errAnswering) || r.Allows(err)):
		return false
	case p.link == nil:
		nt.up.linkDown(p, err)
	default:
		// The peer has connected. If that has ended since, its messages come
		// first, then EvDown.
		p.why = err
		nt.suspect(p)
	}
	nt.process.cfg.Sleeper.Wake()
	return true
}

// attach connects p by the first transport that can reach it. It skips the transports
// before the one by which p has reached this process.
func (nt *network) attach(p *Peer, c wire.Contact) error {
	var failed error
	for _, l := range nt.links[max(1, slices.Index(nt.links, p.link)):] {
		if l.caps.Local && !c.SameHost {
			continue
		}
		s, err := l.Connect(c)
		if err == nil {
			nt.bind(p, l, s)
			if p.dying {
				l.Fail(s)
			}
			nt.up.pump(p)
			return nil
		}
		c.Segment, c.Bell = -1, -1 // Connect owns them now
		failed = errors.Join(failed, fmt.Errorf("by %s: %w", l.caps.Name, err))
		if next, later := nt.tryNext(p, l, err); later {
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

// errAnswering means that transfers from the peer must end before another transport is
// tried: only this one can answer them.
var errAnswering = errors.New("transfers from the peer go on")

// tryNext reports whether to connect p by another transport after l has failed, or later:
// transfers from p can only be answered by l. Both are false if l may succeed later, and if
// the failure was not l's.
func (nt *network) tryNext(p *Peer, l *link, err error) (next, later bool) {
	for _, no := range [...]error{transport.ErrPeerGone, transport.ErrCut, transport.ErrProtocol} {
		if errors.Is(err, no) || retry.OutOfFiles(err) {
			return false, false
		}
	}
	if p.link == nil {
		return true, false
	}
	if p.link != l || p.other != nil || p.dying || p.broken || slices.Index(nt.links, l) == len(nt.links)-1 {
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

func (nt *network) bind(p *Peer, l *link, s transport.Slot) {
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

// peerUp handles an incoming connection. If this process is connecting to the same peer,
// its own Connect will return the same slot.
func (nt *network) peerUp(l *link, s transport.Slot, proc wire.ProcID) {
	p := nt.peerOf(proc)
	l.setPeer(s, p)
	switch {
	case p.state == peerLost && p.link == nil:
		// The peer connected before this process failed to, and is seen only now.
		p.link, p.slot, p.state = l, s, peerConnecting
		return
	case p.state >= peerEnding:
		l.Fail(s) // its messages do not count any more
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
	nt.bind(p, l, s)
	if p.dying {
		l.Fail(s)
	} else if l.caps.NeedsConnect {
		nt.connect(p)
	} else {
		nt.up.pump(p)
	}
}

// refused records that the transport takes no more for p until EvWritable. It wakes the
// process: a transport that was armed before may not know that room is wanted.
func (nt *network) refused(p *Peer) {
	p.full, p.slow = true, true
	nt.process.prog.Wake()
}

// maxControl bounds the answers kept for a peer that asks and does not read. It
// is more than the peer's credit can ask for.
func (p *Peer) maxControl() int {
	return int(8*credit.Envelopes + 2*p.credit.Given())
}

// control sends a control frame, before queued messages.
func (nt *network) control(p *Peer, key match.Key, k kind, flags uint8, aux uint32) {
	nt.controlBytes(p, key, k, flags, aux, 0)
}

// controlBytes is control for a frame that carries a number of bytes, if that is not 0.
func (nt *network) controlBytes(p *Peer, key match.Key, k kind, flags uint8, aux uint32, want int64) {
	if p.state == peerDown || nt.process.closed {
		return
	}
	if len(p.ctl) >= p.maxControl() {
		nt.protocol(p, fmt.Errorf("%w: %d answers are waiting, and it takes none", transport.ErrProtocol, len(p.ctl)))
		return
	}
	if p.state == peerLost && p.link != nil {
		return
	}
	f := ctlFrame{header(key, k, flags, aux), want}
	if len(p.ctl) == 0 && p.state == peerUp && !p.full {
		switch nt.sendControl(p, &f) {
		case transport.Sent, transport.Queued:
			return
		case transport.Broken:
			return
		case transport.Full:
			nt.refused(p)
		}
	}
	p.ctl = append(p.ctl, f)
	nt.list(p)
	if p.state == peerNew {
		nt.connect(p)
	}
}

func (nt *network) sendControl(p *Peer, f *ctlFrame) transport.Status {
	nt.head = f.h
	if f.want == 0 {
		return p.link.Send(p.slot, &nt.head, nil, 0)
	}
	putLength(nt.frame[:], f.want)
	return p.link.Send(p.slot, &nt.head, nt.frame[:rtsLen], 0)
}

func (nt *network) list(p *Peer) {
	if !p.listed {
		p.listed = true
		nt.blocked = append(nt.blocked, p)
	}
}

// dequeue removes r from the queue that it is in.
func (p *Peer) dequeue(r *Request) {
	if !r.stalled {
		p.sends.remove(r)
		return
	}
	r.stalled = false
	p.stalled.remove(r)
	p.stalls()
}

// endsPending reports whether the control plane has reported an end on which this process
// has not acted: the last messages come first.
func (nt *network) endsPending() bool {
	for _, p := range nt.peers {
		if p.dying {
			return true
		}
	}
	return false
}

// suspect asks whether a peer that cannot be reached takes part in the job. It asks the
// control plane and, through it, the peer.
func (nt *network) suspect(p *Peer) {
	nt.live.ask(p.proc)
	nt.live.unping(p.ping)
	p.ping, _ = nt.live.ping(p.proc, p)
}

// protocol cuts off a peer that broke the rules or that cannot be answered.
func (nt *network) protocol(p *Peer, err error) {
	if p == nil || p.state >= peerLost {
		return
	}
	if p.link == nt.links[0] {
		panic(fmt.Sprintf("gompi: BUG: %v from myself", err))
	}
	if !p.broken {
		p.broken, p.why = true, err
	}
	if p.state == peerEnding || p.link == nil {
		nt.up.linkDown(p, err)
		return
	}
	p.link.Cut(p.slot, err) // EvDown follows
}

// cutBy is the reason that another process gives for not reaching this one.
type cutBy string

func (c cutBy) Error() string { return "it cannot reach this process: " + string(c) }

var errEnded = errors.New("the connection has ended")

func (p *Peer) unreachable() *fault.Fault {
	err := p.why
	if err == nil {
		err = errEnded
	}
	if _, its := err.(cutBy); !its {
		err = fmt.Errorf("it cannot be reached: %w", err)
	}
	return &fault.Fault{Class: fault.Unreachable, Peer: -1, Err: err}
}

// stalls updates slow: whether messages must be queued.
func (p *Peer) stalls() { p.slow = p.full || p.stalled.first != nil }

// tell sends a frame to every living member.
func (nt *network) tell(c *Context, k kind, pl wire.TrafficClass, tag int32, aux uint32) {
	for s := range c.others {
		if c.lossOf(s) != nil {
			continue
		}
		on := pl
		if pl == wire.TrafficColl && s.local() {
			on = wire.TrafficCollLocal
		}
		nt.control(c.peer(s), c.wireKey(on, tag), k, 0, aux)
	}
}
