// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gompi/collectives/selection"

	"gompi/internal/base/fault"
	"gompi/internal/base/settings"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/protocol"
	"gompi/internal/engine"
	"gompi/internal/host/segment"
	"gompi/internal/host/wait"
	"gompi/transport/tuning"
)

// Process is the library of one rank, below its handles: an engine, its contexts, and
// the control plane, which reports on others. The exported fields are immutable after Start.
type Process struct {
	Engine  *engine.Engine
	Control Control
	Self    wire.ProcID
	Table   *selection.Table // selects the algorithms of new communicators
	Check   *Checker         // nil without GOMPI_CHECK
	sayLeft func(line string)
	calls   *CallTable      // compares calls of ranks in one process, without GOMPI_CHECK
	Ctx     context.Context // ends when the job does
	World   wire.Set        // the processes that were started together
	// Parent is the set of processes that spawned the world; its Number is 0 if there is
	// none. Family is true if both sets have an intercommunicator, with the ids of Parent.
	Parent wire.Set
	Family bool
	// Late is true if the process that started this one may connect with it later.
	Late      bool
	Transport string // the transport between ranks of a host; "" if the process has none
	// Change is the change that the process was started for; nil if there is none.
	Change *protocol.ChangeBody

	usable    int                      // processors that the job may use on this host
	given     []protocol.Preallocated  // memory of sets, by the agent
	setting   func(name string) string // see Setting
	otherJobs *otherJobs               // nil: the process is a singleton

	lender    atomic.Pointer[Comm] // see Lend; nil: none
	serial    atomic.Uint32        // of contexts made here; 0 is SELF
	kept      sync.Map             // see Keep
	perHost   int                  // see Comm.Hosts
	far       bool                 // the job has several hosts
	neighbors atomic.Int32         // processes of the job on this host

	changed   atomic.Uint32 // see Changed; 0: none
	called    called
	undecided undecided

	returnMu sync.Mutex
	onReturn map[*func()]struct{} // guarded by returnMu

	cancel context.CancelCauseFunc
	events sync.WaitGroup
	book   *callreg.Registry
	sleeps wait.Sleeper
	os     bool // a process of the operating system, which may act on itself
	share  processors
	done   atomic.Bool
}

var errFinalized = errors.New("gompi: the process was finalized")

// abortGrace is how long an aborting process waits for its end by the
// launcher before it exits by itself.
const abortGrace = 5 * time.Second

// Start makes a zero process one of these parts; Listen must follow, or Stop.
func (p *Process) Start(b *Boot) error {
	cfg := engine.Config{
		Self: b.Welcome.Self, Control: b.Control, Transports: b.Transports, Sleeper: b.Sleeper,
		Policy: b.Policy, Room: p.roomForUnexpected, Book: b.Book,
	}
	if b.Setting("GOMPI_CHECK") == "1" {
		p.Check = new(Checker)
		cfg.Check, cfg.Blocked = true, p.Check.notInside
	} else {
		p.calls = b.Calls
	}
	p.sayLeft = b.SayLeft
	var eager, spin, perHost int64
	for _, k := range []struct {
		knob settings.Range
		to   *int64
	}{{settings.Eager, &eager}, {settings.Credit, &cfg.Credit}, {settings.Budget, &cfg.Budget}, {settings.Spin, &spin}, {settings.HostsPretend, &perHost}} {
		var err error
		if *k.to, err = b.Number(k.knob); err != nil {
			return err
		}
	}
	cfg.EagerMax = int(eager)
	if spin > 0 {
		cfg.Policy.Spin = int(spin)
	}
	var err error
	if p.Table, err = b.Table(); err != nil {
		return err
	}
	p.Control, p.Self, p.book, p.sleeps, p.os, p.perHost = b.Control, b.Welcome.Self, b.Book, b.Sleeper, b.Policy.OS, int(perHost)
	p.World, p.Change, p.far = b.Welcome.World, b.Welcome.Change, b.Welcome.Hosts > 1
	p.Parent, p.Family, p.Late = b.Welcome.Parent, b.Welcome.Intercomm, b.Welcome.MayAttach
	p.given, p.setting, p.usable, p.otherJobs = b.Welcome.Preallocated, b.Setting, b.Welcome.UsableCPUs, b.otherJobs
	if len(b.Transports) > 0 { // the preferred one first
		p.Transport = b.Transports[0].Caps().Name
	}
	p.neighbors.Store(int32(b.Welcome.LocalProcs))
	p.Ctx, p.cancel = context.WithCancelCause(context.Background())
	if p.Engine, err = engine.New(cfg); err != nil {
		return fmt.Errorf("gompi: %w", err)
	}
	return nil
}

