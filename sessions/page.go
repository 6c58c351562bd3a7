// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/internal/engine"
)

// page is the change page of a set, as one of its members uses it. Its methods may be
// called from any goroutine.
type page struct {
	proc   *core.Process
	set    uint32
	body   protocol.PageBody
	lines  changepage.Page
	member *changepage.Member
	host   *hostMemory
	kept   *mapping     // that holds the page; nil: the set has one member
	users  atomic.Int32 // a watcher, and changes that are not over
	over   atomic.Bool  // the page of a Result has replaced it
}

// openPage opens the page that an answer of the agent names, with one user. It takes over
// the descriptors; -1 means that the process has mapped the memory already. On an error
// the process still holds the page.
func openPage(p *core.Process, set uint32, b protocol.PageBody, fds [protocol.FrameFDs]int, o protocol.Options) (*page, error) {
	g := &page{proc: p, set: set, body: b, host: hostMemoryOf(p)}
	g.users.Store(1)
	if b.X.Bytes == 0 { // the set has one member
		return g, g.view(make([]byte, changepage.Bytes(b.Members)), o)
	}
	err := g.host.openBell(fds[1])
	if err == nil {
		var memory []byte
		if g.kept, memory, err = g.host.extent(&b.X, fds[0]); err == nil {
			err = g.view(memory, o)
		}
	}
	protocol.CloseFiles(fds[0])
	if err != nil {
		return nil, fmt.Errorf("the page of set %d: %w", set, err)
	}
	return g, nil
}

func (g *page) view(memory []byte, o protocol.Options) (err error) {
	if g.lines, err = changepage.View(memory, g.body.Members); err == nil {
		g.member = g.lines.Member(g.body.Place, o.Step, o.Lookahead)
	}
	return err
}

// ring wakes all processes that wait for something on the page.
func (g *page) ring() { g.host.ring() }

// await waits until the page fulfils a condition. It may take as long as other processes
// compute. A process that writes on the page rings the bell.
func (g *page) await(ctx context.Context, op string, condition func() bool) *fault.Fault {
	return g.proc.Engine.Await(&engine.Await{
		Op: fault.Call(op), Rank: -1, User: ctx, Slow: true,
		Ready: func() (bool, *fault.Fault) { return condition(), nil },
	})
}

// awaitIteration waits until the head has found the iteration of a change. The head looks
// for it when a process asks.
func (g *page) awaitIteration(ctx context.Context, op string) *fault.Fault {
	c := g.lines.PausedChange()
	if c == 0 {
		return nil
	}
	g.tell(c)
	return g.await(ctx, op, func() bool { return g.lines.PausedChange() != c })
}

// awaitAside is await for a goroutine beside those that compute.
func (g *page) awaitAside(ctx context.Context, condition func() bool) *fault.Fault {
	return g.proc.Engine.Await(&engine.Await{
		User: ctx, Rank: -1, Aside: true, Ready: func() (bool, *fault.Fault) { return condition(), nil },
	})
}

// decided announces that this process has voted, or decided, on a change.
func (g *page) decided(c changepage.Change) {
	g.ring()
	g.tell(c)
}

// tell asks the agent to look at a change.
func (g *page) tell(c changepage.Change) {
	// A connection that is lost ends the job.
	_ = g.proc.Control.Tell(&protocol.StatusWord{Set: g.set, Change: uint32(c)})
}

func (g *page) retain() { g.users.Add(1) }

// release ends one use. The process does not read the memory after the last one.
func (g *page) release() {
	switch {
	case g.users.Add(-1) > 0:
	case g.over.Load():
		g.member.Leave() // the agent reads that when it needs to
		runtime.KeepAlive(g)
	default:
		leavePage(g.proc, &g.body)
	}
}

// leavePage tells the agent that the process does not touch a page any more.
func leavePage(p *core.Process, b *protocol.PageBody) {
	_ = p.Control.LeaveCommon(b.X) // a lost connection returns the page as well
}
