// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gompi/collectives/selection"
	"gompi/internal/control"
	"gompi/internal/core"
	"gompi/internal/engine"
	"gompi/internal/knob"
	"gompi/internal/rollcall"
	"gompi/internal/wire"
)

// Process is one rank's library: an engine and the communicators made from its
// process sets. It is a value; many may live in one program (package mpitest).
type Process struct {
	e     *engine.Engine
	ctl   core.Control
	self  wire.ProcID
	world *Comm
	own   *Comm
	table *selection.Table

	check  *checker // nil without GOMPI_CHECK
	buffer sendBuffer

	bufferMu sync.Mutex
	buffers  []*sendBuffer // attached, guarded by bufferMu

	serial  atomic.Uint32 // of contexts made here; 0 is SELF
	scalars sync.Pool
	vectors sync.Pool
	kept    sync.Map // see Keep

	perHost   int          // see hostOf
	neighbors atomic.Int32 // processes of the job on this host

	ctx    context.Context // ends when the job does
	cancel context.CancelCauseFunc
	events sync.WaitGroup
	book   *rollcall.Book
	local  bool // an operating system process, which may act on itself
	done   atomic.Bool
}

// Start makes a process from its parts and its world. For packages of this
// module; programs call Init or Main.
func Start(b core.Boot) (*Process, error) {
	eager, err := b.Number(knob.Eager)
	if err != nil {
		return nil, err
	}
	credit, err := b.Number(knob.Credit)
	if err != nil {
		return nil, err
	}
	budget, err := b.Number(knob.Budget)
	if err != nil {
		return nil, err
	}
	spin, err := b.Number(knob.Spin)
	if err != nil {
		return nil, err
	}
	if spin > 0 {
		b.Policy.Spin = int(spin)
	}
	perHost, err := b.Number(knob.HostsPretend)
	if err != nil {
		return nil, err
	}
	table, err := b.Table()
	if err != nil {
		return nil, err
	}
	p := &Process{book: b.Book, ctl: b.Control, self: b.Welcome.Self, table: table, perHost: int(perHost), local: b.Policy.OS}
	p.neighbors.Store(int32(b.Welcome.LocalProcs))
	if b.Setting("GOMPI_CHECK") == "1" {
		p.check = new(checker)
	}
	p.scalars.New = func() any { return new(scalar) }
	p.vectors.New = func() any { return &vectors{pool: &p.vectors} }
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	var blocked func()
	if p.check != nil {
		blocked = p.check.notInside
	}
	p.e, err = engine.New(engine.Config{
		Self: p.self, Control: b.Control, Transports: b.Transports, Sleeper: b.Sleeper,
		Policy: b.Policy, EagerMax: int(eager), Credit: credit, Budget: budget, Room: p.roomForUnexpected,
		Book: b.Book, Check: p.check != nil, Blocked: blocked,
	})
	if err != nil {
		return nil, fmt.Errorf("gompi: %w", err)
	}
	fail := func(err error) (*Process, error) {
		p.cancel(err)
		p.e.Close(p.ctx)
		return nil, err
	}
	world := b.Welcome.World
	if p.world, err = p.newComm(world.Context(p.self.Job), world.Members, "WORLD"); err != nil {
		return fail(err)
	}
	if p.own, err = p.newComm(wire.ContextID{Creator: p.self}, wire.MembersOf(p.self), "SELF"); err != nil {
		return fail(err)
	}
	p.events.Go(func() { p.listen(b) })
	return p, nil
}

// listen passes what the control plane tells to the engine.
func (p *Process) listen(b core.Boot) {
	for {
		ev, err := p.ctl.Next()
		if err != nil {
			if !p.done.Load() {
				p.lost(b, fmt.Errorf("gompi: the connection to gompirun is lost: %w", err))
			}
			return
		}
		switch ev.Kind {
		case control.EvDied:
			p.e.ProcFailed(ev.Proc, ev.Text)
		case control.EvGone:
			how := "" // in order
			if ev.Text != control.LeftInOrder {
				how = "has ended and never joined the job: " + ev.Text
			}
			p.e.ProcGone(ev.Proc, how)
		case control.EvCut:
			p.e.ProcCut(ev.Proc, ev.Text)
		case control.EvNone:
			p.e.ProcNone(ev.Proc)
		case control.EvPing:
			p.e.Pinged(ev.Proc, ev.ID)
		case control.EvPong:
			p.e.Ponged(ev.Proc, ev.ID)
		case control.EvStacks:
			own := stacks() // first: they tell what may keep Queues
			p.ctl.Stacks(ev.ID, []byte(p.e.Queues()), own)
		case control.EvHost:
			p.neighbors.Store(int32(ev.LocalProcs))
			if pol, ok := b.Joined(ev); ok {
				p.e.SetPolicy(pol)
			}
		case control.EvAbort:
			p.lost(b, fmt.Errorf("gompi: the job is ending: %s", ev.Text))
		}
	}
}

func (p *Process) lost(b core.Boot, why error) {
	p.cancel(why)
	if b.Lost != nil {
		b.Lost(why)
	}
}

// World is the communicator of the processes that were started together:
// mpi://WORLD of this process.
func (p *Process) World() *Comm { return p.world }

// Self is the communicator of this process alone.
func (p *Process) Self() *Comm { return p.own }

// Context ends when the job is being ended or the launcher is lost.
func (p *Process) Context() context.Context { return p.ctx }

func (p *Process) scalar() *scalar     { return p.scalars.Get().(*scalar) }
func (p *Process) putScalar(s *scalar) { p.scalars.Put(s) }

// ID is the process's id, for messages to people.
func (p *Process) ID() wire.ProcID { return p.self }

// Finalize ends the process's part in the job: it waits until what was sent
// has left, and tells the launcher. Every process must call it before it
// exits; it is not a barrier. The attributes of SELF are deleted first. It
// returns an error if requests were never completed. Nothing may be called afterwards. MPI 4.1 section 11.2.2.
func (p *Process) Finalize() error {
	if p.done.Swap(true) {
		return &Error{Class: ErrFinalized, Op: "Finalize", Peer: ProcNull, Tag: -1, Got: -1, Want: -1}
	}
	defer p.leaving("Finalize")()
	err := errors.Join(p.own.deleteAttrs(), p.detachAll())
	left := p.e.Live()
	if cerr := p.e.Close(p.ctx); err == nil {
		err = cerr
	}
	if ferr := p.ctl.Finalize(); err == nil && ferr != nil {
		err = fmt.Errorf("gompi: Finalize: %w", ferr)
	}
	p.ctl.Close()
	p.events.Wait()
	p.cancel(errFinalized)
	if err == nil && left > 0 {
		err = fmt.Errorf("gompi: Finalize: rank %d leaves %d requests that were never completed by Wait or Test", p.world.Rank(), left)
	}
	return err
}

// leaving notes in the roll call that the process is on its way out; the result
// takes the note back.
func (p *Process) leaving(how string) (stay func()) {
	if p.book == nil {
		return func() {}
	}
	slot := p.book.Enter(&rollcall.Entry{Op: how, Peer: rollcall.NoPeer, Tag: rollcall.NoTag, Since: time.Now()})
	return func() { p.book.Leave(slot) }
}

var errFinalized = errors.New("gompi: the process was finalized")

// abortGrace is how long an aborting process waits for its end by the
// launcher before it exits by itself.
const abortGrace = 5 * time.Second