// Setting returns the head's value of a setting by the name of its variable, "" if it is
// not set.
func (p *Process) Setting(name string) string { return p.setting(name) }

// Crowded reports whether the host would be oversubscribed: whether the job's processes
// here, at least least of them, and more computing threads exceed the usable processors. It
// returns false if their number is not known.
func (p *Process) Crowded(least, more int) bool {
	return p.usable > 0 && max(int(p.neighbors.Load()), least)+more > p.usable
}

// Neighbors is how many processes of the job are on this host, this one among them.
func (p *Process) Neighbors() int { return int(p.neighbors.Load()) }

// Roams reports whether threads of this process may leave for a moment the processors to
// which it is bound: they may if the launcher chose these, and not the user.
func (p *Process) Roams() bool { return p.os && p.Setting("GOMPI_BIND") == "" }

// Usable returns how many processors the job may use on this host, 0 if that is not known.
func (p *Process) Usable() int { return p.usable }

// Stop ends a process that has not listened.
func (p *Process) Stop(why error) {
	p.cancel(why)
	p.Engine.Close(p.Ctx)
}

// Listen passes the events of the control plane to the engine from now on. Before it, a
// process of the operating system has the processors that it was started on: mostly one,
// where its goroutines wake no other thread.
func (p *Process) Listen(b Boot) {
	p.events.Go(func() { p.listen(b) })
	if p.os {
		p.share.give(b.Welcome.MaxProcs, b.Welcome.LocalProcs, b.Welcome.UsableCPUs)
	}
}

func (p *Process) listen(b Boot) {
	for {
		ev, err := p.Control.Next()
		if err != nil {
			if !p.done.Load() {
				p.lost(b, fmt.Errorf("gompi: the connection to gompirun is lost: %w", protocol.Without(err, protocol.ErrLost)))
			}
			return
		}
		switch ev.Kind {
		case protocol.EvDied:
			p.Engine.ProcFailed(ev.Proc, ev.Text)
		case protocol.EvGone:
			how := "" // in order
			if ev.Text != protocol.LeftInOrder {
				how = "has ended and never joined the job: " + ev.Text
			}
			p.Engine.ProcGone(ev.Proc, how)
		case protocol.EvDisconnected:
			p.Engine.ProcCut(ev.Proc, ev.Text)
		case protocol.EvNone:
			p.Engine.ProcNone(ev.Proc)
		case protocol.EvPing:
			p.Engine.Pinged(ev.Proc, ev.ID)
		case protocol.EvPong:
			p.Engine.Ponged(ev.Proc, ev.ID)
		case protocol.EvStacks:
			own := stacks() // first: they tell what may keep Queues
			waits := p.Calls()
			p.Control.Stacks(protocol.Stacks{ID: ev.ID, Calls: append(waits, atWork(own, waits)...), Queues: []byte(p.Engine.Queues()), Stacks: withoutOwn(own)})
		case protocol.EvHost:
			p.neighbors.Store(int32(ev.LocalProcs))
			if pol, ok := b.Joined(ev); ok {
				p.share.give(ev.MaxProcs, ev.LocalProcs, b.Welcome.UsableCPUs)
				p.Engine.SetPolicy(pol)
			}
		case protocol.EvCommitted, protocol.EvUndone:
			p.Decided(uint32(ev.ID), ev.Kind == protocol.EvCommitted)
		case protocol.EvJobOver:
			p.jobOver(wire.JobID(ev.ID))
		case protocol.EvAbort:
			p.lost(b, fmt.Errorf("gompi: the job is ending: %s", ev.Text))
		}
	}
}

