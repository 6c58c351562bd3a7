// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gompi/internal/credit"
	"gompi/internal/fault"
	"gompi/internal/match"
	"gompi/internal/nodecoll"
	"gompi/internal/progress"
	"gompi/internal/rollcall"
	"gompi/internal/wait"
	"gompi/internal/wire"
	"gompi/transport"
)

// Control is what the engine needs from the control plane. Contact may block;
// it is called on a goroutine of its own. The others return at once.
type Control interface {
	// Contact tells how to reach a process.
	Contact(p wire.ProcID) (wire.Contact, error)
	// Watch asks to be told (Engine.ProcFailed, ProcGone) of the end of each of
	// m, also if it has ended.
	Watch(m wire.Members) error
	// Dead acknowledges an end: nothing of this process touches p any more.
	Dead(p wire.ProcID) error
	// Cut tells a living process (Engine.ProcCut) that it cannot be reached.
	Cut(p wire.ProcID, why string) error
	// Ping asks whether a process takes part in the job (Engine.Pinged there,
	// then Engine.Ponged): where it does not, its end is told to who watches it.
	// For this process itself the control plane answers, behind the deaths that
	// it knows of.
	Ping(p wire.ProcID, id uint64) error
	// Pong answers a Ping.
	Pong(p wire.ProcID, id uint64) error
	// Common gives memory of n bytes that the members of a context have in
	// common: a descriptor, which the caller owns. It may block, and is called
	// where a transport wants it. Who uses it no more before all have asked for
	// it says LeaveCommon, which returns at once.
	Common(id wire.ContextID, m wire.Members, n int) (fd int, err error)
	LeaveCommon(id wire.ContextID, m wire.Members, n int) error
}

// Config describes one process. All fields but the optional ones are needed.
type Config struct {
	Self    wire.ProcID
	Control Control
	// Transports in order of preference; the engine closes them.
	Transports []transport.Transport
	Sleeper    wait.Sleeper // the engine closes it
	Policy     wait.Policy
	// EagerMax caps eager payloads, in bytes. Zero means the transport's
	// choice; negative means none.
	EagerMax int
	// Credit is how many bytes of unexpected eager messages a peer keeps for
	// this process, and this process for each peer. Equal in the whole job.
	// Zero means DefaultCredit to begin with, and more as memory allows.
	Credit int64
	// Budget is how many bytes of unexpected messages this process keeps beyond
	// what each peer starts with. Zero means what Room says.
	Budget int64
	// Room tells how many bytes more this process may take for unexpected
	// messages. It is called with the engine locked. Nil means none.
	Room func() int64
	// Check makes receives fail that a message in ready mode found missing.
	Check bool
	// Blocked is called by a goroutine that finds the engine locked; optional.
	Blocked func()
	// Book records blocking calls for the roll call; optional.
	Book *rollcall.Book
}

// DefaultCredit is how many unexpected eager bytes of a pair of processes there
// may be to begin with.
const DefaultCredit = credit.Default

// link is one transport with the engine's view of its slots.
type link struct {
	transport.Transport
	caps  transport.Caps
	boxes transport.FastBoxes // nil if it has no fast boxes
	place transport.Reserver  // nil if strided memory is packed elsewhere
	eager int                 // largest eager payload
	piece int64               // largest piece of a stream
	short int64               // largest payload that goes without a request
	every uint64              // polled only in these turns of a spin
	slots []*Peer             // by slot
}

// Engine is the message engine of one process. Methods are safe for any
// goroutine. Fields below mu are guarded by it; those of one noun are a value,
// described where its methods are.
type Engine struct {
	cfg   Config // immutable
	loop  *loop  // transport of a process to itself; also links[0]
	links []*link

	sharing sync.RWMutex // shared while a Sharer is used without mu; before mu
	mu      *wait.Gate
	closed  bool
	prog    progress.Machine
	checks  *time.Timer // nil if no transport needs them
	events  [16]transport.Event
	in      wire.Header                      // of the message that RecvNow takes
	head    wire.Header                      // of the message being sent: off the stack once
	frame   [rtsLen + transport.MaxDesc]byte // likewise, of an RTS
	pack    packer
	table   match.Table[Request, arrival]
	probers []*waiter // that wait for a message to lie there
	peers   map[wire.ProcID]*Peer
	blocked []*Peer // those with something in their queues
	flow
	liveness
	communicators
	records
	colls    collList
	memories map[wire.ProcID]*Memory // of processes that have not ended
	bells    map[wire.ProcID]*bell   // of processes that share boards and no connection
	heaps    []*nodecoll.Heap        // that this process uses
	remote   RemoteServer            // nil until used
}

