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

// page is the page of a set as one of its members has it.
type page struct {
	proc   *core.Process
	set    uint32
	body   protocol.PageBody
	lines  changepage.Page
	member *changepage.Member
	common *common
	kept   *mapping     // that the page is in; nil: there is nobody else
	users  atomic.Int32 // a watcher, and changes that are not over
	over   atomic.Bool  // another page has come in its place
}

// openPage takes over the descriptors of an answer; -1: the process has what they
// stand for. The page has one user. On an error the process still holds the page.
func openPage(p *core.Process, set uint32, b protocol.PageBody, fds [protocol.FrameFDs]int, o protocol.Options) (*page, error) {
	g := &page{proc: p, set: set, body: b, common: commonOf(p)}
	g.users.Store(1)
	if b.X.Bytes == 0 { // there is nobody else
		return g, g.view(make([]byte, changepage.Bytes(b.Members)), o)
	}
	err := g.common.hear(fds[1])
	if err == nil {
		var memory []byte
		if g.kept, memory, err = g.common.extent(&b.X, fds[0]); err == nil {
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

// ring wakes all who wait for something on the page.
func (g *page) ring() { g.common.ring() }

// await waits until what stands on the page is so, which takes as long as others take
// to come. Who writes there rings the bell.
func (g *page) await(ctx context.Context, op string, so func() bool) *fault.Fault {
	return g.proc.Engine.Await(&engine.Await{
		Op: fault.Call(op), Rank: -1, User: ctx, Slow: true,
		Ready: func() (bool, *fault.Fault) { return so(), nil },
	})
}

// awaitAsked waits until the head has found the iteration of a change, which it does when
// somebody waits for it.
func (g *page) awaitAsked(ctx context.Context, op string) *fault.Fault {
	c := g.lines.PausedChange()
	if c == 0 {
		return nil
	}
	g.tell(c)
	return g.await(ctx, op, func() bool { return g.lines.PausedChange() != c })
}

// awaitAside is await of a goroutine that waits while others compute.
func (g *page) awaitAside(ctx context.Context, so func() bool) *fault.Fault {
	return g.proc.Engine.Await(&engine.Await{
		User: ctx, Rank: -1, Aside: true, Ready: func() (bool, *fault.Fault) { return so(), nil },
	})
}

// decided tells of what this process has decided of a change.
func (g *page) decided(c changepage.Change) {
	g.ring()
	g.tell(c)
}

// tell tells the agent that something of a change is to be looked at.
func (g *page) tell(c changepage.Change) {
	// A connection that is lost ends the job.
	_ = g.proc.Control.Tell(&protocol.StatusWord{Set: g.set, Change: uint32(c)})
}

func (g *page) retain() { g.users.Add(1) }

// release ends one use. Nobody looks at the memory after the last.
func (g *page) release() {
	switch {
	case g.users.Add(-1) > 0:
	case g.over.Load():
		g.member.Leave() // the agent finds that out when it needs to
		runtime.KeepAlive(g)
	default:
		leavePage(g.proc, &g.body)
	}
}

// leavePage: the process does not touch a page any more that it was given.
func leavePage(p *core.Process, b *protocol.PageBody) {
	_ = p.Control.LeaveCommon(b.X) // who has no connection any more holds nothing
}