// Calls returns the calls in which the process waits, and for which ranks.
func (p *Process) Calls() []callreg.Entry { return p.Engine.Calls() }

func (p *Process) lost(b Boot, why error) {
	p.cancel(why)
	if b.Lost != nil {
		b.Lost(why)
	}
}

// roomForUnexpected returns how many bytes of messages without a receive this process may
// hold: its share of a quarter of the free memory.
func (p *Process) roomForUnexpected() int64 {
	return segment.FreeMemory() / 4 / int64(max(p.neighbors.Load(), 1))
}

// WorldRank returns the rank in mpi://WORLD, for messages; the communicator need not exist.
func (p *Process) WorldRank() int { return p.World.Members.Index(p.Self) }

// End claims the end of the process, which comes once.
func (p *Process) End() (first bool) { return !p.done.Swap(true) }

// Ended reports whether End was called.
func (p *Process) Ended() bool { return p.done.Load() }

// Rest ends all that the process has begun, so that the program may end at any moment, and
// tells the head. It frees communicators of several processes; others do not use the
// process until Wake. left is the number of requests that were never completed.
func (p *Process) Rest() (left int, err error) {
	p.tell()
	p.tellLeft()
	left = p.Engine.Live()
	if err = p.Engine.Rest(p.Ctx); err == nil {
		err = p.say(protocol.KindIdle)
	}
	return left, err
}

// Wake ends a Rest.
func (p *Process) Wake() error { return p.say(protocol.KindBusy) }

// tell prints, under gompirun -v, by which protocols messages went to each other rank of the
// world.
func (p *Process) tell() {
	if p.Setting("GOMPI_VERBOSE") != "1" {
		return
	}
	for rank, id := range p.World.Members.All() {
		if name, text := p.Engine.PeerStats(id); text != "" && id != p.Self {
			fmt.Fprintf(os.Stderr, "gompi: %s to rank %d by %s: %s\n", p.Called(), rank, name, text)
		}
	}
}

// SetWays chooses which way messages go between processes of a host. The tuner uses it.
func (p *Process) SetWays(w tuning.Table) { p.Engine.SetThresholds(w) }

// Quit is Finalize for a program that ends at once: the kernel frees the rest. Nothing may
// use the process afterwards.
func (p *Process) Quit() (left int, err error) {
	p.tell()
	p.tellLeft()
	left = p.Engine.Live()
	if err = p.Engine.Settle(p.Ctx); err == nil {
		err = p.say(protocol.KindFinalize)
	}
	return left, err
}

func (p *Process) say(k protocol.Kind) error {
	if err := p.Control.Say(&protocol.Empty{Kind: k}); err != nil {
		return fmt.Errorf("gompi: %w", err)
	}
	return nil
}

// Finalize ends the process's part in the job after End. left is the number of
// requests that were never completed.
func (p *Process) Finalize() (left int, err error) {
	p.tell()
	p.tellLeft()
	left = p.Engine.Live()
	err = p.Engine.Close(p.Ctx)
	if ferr := p.Control.Finalize(); err == nil && ferr != nil {
		err = fmt.Errorf("gompi: Finalize: %w", ferr)
	}
	p.Control.Close()
	p.events.Wait()
	p.share.end()
	p.cancel(errFinalized)
	return left, err
}