// New starts the engine of one process and its service goroutine.
func New(cfg Config) (*Engine, error) {
	flowing, err := credit.New(cfg.Credit, cfg.Budget, cfg.Room)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cfg:           cfg,
		mu:            wait.NewGate(),
		peers:         map[wire.ProcID]*Peer{},
		liveness:      newLiveness(),
		communicators: communicators{contexts: map[wire.ContextID]*Context{}},
		flow:          flow{credit: flowing},
	}
	e.mu.Blocked = cfg.Blocked
	e.prog.Init((*process)(e), e.mu, cfg.Sleeper, cfg.Policy)
	e.loop = newLoop(cfg.Sleeper.Wake)
	for _, t := range append([]transport.Transport{e.loop}, cfg.Transports...) {
		l := &link{Transport: t, caps: t.Caps()}
		l.every = uint64(max(l.caps.SpinEvery, 1))
		l.boxes, _ = t.(transport.FastBoxes)
		l.place, _ = t.(transport.Reserver)
		l.eager = min(l.caps.EagerBest, l.caps.EagerMax)
		if cfg.EagerMax > 0 {
			l.eager = min(cfg.EagerMax, l.caps.EagerMax)
		} else if cfg.EagerMax < 0 {
			l.eager = -1
		}
		// An eager message must be affordable with three quarters of the
		// credit gone, or it could wait for ever.
		l.eager = min(l.eager, int(flowing.Base()/4)-credit.UnitBytes)
		l.short = int64(min(l.eager, copiedMax))
		l.piece = int64(min(l.caps.EagerMax, copiedMax))
		if fd := t.FD(); fd >= 0 {
			if err := cfg.Sleeper.Add(fd); err != nil {
				return nil, fmt.Errorf("transport %s: %w", l.caps.Name, err)
			}
		}
		e.links = append(e.links, l)
	}
	e.tellCrowd()
	e.startChecks()
	e.prog.Start()
	return e, nil
}

// Self is this process's id.
func (e *Engine) Self() wire.ProcID { return e.cfg.Self }

// SetPolicy changes how long waits spin and yield: when the job grows or
// shrinks on this host.
func (e *Engine) SetPolicy(p wait.Policy) {
	e.mu.Lock()
	e.prog.Policy = p
	e.tellCrowd()
	e.mu.Unlock()
}

// tellCrowd tells the transports what the policy says of the processors.
func (e *Engine) tellCrowd() {
	for _, l := range e.links {
		if c, ok := l.Transport.(transport.Crowder); ok {
			c.Crowded(e.prog.Policy.Crowd > 1)
		}
	}
}

// Close ends the engine: it waits until nobody accesses what this process has
// published and everything that was sent has left it (or ctx ends), then closes
// transports and sleeper. Operations still pending end with Closed. Nobody may
// use the engine afterwards, except that late calls answer Closed.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	server := e.remote
	e.mu.Unlock()
	if server != nil && ctx.Err() == nil {
		server.Leave(ctx)
	}
	err := e.drain(ctx)
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.prog.Close()
	e.failAll(&fault.Fault{Class: fault.Finalized, Peer: -1})
	e.loseMemories()
	e.mu.Unlock()
	e.prog.Stop()
	if e.checks != nil {
		e.checks.Stop()
	}
	err = e.closeTransports(err)
	if e.remote != nil {
		e.remote.Close()
	}
	return err
}

// closeTransports ends the last of Close; err is what was wrong before. The
// service goroutine is gone, and those that wait for a contact will find the
// engine closed: the transports are ours alone.
func (e *Engine) closeTransports(err error) error {
	e.sharing.Lock()
	defer e.sharing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leaveBoards()
	e.dropBells()
	for _, l := range e.links {
		if cerr := l.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("transport %s: %w", l.caps.Name, cerr)
		}
	}
	e.cfg.Sleeper.Close()
	return err
}

