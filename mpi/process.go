// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gompi/internal/base/wire"
	"gompi/internal/core"
)

// Process is one rank's library: an engine and the communicators made from its
// process sets. It is a value; many may live in one program (package mpitest).
type Process struct {
	core   core.Process
	ctx    context.Context // carries the process
	rootMu sync.Mutex      // held to make world or own
	world  atomic.Pointer[Comm]
	own    atomic.Pointer[Comm]
	parent *Comm      // nil until Parent is called; guarded by rootMu, of a late one by lateMu
	lateMu sync.Mutex // held while others are waited for that attach the process

	buffer sendBuffer

	bufferMu sync.Mutex
	buffers  []*sendBuffer // attached, guarded by bufferMu

	kinds sync.Mutex // see lockKind

	scalars sync.Pool
	vectors sync.Pool
}

// start makes a zero process from its parts.
func (p *Process) start(b core.Boot) error {
	p.scalars.New = func() any { return new(scalar) }
	p.vectors.New = func() any { return &vectors{pool: &p.vectors} }
	if err := p.core.Start(&b); err != nil {
		return err
	}
	p.ctx = context.WithValue(p.core.Ctx, processKey{}, p)
	p.core.Listen(b)
	return nil
}

// World is the communicator of the processes that were started together:
// mpi://WORLD of this process. It is made at first use, by whichever goroutine.
func (p *Process) World() *Comm {
	if c := p.world.Load(); c != nil {
		return c
	}
	p.rootMu.Lock()
	defer p.rootMu.Unlock()
	if c := p.world.Load(); c != nil {
		return c
	}
	made, members, _ := p.core.InSet(p.core.World)
	c := p.root(made, members, "WORLD")
	if o := p.core.WorldOutput(); o != nil {
		c.core.Over([]*core.Output{o})
	}
	p.core.Lend(&c.core.Comm)
	c.core.UseGiven(p.core.World)
	p.world.Store(c)
	return c
}

// Self is the communicator of this process alone. It is made at first use.
func (p *Process) Self() *Comm {
	if c := p.own.Load(); c != nil {
		return c
	}
	p.rootMu.Lock()
	defer p.rootMu.Unlock()
	if c := p.own.Load(); c != nil {
		return c
	}
	made := core.Agreed{Op: "Self", ID: wire.ContextID{Creator: p.core.Self}}
	c := p.root(made, core.Groups{Local: wire.MembersOf(p.core.Self)}, "SELF")
	p.own.Store(c)
	return c
}

// root makes a communicator that every process has.
func (p *Process) root(a core.Agreed, g core.Groups, name string) *Comm {
	c, err := p.newComm(nil, a, g, name)
	if err != nil {
		panic(fmt.Sprintf("gompi: BUG: %v", err))
	}
	return c
}

// Context ends when the job is being ended or the launcher is lost. It carries
// the process: see FromContext.
func (p *Process) Context() context.Context { return p.ctx }

func (p *Process) scalar() *scalar     { return p.scalars.Get().(*scalar) }
func (p *Process) putScalar(s *scalar) { p.scalars.Put(s) }

// Finalize ends the process's part in the job: it waits until what was sent
// has left, and tells the launcher. Every process must call it before it
// exits; it is not a barrier. The attributes of SELF are deleted first. It
// returns an error if requests were never completed. Nothing may be called
// afterwards, but sessions may be opened (sessions.Open). MPI 4.1 section 11.2.2.
//
// A session that was opened without the process's context holds the process, which
// takes part in the job as long as there is one.
func (p *Process) Finalize() error { return p.leave((*Process).finalizeProgram) }

// finalized is the error of a call of a process that has left.
func finalized(op string) error {
	return &Error{Class: ErrFinalized, Op: op, Peer: ProcNull, Tag: -1, Got: -1, Want: -1}
}

func (p *Process) finalize() error {
	if !p.core.End() {
		return finalized("Finalize")
	}
	return p.end((*core.Process).Finalize)
}

// finalizeProgram is finalize of the program's process. One that was launched joins its job
// once, so it rests: sessions may be opened yet. Of another one the next use joins anew.
func (p *Process) finalizeProgram() error {
	if p.core.Launched() {
		program.over = true
		return p.rest()
	}
	program.proc, program.rests = nil, false
	return p.finalize()
}

// quitProgram is finalizeProgram where the program ends at once.
func (p *Process) quitProgram() error {
	program.proc, program.rests = nil, false
	if !p.core.End() {
		return finalized("Finalize")
	}
	return p.end((*core.Process).Quit)
}

// rest is finalize of a process that may be used again, as long as the program runs.
func (p *Process) rest() error {
	if p.core.Ended() {
		return finalized("Finalize")
	}
	program.rests = true
	return p.end((*core.Process).Rest)
}

// end ends what the program has begun.
func (p *Process) end(last func(*core.Process) (int, error)) error {
	defer p.core.Leaving("Finalize")()
	var err error
	if c := p.own.Load(); c != nil {
		err = c.deleteAttrs()
	}
	err = errors.Join(err, p.detachAll())
	left, ended := last(&p.core)
	if err == nil {
		err = ended
	}
	if err == nil && left > 0 {
		err = fmt.Errorf("gompi: Finalize: %s leaves %d requests that were never completed by Wait or Test", p.core.Called(), left)
	}
	return err
}
