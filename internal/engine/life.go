// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gompi/internal/base/credit"
	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/host/wait"
	"gompi/transport"
)

// New starts the engine of one process and its service goroutine.
func New(cfg Config) (*Engine, error) {
	flowing, err := credit.New(cfg.Credit, cfg.Budget, cfg.Room)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		process:       process{cfg: cfg, mu: wait.NewGate()},
		communicators: communicators{contexts: map[wire.ContextID]*Context{}},
	}
	p := &e.process
	if p.tally = new(callreg.Counters); cfg.Book != nil {
		p.tally = cfg.Book.Counters()
	}
	e.waiters = waiters{process: p, up: e}
	e.liveness = newLiveness(p, &e.waiters)
	e.network = network{process: p, live: &e.liveness, flow: &e.flow, up: e, peers: map[wire.ProcID]*Peer{}}
	e.flow = flow{process: p, net: &e.network, credit: flowing}
	e.requests = requests{process: p, of: e, up: e}
	e.matching = matching{process: p, reqs: &e.requests, net: &e.network, flow: &e.flow}
	e.remoteFrames = remoteFrames{process: p, net: &e.network}
	e.sends = sends{process: p, reqs: &e.requests, net: &e.network, flow: &e.flow, msgs: &e.matching, frames: &e.remoteFrames}
	e.receives = receives{process: p, reqs: &e.requests, net: &e.network, flow: &e.flow, msgs: &e.matching, comms: &e.communicators, up: e}
	e.schedules = schedules{process: p, reqs: &e.requests, net: &e.network, msgs: &e.matching, sends: &e.sends, recvs: &e.receives, up: e}
	e.parts = parts{process: p, reqs: &e.requests, net: &e.network, sends: &e.sends, recvs: &e.receives}
	e.pairs = pairs{process: p, reqs: &e.requests, sends: &e.sends, recvs: &e.receives, rounds: &e.schedules}
	e.mu.Blocked = cfg.Blocked
	e.prog.Init((*poller)(e), e.mu, cfg.Sleeper, cfg.Policy)
	e.loop = newLoop(cfg.Sleeper.Wake)
	for _, t := range append([]transport.Transport{e.loop}, cfg.Transports...) {
		if err := addLink(e, t); err != nil {
			return nil, err
		}
	}
	e.tellOversubscribed()
	e.startChecks()
	e.prog.Start()
	return e, nil
}

func addLink(e *Engine, t transport.Transport) error {
	l := newLink(t, e.cfg.EagerMax, e.credit.Base())
	if fd := t.FD(); fd >= 0 {
		if err := e.cfg.Sleeper.Add(fd); err != nil {
			return fmt.Errorf("transport %s: %w", l.caps.Name, err)
		}
	}
	e.links = append(e.links, l)
	return nil
}

// Open adds a transport to those of an engine, which owns it: who none of them has reached
// so far is reached by it.
func Open(e *Engine, t transport.Transport) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := errClosed
	if !e.closed {
		err = addLink(e, t)
	}
	if err != nil {
		return errors.Join(err, t.Close())
	}
	e.tellOversubscribed()
	e.prog.Wake() // who sleeps has not armed it
	return nil
}

// JobOver tells that nothing is heard of another job any more: nothing is to be known of
// the contexts that its head has made.
func JobOver(e *Engine, job wire.JobID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.freed.Retire(wire.ProcID{Job: job})
}

var errClosed = errors.New("the process has ended")

// SetPolicy changes how long waits spin and yield: when the job grows or
// shrinks on this host.
func (e *Engine) SetPolicy(p wait.Policy) {
	e.mu.Lock()
	e.prog.Policy = p
	e.tellOversubscribed()
	e.mu.Unlock()
}

// Close ends the engine: it waits until nobody accesses what this process has
// published and everything that was sent has left it (or ctx ends), then closes
// transports and sleeper. Operations still pending end with Closed. Nobody may
// use the engine afterwards, except that late calls answer Closed.
func (e *Engine) Close(ctx context.Context) error {
	unpublish(e, ctx)
	err := e.drain(ctx, nil, e.unsent)
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

// Rest waits, as Close does, until nothing of a process is on its way that may end at
// any moment from then on, or until ctx ends. Its communicators with others are freed.
// The engine goes on.
func Rest(e *Engine, ctx context.Context) error {
	unpublish(e, ctx)
	e.mu.Lock()
	shared := slices.DeleteFunc(slices.Collect(maps.Values(e.contexts)), func(c *Context) bool {
		return c.whole != nil || c.Members.Len()+c.Remote.Len() == 1
	})
	e.mu.Unlock()
	for _, c := range shared {
		e.FreeContext(c)
	}
	return quiesce(e, ctx)
}

// Settle is Rest of a process that uses its communicators no more.
func Settle(e *Engine, ctx context.Context) error {
	unpublish(e, ctx)
	return quiesce(e, ctx)
}

func quiesce(e *Engine, ctx context.Context) error {
	if err := e.drain(ctx, nil, e.unsent); err != nil {
		return err
	}
	for {
		e.mu.Lock()
		taken := true
		for _, l := range e.links {
			if k, ok := l.Transport.(transport.Drainer); ok {
				taken = taken && k.Drained()
			}
		}
		e.mu.Unlock()
		if taken || ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(drainPause)
	}
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

// unpublish waits until nobody accesses what this process has published, or until ctx
// ends.
func unpublish(e *Engine, ctx context.Context) {
	e.mu.Lock()
	server := e.remote
	e.mu.Unlock()
	if server != nil && ctx.Err() == nil {
		server.Leave(ctx)
	}
}

// drain works, and waits, until left, which says what is still there, says that nothing
// is: "". Both functions are called with the lock; each, if not nil, before what is
// done each time.
func (e *Engine) drain(ctx context.Context, each func(), left func() string) error {
	for b := (wait.Backoff{}); ; {
		e.mu.Lock()
		if e.closed {
			e.mu.Unlock()
			return nil
		}
		if each != nil {
			each()
		}
		for n := 0; n < departTurns && e.progress() > 0; n++ {
		}
		what := left()
		pol := e.prog.Policy
		e.mu.Unlock()
		if what == "" {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
		if b.MayYield(pol.Spin + pol.Yield) {
			b.AddYield(pol.Turn(b.YieldCost), 0)
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