// drainPause is how often a process that is ready to leave looks whether it
// may, after its budgets: meanwhile the service goroutine works for it.
const drainPause = 500 * time.Microsecond

// drain waits until nothing of this process is on its way.
func (e *Engine) drain(ctx context.Context) error {
	for b := (wait.Backoff{}); ; {
		e.mu.Lock()
		if e.closed {
			e.mu.Unlock()
			return nil
		}
		for n := 0; n < departTurns && e.progress() > 0; n++ {
		}
		left := e.unsent()
		pol := e.prog.Policy
		e.mu.Unlock()
		if left == "" {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", left, ctx.Err())
		}
		if b.MayYield(pol.Spin + pol.Yield) {
			b.Yielded(pol.Turn(b.Yields), 0)
		} else {
			time.Sleep(drainPause)
		}
	}
}

// unsent says what has not left this process, "" if all has.
func (e *Engine) unsent() string {
	for _, p := range e.peers {
		if p.hasQueued() && p.state != peerDown {
			return fmt.Sprintf("messages for %v have not left", p.proc)
		}
	}
	for _, l := range e.links {
		if !l.Flushed() {
			return fmt.Sprintf("transport %s has unsent data", l.caps.Name)
		}
	}
	// Sends that were given up to the library (Free): the receiver may take
	// the data only later.
	for _, p := range e.peers {
		for r := range p.ops.All {
			if r.kind == reqSend && r.detach && p.proc != e.cfg.Self {
				return fmt.Sprintf("a message of %d bytes for %v, whose request was freed, was not received", r.buf.Bytes(), p.proc)
			}
		}
	}
	return ""
}

// progress polls every transport once and deals with what happened. The lock
// is held. It returns the number of events and continuations.
func (e *Engine) progress() int { return e.poll(false) }

// poll is progress, which passes over costly transports in most turns if it is
// called in a spin.
func (e *Engine) poll(spin bool) int {
	total := 0
	e.prog.Turns++
	for i, l := range e.links {
		if i == 0 && e.loop.idle() || spin && e.prog.Turns%l.every != 0 && len(l.slots) > 0 {
			continue
		}
		n := l.Poll(e.events[:])
		for j := range n {
			e.handle(l, &e.events[j])
		}
		total += n
	}
	if len(e.blocked) > 0 {
		total += e.pumpAll()
	}
	if e.prog.Hooked() {
		total += e.prog.Step()
	}
	for e.colls.ready != nil {
		e.runReady()
		total++
	}
	return total
}

func (e *Engine) handle(l *link, ev *transport.Event) {
	switch ev.Kind {
	case transport.EvRecv:
		e.arrive(l, ev)
	case transport.EvSent:
		if r := e.pool.byToken(ev.Token); r != nil {
			e.sendLeft(r, pendLeave)
		}
	case transport.EvBulk:
		if r := e.pool.byToken(ev.Token); r != nil {
			e.bulkDone(r, ev.Bytes, ev.Err)
		}
	case transport.EvWritable:
		if p := l.peer(ev.Slot); p != nil {
			p.full = false
			p.stalls()
			e.pump(p)
		}
	case transport.EvUp:
		e.peerUp(l, ev.Slot, ev.Proc)
	case transport.EvDown:
		if p := l.peer(ev.Slot); p == nil {
		} else if p.state >= peerLost || p.link != l || p.slot != ev.Slot {
			// A contact of its own, beside or after the one in use.
			l.setPeer(ev.Slot, nil)
			l.Release(ev.Slot)
			if p.other == l && p.otherSlot == ev.Slot {
				p.other = nil
				if p.state == peerEnding {
					e.linkDown(p, ev.Err)
				} else if p.dying && p.link != nil {
					p.link.Fail(p.slot)
				}
			}
		} else {
			e.linkDown(p, ev.Err)
		}
	}
}

func (l *link) peer(s transport.Slot) *Peer {
	if int(s) < len(l.slots) {
		return l.slots[s]
	}
	return nil
}

func (l *link) setPeer(s transport.Slot, p *Peer) {
	for int(s) >= len(l.slots) {
		l.slots = append(l.slots, nil)
	}
	l.slots[s] = p
}
