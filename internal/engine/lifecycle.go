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
	if p.counters = new(callreg.Counters); cfg.Book != nil {
		p.counters = cfg.Book.Counters()
	}
	e.waiters = waiters{process: p, up: e}
	e.liveness = newLiveness(p, &e.waiters)
	e.network = network{process: p, live: &e.liveness, flow: &e.flow, up: e, peers: map[wire.ProcID]*Peer{}}
	e.flow = flow{process: p, net: &e.network, credit: flowing}
	e.requests = requests{process: p, of: e, up: e}
	e.matching = matching{process: p, reqs: &e.requests, net: &e.network, flow: &e.flow}
	e.remoteFrames = remoteFrames{process: p, net: &e.network}
	e.sends = sends{
		process: p,
		reqs:    &e.requests,
		net:     &e.network,
		flow:    &e.flow,
		msgs:    &e.matching,
		frames:  &e.remoteFrames,
	}
	e.receives = receives{
		process: p,
		reqs:    &e.requests,
		net:     &e.network,
		flow:    &e.flow,
		msgs:    &e.matching,
		comms:   &e.communicators,
		up:      e,
	}
	e.schedules = schedules{
		process: p,
		reqs:    &e.requests,
		net:     &e.network,
		msgs:    &e.matching,
		sends:   &e.sends,
		recvs:   &e.receives,
		up:      e,
	}
	e.partitions = partitions{process: p, reqs: &e.requests, net: &e.network, sends: &e.sends, recvs: &e.receives}
	e.sendRecvs = sendRecvs{process: p, reqs: &e.requests, sends: &e.sends, recvs: &e.receives, rounds: &e.schedules}
	e.mu.Blocked = cfg.Blocked
	e.prog.Init((*poller)(e), e.mu, cfg.Sleeper, cfg.Policy)
	e.loop = newLoop(cfg.Sleeper.Wake)
	for _, t := range append([]transport.Transport{e.loop}, cfg.Transports...) {
		if err := e.addLink(t); err != nil {
			return nil, err
		}
	}
	e.tellOversubscribed()
	e.startChecks()
	e.prog.Start()
	return e, nil
}

func (e *Engine) addLink(t transport.Transport) error {
	l := newLink(t, e.cfg.EagerMax, e.credit.Base())
	if fd := t.FD(); fd >= 0 {
		if err := e.cfg.Sleeper.Add(fd); err != nil {
			return fmt.Errorf("transport %s: %w", l.caps.Name, err)
		}
	}
	e.links = append(e.links, l)
	return nil
}

// AddTransport adds a transport, which the engine owns from then on. It serves processes
// that no earlier transport has reached.
func (e *Engine) AddTransport(t transport.Transport) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := errClosed
	if !e.closed {
		err = e.addLink(t)
	}
	if err != nil {
		return errors.Join(err, t.Close())
	}
	e.tellOversubscribed()
	e.prog.Wake() // a sleeping process has not armed it
	return nil
}

// RetireJob tells the engine that nothing comes from another job any more. It forgets the
// contexts that this job's head has made.
func (e *Engine) RetireJob(job wire.JobID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.freed.Retire(wire.ProcID{Job: job})
}

var errClosed = errors.New("the process has ended")

// SetPolicy changes how long waits spin and yield, for example when the job grows or
// shrinks on this host.
func (e *Engine) SetPolicy(p wait.Policy) {
	e.mu.Lock()
	e.prog.Policy = p
	e.tellOversubscribed()
	e.mu.Unlock()
}

// Close ends the engine. It waits until no other process accesses what this one has
// published and everything sent has left, or until ctx ends. Then it closes transports and
// sleeper. Operations still pending end with Closed. The engine must not be used
// afterwards; late calls answer Closed.
func (e *Engine) Close(ctx context.Context) error {
	e.unpublish(ctx)
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

// Rest waits, as Close does, until nothing of this process is under way, or until ctx ends.
// The process may then end at any moment. Rest frees the communicators that have other
// members. The engine goes on.
func (e *Engine) Rest(ctx context.Context) error {
	e.unpublish(ctx)
	e.mu.Lock()
	shared := slices.DeleteFunc(slices.Collect(maps.Values(e.contexts)), func(c *Context) bool {
		return c.whole != nil || c.Members.Len()+c.Remote.Len() == 1
	})
	e.mu.Unlock()
	for _, c := range shared {
		e.FreeContext(c)
	}
	return e.quiesce(ctx)
}

// Settle is Rest for a process that does not use its communicators any more.
func (e *Engine) Settle(ctx context.Context) error {
	e.unpublish(ctx)
	return e.quiesce(ctx)
}

func (e *Engine) quiesce(ctx context.Context) error {
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

// closeTransports is the last step of Close; err is an earlier error. The service goroutine
// has ended, and goroutines that wait for a contact will find the engine closed, so no
// other goroutine uses the transports.
func (e *Engine) closeTransports(err error) error {
	e.sharing.Lock()
	defer e.sharing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leaveAreas()
	e.dropBells()
	for _, l := range e.links {
		if cerr := l.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("transport %s: %w", l.caps.Name, cerr)
		}
	}
	e.cfg.Sleeper.Close()
	return err
}

// drainPause is the pause between two looks of a process that is ready to leave, after its
// spins and yields. The service goroutine works for it meanwhile.
const drainPause = 500 * time.Microsecond

// unpublish waits until no other process accesses what this one has published, or until ctx
// ends.
func (e *Engine) unpublish(ctx context.Context) {
	e.mu.Lock()
	server := e.remote
	e.mu.Unlock()
	if server != nil && ctx.Err() == nil {
		server.Leave(ctx)
	}
}

// drain makes progress until left returns "", or until ctx ends. left names what has not
// left the process. each, if not nil, is called before every step. Both are called with the
// lock held.
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

// unsent names what has not left this process, or returns "".
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
	// These sends were freed by the program. The receiver may take the data later.
	for _, p := range e.peers {
		for r := range p.ops.All {
			if r.kind == reqSend && r.detach && p.proc != e.cfg.Self {
				return fmt.Sprintf("a message of %d bytes for %v, whose request was freed, was not received", r.buf.Bytes(), p.proc)
			}
		}
	}
	return ""
}