// Retire ends what the process has begun with others, before it leaves them:
// see engine.Retire. End follows.
func (p *Process) Retire(ctx context.Context) (undone []string, f *fault.Fault) {
	defer p.Leaving("Commit")()
	if undone, f = p.Engine.Retire(ctx); f == nil && p.Check != nil {
		p.Check.retired()
	}
	return undone, f
}

// OnReturn has f called when the function of Main, or of a rank in a test, has
// returned, before the process leaves; the result takes that back.
func (p *Process) OnReturn(f func()) (forget func()) {
	p.returnMu.Lock()
	defer p.returnMu.Unlock()
	if p.onReturn == nil {
		p.onReturn = map[*func()]struct{}{}
	}
	p.onReturn[&f] = struct{}{}
	return func() {
		p.returnMu.Lock()
		defer p.returnMu.Unlock()
		delete(p.onReturn, &f)
	}
}

// Returned calls what OnReturn was given.
func (p *Process) Returned() {
	p.returnMu.Lock()
	list := slices.Collect(maps.Keys(p.onReturn))
	p.returnMu.Unlock()
	for _, f := range list {
		(*f)()
	}
}

// Kill ends the process without a message to anybody, for tests: pending and later calls
// fail with fault.Finalized. cut, if not nil, is called when the process can send nothing
// more, and closes its connections.
func (p *Process) Kill(cut func()) {
	if !p.End() {
		return
	}
	p.Control.Close() // a dead process does not answer questions about itself
	if cut != nil {
		cut()
	}
	p.cancel(errFinalized)
	p.Engine.Close(p.Ctx)
	p.events.Wait()
}

// Leaving enters into the registry of blocking calls that the process leaves; the result
// removes the entry.
func (p *Process) Leaving(how string) (stay func()) { return p.Noted(fault.Call(how)) }

// Noted enters a call that waits for the head into the registry of blocking calls, until
// the result is called.
func (p *Process) Noted(op fault.Call) (done func()) {
	if p.book == nil {
		return func() {}
	}
	slot := p.book.Enter(&callreg.Entry{Op: string(op), Peer: callreg.NoPeer, Tag: callreg.NoTag, Since: time.Now()})
	return func() { p.book.Leave(slot) }
}

// Abort ends the whole job with the low eight bits of code as exit status; 0 becomes 1. The
// launcher prints the whole code. Abort does not return.
func (p *Process) Abort(code int, msg string) {
	if p.os {
		if p.Control.Abort(code, msg) == nil {
			// The launcher's signal ends this process; the exit is for a
			// launcher that does not come to it.
			time.Sleep(abortGrace)
		}
		os.Exit(abortStatus(code))
	}
	p.Control.Abort(code, msg)
	runtime.Goexit()
}

// abortStatus is never 0: that would be success, and the system keeps eight bits.
func abortStatus(code int) int {
	if code &= 0xff; code != 0 {
		return code
	}
	return 1
}

// Hear makes each write to fd wake the process if it sleeps, so that its waits look again.
// fd is an eventfd that nobody reads; Unhear must come before it is closed.
func (p *Process) Hear(fd int) error { return p.sleeps.AddBell(fd) }

// Unhear ends Hear. It does nothing when the process has ended.
func (p *Process) Unhear(fd int) { p.sleeps.DropBell(fd) }

// Keep returns the value that make made at the first Keep with this key in this process.
// The key is of a type of the caller's package.
func (p *Process) Keep(key any, make func() any) any {
	if v, ok := p.kept.Load(key); ok {
		return v
	}
	v, _ := p.kept.LoadOrStore(key, make())
	return v
}

// NewSerials reserves n consecutive serials of contexts that this process
// creates. 0: there are no more.
func (p *Process) NewSerials(n uint32) uint32 {
	for {
		last := p.serial.Load()
		if last >= wire.MaxSerial-n {
			return 0
		}
		if p.serial.CompareAndSwap(last, last+n) {
			return last + 1
		}
	}
}
