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

	credit        credit.Account
	announcements list.List[arrival] // that nobody has received
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

	// recalls are sends of which Cancel was sent to the peer, in the order in which it
	// answers. The send may have ended since.
	recalls []Handle

	out streamList // sends that the peer has pulled, oldest first
	in  streamList // receives that have pulled

	ping uint64 // of one that is lost, or cannot be answered

	ops list.List[Request] // see Request.hang
}

// network is who there is, and how it is reached.
type network struct {
	process *process
	live    *liveness
	flow    *flow
	up      interface {
		// pump sends what is queued for a peer whose link takes something.
		pump(p *Peer)
		// linkDown tells that a connection has ended.
		linkDown(p *Peer, err error)
	}

	loop    *loop // transport of a process to itself; also links[0]
	links   []*link
	checks  *time.Timer // nil if no transport needs them
	peers   map[wire.ProcID]*Peer
	blocked []*Peer                          // those with something in their queues
	head    wire.Header                      // of the message being sent: off the stack once
	frame   [rtsLen + transport.MaxDesc]byte // likewise, of an RTS
	pack    packer
	bells   map[wire.ProcID]*bell // of processes that share boards and no connection
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

// connect starts to make contact; the queue is pumped when it stands.
func (nt *network) connect(p *Peer) {
	p.state = peerConnecting
	go func() {
		var r retry.Retry
		for !nt.connected(p, &r) {
			time.Sleep(r.NextPause())
		}
	}()
}

// connected is an attempt to make contact. false: it may do a little later.
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
		// The peer has made the link. If it has ended since, its messages come
		// first, then EvDown.
		p.why = err
		nt.suspect(p)
	}
	nt.process.cfg.Sleeper.Wake()
	return true
}

// attach connects p by the first transport that can reach it; by none before
// that by which it has reached this process.
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
		c.Segment, c.Bell = -1, -1 // were Connect's
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

// errAnswering: another transport is tried when transfers have ended that this one
// answers.
var errAnswering = errors.New("transfers from the peer go on")

// tryNext reports whether to connect p by another transport after l could not, or
// later to try again: while a transfer from p can only be answered by l. It says
// neither if l may do a little later, and if it was not l that failed.
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

// peerUp takes an incoming contact. If this process is connecting to the same
// peer, its own Connect will be given the same slot.
func (nt *network) peerUp(l *link, s transport.Slot, proc wire.ProcID) {
	p := nt.peerOf(proc)
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
	nt.bind(p, l, s)
	if p.dying {
		l.Fail(s)
	} else if l.caps.NeedsConnect {
		nt.connect(p)
	} else {
		nt.up.pump(p)
	}
}

// refused books that the transport takes no more for p until EvWritable. A
// transport that was armed before need not have thought of that.
func (nt *network) refused(p *Peer) {
	p.full, p.slow = true, true
	nt.process.prog.Wake()
}

// maxControl bounds the answers kept for a peer that asks and does not read:
// more than its credit can ask for.
func (p *Peer) maxControl() int {
	return int(8*credit.Envelopes + 2*p.credit.Given())
}

// control sends a frame of the engine itself, before queued messages.
func (nt *network) control(p *Peer, key match.Key, k kind, flags uint8, aux uint32) {
	nt.controlBytes(p, key, k, flags, aux, 0)
}

// controlBytes is control of a frame that tells a number of bytes, if that is
// not 0.
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
	if !r.aside {
		p.sends.remove(r)
		return
	}
	r.aside = false
	p.stalled.remove(r)
	p.stalls()
}

// endsPending reports whether the end of a process is told but not yet acted on: its
// last messages come first.
func (nt *network) endsPending() bool {
	for _, p := range nt.peers {
		if p.dying {
			return true
		}
	}
	return false
}

// suspect asks whether a peer that cannot be reached takes part in the job: the
// control plane of its end, and itself.
func (nt *network) suspect(p *Peer) {
	nt.live.ask(p.proc)
	nt.live.unping(p.ping)
	p.ping, _ = nt.live.ping(p.proc, p)
}

// protocol cuts off a peer that broke the rules, or that cannot be answered.
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

// cutBy is what another process says when it cannot reach this one.
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

// stalls notes whether messages may not go straight to the transport.
func (p *Peer) stalls() { p.slow = p.full || p.stalled.first != nil }

// tell sends a frame to every living member.
func (nt *network) tell(c *Context, k kind, pl wire.TrafficClass, tag int32, aux uint32) {
	for s := range c.seats {
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
