// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/mpi"
)

const (
	opStart  fault.Call = "Start"
	opEnd    fault.Call = "Exited"
	opSet    fault.Call = "SetExec"
	opSignal fault.Call = "Signal"
)

// Kind is the kind of the requests for processes. A request passes these stages (StageOf):
//   - Allocate makes it active until it has its slot.
//   - Start, or Startall of package mpi, makes it active until the process has started, with
//     mpi.ErrSpawn if that failed. Processes that are started together are one world, in
//     their order, whose mpi://PARENT is the starter's mpi://SELF.
//   - It is then active again at once, until the process has exited (ExitOf).
//
// A slot serves once. Free gives back the slot, or lets its process run by itself, also while
// Start is under way.
//
// A process that joins the job is like any other from then on: without --ft its death ends
// the job. For a process that never joins only ExitOf reports the end.
var Kind = &mpi.RequestKind{Name: "Process", Start: start, Next: next, Free: free}

// Stage is a stage of a request for a process.
type Stage uint8

// The stages, in the order in which a request is complete.
const (
	Allocated Stage = iota + 1 // it has its slot
	Started                    // the process has started
	Exited                     // the process has exited
)

// String returns the stage in lower case.
func (s Stage) String() string {
	switch s {
	case 0:
		return "none"
	case Allocated:
		return "allocated"
	case Started:
		return "started"
	case Exited:
		return "exited"
	}
	return fmt.Sprintf("stage %d", uint8(s))
}

// StageOf returns the stage whose completion st reports: st is of Wait, Test, GetStatus or
// one of their forms for several requests. An error beside st belongs to this stage. 0 means
// that st is of another kind of request, or of one that was cancelled, got no slot or was
// inactive. Local.
func StageOf(st mpi.Status) Stage { return Stage(st.Stage) }

// place is the state of a request: a slot and its process. The lock of its allocation guards
// the fields behind args.
type place struct {
	of   *allocation
	exec string
	args []string

	id      wire.ProcID // zero: it has no slot
	node    string
	started bool
	asking  bool         // the head has not answered the start
	freed   bool         // if asking: it is given back after the answer
	why     *fault.Fault // why it could not be started
	exit    mpi.Request  // the second stage; null: not begun, or taken by next
	exited  *Exit
	lost    *fault.Fault // why its exit is not known
}

// Exit is how a process has exited.
type Exit struct {
	Status int    // as gompirun reports it: its own, or 128 and the number of a signal; -1: not known
	How    string // the same in words
}

// placeOf returns the state of op; nil: op is of another kind.
func placeOf(op *mpi.Persistent) *place {
	if op == nil || op.Kind() != Kind {
		return nil
	}
	return op.State().(*place)
}

func (x *place) lock() (unlock func()) {
	x.of.mu.Lock()
	return x.of.mu.Unlock
}

// fail returns the error of a call on a slot.
func (a *allocation) fail(class fault.Class, op fault.Call, format string, args ...any) error {
	return a.p.Self().Core().Fail(class, op, mpi.ProcNull, -1, -1, "", fmt.Errorf(format, args...))
}

var errKind = &mpi.Error{Class: mpi.ErrRequest, Op: string(opSet), Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: errors.New("it is not a request for a process")}

// edit changes the program of a slot that is not started.
func edit(op *mpi.Persistent, f func(x *place)) error {
	x := placeOf(op)
	if x == nil {
		return errKind
	}
	unlock := x.lock()
	late := x.started || x.freed
	if !late {
		f(x)
	}
	unlock()
	if late {
		return x.of.fail(fault.Request, opSet, "the process was started or freed before")
	}
	return nil
}

// SetExec chooses the program of a process that is not started, by its name or path, as
// Command.Program does. Local. Error: mpi.ErrRequest if it was started or freed.
// MPI_Set_exec of Gropp and Lusk.
func SetExec(op *mpi.Persistent, exec string) error {
	return edit(op, func(x *place) { x.exec = exec })
}

// SetArgs chooses the arguments of a process that is not started, without the program's
// name. Local. Error: mpi.ErrRequest if it was started or freed. MPI_Set_args.
func SetArgs(op *mpi.Persistent, args ...string) error {
	return edit(op, func(x *place) { x.args = slices.Clone(args) })
}

