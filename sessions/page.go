// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"gompi/internal/calls"
	"gompi/internal/control"
	"gompi/internal/core"
	"gompi/internal/engine"
	"gompi/internal/fault"
	"gompi/internal/segment"
	"gompi/internal/setpage"
)

// page is the page of a set as one of its members has it, and the bell of all who
// wait for something there.
type page struct {
	proc   *core.Process
	set    uint32
	body   control.FollowBody
	lines  setpage.Page
	member *setpage.Member
	memory []byte
	unmap  runtime.Cleanup
	users  atomic.Int32 // a watcher, and changes that are not over
	stop   func() bool

	mu   sync.Mutex
	bell int // -1: the process has ended, or the page was left
}

// openPage takes over the descriptors of an answer. The page has one user.
func openPage(p *core.Process, set uint32, b control.FollowBody, fds [control.FrameFDs]int, o control.Options) (*page, error) {
	g := &page{proc: p, set: set, body: b, bell: fds[1]}
	g.users.Store(1)
	if b.X.Bytes == 0 { // there is nobody else
		g.stop = func() bool { return false }
		return g, g.view(make([]byte, setpage.Bytes(b.Members)), o)
	}
	err := g.open(fds[0], o)
	control.CloseFiles(fds[0])
	if err != nil {
		g.silence()
		g.leave()
		return nil, fmt.Errorf("the page of set %d: %w", set, err)
	}
	// Should the process end before the page is left, one of its goroutines may
	// still look at the memory.
	memory := g.memory
	g.unmap = runtime.AddCleanup(g, func(m []byte) { segment.Unmap(m) }, memory)
	g.stop = context.AfterFunc(p.Ctx, g.silence)
	return g, nil
}

func (g *page) open(arena int, o control.Options) error {
	if arena < 0 || g.bell < 0 {
		return fmt.Errorf("this process can open no more files (ulimit -n): %w", syscall.EMFILE)
	}
	x := &g.body.X
	if x.Off < 0 || x.Off%int64(os.Getpagesize()) != 0 || x.Bytes < int64(setpage.Bytes(g.body.Members)) || x.Off > x.Total-x.Bytes {
		return fmt.Errorf("%d lines in %d bytes at %d of %d", g.body.Members, x.Bytes, x.Off, x.Total)
	}
	err := segment.CheckArena(arena, x.Total)
	if err != nil {
		return err
	}
	if g.memory, err = segment.Map(arena, x.Off, x.Bytes, true); err != nil {
		return err
	}
	if err := g.view(g.memory, o); err != nil {
		return err
	}
	return g.proc.Hear(g.bell)
}

func (g *page) view(memory []byte, o control.Options) (err error) {
	if g.lines, err = setpage.View(memory, g.body.Members); err == nil {
		g.member = g.lines.Member(g.body.Place, o.Step, o.Lookahead)
	}
	return err
}

// ring wakes all who wait for something on the page.
func (g *page) ring() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.bell >= 0 {
		control.Ring(g.bell)
	}
}

// await waits until what stands on the page is so. Who writes there rings the bell.
func (g *page) await(ctx context.Context, op string, so func() bool) *fault.Fault {
	return g.proc.Engine.Await(&engine.Await{
		Op: calls.Name(op), Rank: -1, User: ctx,
		Ready: func() (bool, *fault.Fault) { return so(), nil },
	})
}

// swapped tells of what this process has swapped in the word of a change.
func (g *page) swapped(c setpage.Change) {
	g.ring()
	// A connection that is lost ends the job.
	_ = g.proc.Control.Tell(&control.Word{Set: g.set, Change: uint32(c)})
}

// silence closes the bell.
func (g *page) silence() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.bell >= 0 {
		g.proc.Unhear(g.bell)
		control.CloseFiles(g.bell)
		g.bell = -1
	}
}

func (g *page) retain() { g.users.Add(1) }

// release ends one use. Nobody looks at the memory after the last.
func (g *page) release() {
	if g.users.Add(-1) > 0 {
		return
	}
	g.stop()
	g.silence()
	g.unmap.Stop()
	g.leave()
}

func (g *page) leave() {
	if g.memory != nil {
		segment.Unmap(g.memory)
	}
	_ = g.proc.Control.LeaveCommon(g.body.X) // who has no connection any more holds nothing
}