// Nodename returns the host of a slot, as the scheduler has chosen it; "" before that. Local.
// MPI_Get_nodename.
func Nodename(op *mpi.Persistent) string {
	x := placeOf(op)
	if x == nil {
		return ""
	}
	defer x.lock()()
	return x.node
}

// JSInfo returns the scheduler's information on a slot, for people and for other schedulers:
// the number of the process in its job, and its host; "" before the scheduler has chosen.
// Local. MPI_Get_jsinfo.
func JSInfo(op *mpi.Persistent) string {
	x := placeOf(op)
	if x == nil {
		return ""
	}
	defer x.lock()()
	if x.node == "" {
		return ""
	}
	return fmt.Sprintf("job=%016x process=%d node=%s", uint64(x.id.Job), x.id.Serial, x.node)
}

// ExitOf returns how a process has exited; false: its request has not reported that yet.
// Local.
func ExitOf(op *mpi.Persistent) (Exit, bool) {
	x := placeOf(op)
	if x == nil {
		return Exit{}, false
	}
	defer x.lock()()
	if x.exited == nil {
		return Exit{}, false
	}
	return *x.exited, true
}

// start is the Start of Kind: the processes are one world.
func start(ops []*mpi.Persistent) ([]mpi.Request, error) {
	list := make([]*place, len(ops))
	for i, op := range ops {
		list[i] = op.State().(*place)
	}
	p := list[0].of.p
	m, err := startOf(list)
	if err != nil {
		return nil, err
	}
	reqs := make([]mpi.Request, len(list))
	for i, x := range list {
		reqs[i] = p.GrequestStart(mpi.Grequest{Query: x.queryStart})
	}
	go func() {
		c := p.Core().Process()
		b, err := c.Control.SpawnAll(c.Ctx, m)
		if err == nil {
			_ = c.Control.ReleaseSet(b.World.Number) // a lost connection releases it as well
		}
		for i, x := range list {
			x.began(err)
			_ = reqs[i].GrequestComplete() // this goroutine alone completes it
		}
	}()
	return reqs, nil
}

// startOf returns the message that starts processes, and marks their slots as started.
func startOf(list []*place) (*protocol.Spawn, error) {
	m := &protocol.Spawn{Do: protocol.SpawnStart}
	var at wire.MembersBuilder
	var last *place
	for i, x := range list {
		err := func() error {
			defer x.lock()()
			switch {
			case x.id == (wire.ProcID{}):
				return errors.New("it has no slot")
			case x.started:
				return errors.New("it was started before")
			case x.exec == "" && len(x.args) > 0:
				return fmt.Errorf("%d arguments, but no program", len(x.args))
			}
			x.started, x.asking = true, true
			return nil
		}()
		if err != nil {
			for _, y := range list[:i] {
				unlock := y.lock()
				y.started, y.asking = false, false
				unlock()
			}
			return nil, x.of.fail(fault.Request, opStart, "process %d of %d: %w", i, len(list), err)
		}
		at.Add(wire.Range{First: x.id, Count: 1})
		if last != nil && x.exec == last.exec && slices.Equal(x.args, last.args) {
			m.Parts[len(m.Parts)-1].N++
			continue
		}
		part := protocol.SpawnPart{N: 1}
		if x.exec != "" {
			part.Argv = append([]string{x.exec}, x.args...)
		}
		m.Parts, last = append(m.Parts, part), x
	}
	m.At = at.Members()
	return m, nil
}

// began notes that x has started, or why not.
func (x *place) began(err error) {
	p := x.of.p
	defer x.lock()()
	x.asking = false
	switch {
	case x.freed: // it runs by itself
		x.of.live--
		x.of.giveBack([]*place{x})
		return
	case err != nil:
		x.why = core.Refusal(p.Core().Process().Ctx, fault.Spawn, err)
		return
	}
	x.exit = p.GrequestStart(mpi.Grequest{Query: x.queryExit})
	go x.await(x.exit)
}

// await completes the second stage.
func (x *place) await(exit mpi.Request) {
	c := x.of.p.Core().Process()
	var b protocol.EndBody
	err := c.Control.Ask(c.Ctx, &protocol.Proc{Kind: protocol.KindEnd, Proc: x.id}, &b)
	unlock := x.lock()
	if err != nil {
		x.lost = core.Refusal(c.Ctx, fault.Spawn, err)
	} else {
		x.exited = &Exit{Status: int(b.Status), How: b.Text}
	}
	unlock()
	_ = exit.GrequestComplete() // this goroutine alone completes it
}

func (x *place) queryStart(st *mpi.Status) error {
	st.Stage = uint8(Started)
	return x.failure(opStart, &x.why)
}

func (x *place) queryExit(st *mpi.Status) error {
	st.Stage = uint8(Exited)
	return x.failure(opEnd, &x.lost)
}

func (x *place) failure(op fault.Call, why **fault.Fault) error {
	unlock := x.lock()
	f := *why
	unlock()
	if f == nil {
		return nil
	}
	return x.of.p.Self().Core().Fault(op, mpi.ProcNull, f)
}

// next is the Next of Kind: the second stage.
func next(op *mpi.Persistent) (r mpi.Request) {
	x := op.State().(*place)
	defer x.lock()()
	r, x.exit = x.exit, mpi.Request{}
	return r
}

// free is the Free of Kind: one message for all slots of an allocation.
func free(ops []*mpi.Persistent) error {
	for len(ops) > 0 {
		a := ops[0].State().(*place).of
		n := slices.IndexFunc(ops, func(op *mpi.Persistent) bool { return op.State().(*place).of != a })
		if n < 0 {
			n = len(ops)
		}
		var list []*place
		a.mu.Lock()
		for _, op := range ops[:n] {
			x := op.State().(*place)
			if x.freed = true; !x.exit.IsNull() { // no call can wait for it any more
				_ = x.exit.Free()
				x.exit = mpi.Request{}
			}
			if !x.asking {
				list = append(list, x)
			}
		}
		a.live -= len(list)
		a.giveBack(list)
		unneeded := a.live == 0 && !a.over
		a.mu.Unlock()
		if unneeded {
			a.cancel()
		}
		ops = ops[n:]
	}
	return nil
}

// sendable reports whether the head takes a list of processes.
func sendable(m wire.Members) error {
	switch {
	case !m.Check():
		return errors.New("the same request is given twice")
	case len(m.Ranges()) > protocol.MaxRanges:
		return fmt.Errorf("%d ranges of processes, at most %d allowed", len(m.Ranges()), protocol.MaxRanges)
	}
	return nil
}

// Signal sends a signal of the operating system to the processes of requests, and to the
// processes that these have started. It skips processes that have exited. A death by the
// signal counts as any other. Local, but for one round trip to the head. Errors:
// mpi.ErrRequest for a process that is not started; mpi.ErrArg. MPI_Signal.
func Signal(signal syscall.Signal, ops ...*mpi.Persistent) error {
	if len(ops) == 0 {
		return nil
	}
	var b wire.MembersBuilder
	for _, op := range ops {
		x := placeOf(op)
		if x == nil {
			return errKind
		}
		unlock := x.lock()
		ready := x.started && !x.freed
		unlock()
		if !ready {
			return x.of.fail(fault.Request, opSignal, "the process is not started")
		}
		b.Add(wire.Range{First: x.id, Count: 1})
	}
	a, m := placeOf(ops[0]).of, b.Members()
	if err := sendable(m); err != nil {
		return a.fail(fault.Arg, opSignal, "%w", err)
	}
	if signal < 1 || signal > protocol.MaxSignal {
		return a.fail(fault.Arg, opSignal, "signal %d", int(signal))
	}
	c := a.p.Core().Process()
	if err := c.Control.Ask(c.Ctx, &protocol.Signal{Signal: uint8(signal), Members: m}, &protocol.Empty{}); err != nil {
		return a.p.Self().Core().Fault(opSignal, mpi.ProcNull, core.Refusal(c.Ctx, fault.Spawn, err))
	}
	return nil
}
