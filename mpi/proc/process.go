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

// Kind is that of the requests for processes. Each is active until it has its place, and
// inactive then until Start, or Startall of package mpi: those that are started together
// are one world, in their order, whose mpi://PARENT is the starter's mpi://SELF. It is
// complete when the process has started, with ErrSpawn if it could not be, and goes on at
// once with the second stage, until the process has exited: see ExitOf. The status of Wait,
// Test and the others tells which of these is complete: see StageOf. A place serves
// once. Free gives it back, or lets its process run by itself; of an unfinished Start too.
//
// A process that joins the job is like any other from then on: without --ft its death ends
// the job. How one ends that never does is said by ExitOf, and counts for nothing else.
var Kind = &mpi.RequestKind{Name: "Process", Start: start, Next: next, Free: free}

// Stage is what a request for a process has come to.
type Stage uint8

// The stages, in the order in which a request is complete.
const (
	Allocated Stage = iota + 1 // it has its place
	Started                    // the process has started
	Exited                     // the process has exited
)

// String gives the stage in lower case.
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

// StageOf is the stage with the completion of which a call has returned st: Wait and Test,
// alone and among others, GetStatus. 0: st is of no request for a process, or of one that
// was cancelled, got no place or was inactive. An error beside the status is that of this
// stage. Local.
func StageOf(st mpi.Status) Stage { return Stage(st.Stage) }

// place is the state of a request. Its allocation's lock guards what follows exec.
type place struct {
	of   *allocation
	exec string
	args []string

	id      wire.ProcID // none: it has got no place
	node    string
	started bool
	asking  bool         // the head has not said whether it has started
	freed   bool         // while it was asked: to be given back then
	why     *fault.Fault // it could not be started
	exit    mpi.Request  // the second stage; null: it has not begun, or is with the operation
	exited  *Exit
	lost    *fault.Fault // nobody says how it has exited
}

// Exit is how a process has exited.
type Exit struct {
	Status int    // as gompirun exits with it: its own, or 128 and a signal's number; -1: nobody knows
	How    string // for people
}

// placeOf is the state of op; nil: that is of another kind.
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

// fail is an error of a call on a place.
func (a *allocation) fail(class fault.Class, op fault.Call, format string, args ...any) error {
	return a.p.Self().Core().Fail(class, op, mpi.ProcNull, -1, -1, "", fmt.Errorf(format, args...))
}

var errKind = &mpi.Error{Class: mpi.ErrRequest, Op: string(opSet), Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: errors.New("it is no request for a process")}

// edit changes what is to run at a place that is not started.
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

// SetExec says which program a process is to run, which is not started: its name or path,
// as of Command.Program. ErrRequest otherwise. Local. MPI_Set_exec of Gropp and Lusk.
func SetExec(op *mpi.Persistent, exec string) error {
	return edit(op, func(x *place) { x.exec = exec })
}

// SetArgs says with which arguments, without the program's name. Local. MPI_Set_args.
func SetArgs(op *mpi.Persistent, args ...string) error {
	return edit(op, func(x *place) { x.args = slices.Clone(args) })
}

// Nodename is the host of a place, as the scheduler has chosen it: "" while there is none.
// Local. MPI_Get_nodename.
func Nodename(op *mpi.Persistent) string {
	x := placeOf(op)
	if x == nil {
		return ""
	}
	defer x.lock()()
	return x.node
}

// JSInfo is what the scheduler has filled in, for people and for other schedulers: the
// number of the process in its job, and its host; "" while there is none. Local.
// MPI_Get_jsinfo.
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

// ExitOf is how a process has exited; false: it has not, as far as its request says.
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

// start is that of Kind: they are one world.
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
			_ = c.Control.ReleaseSet(b.World.Number) // a connection that is lost holds nothing
		}
		for i, x := range list {
			x.began(err)
			_ = reqs[i].GrequestComplete() // nobody else does
		}
	}()
	return reqs, nil
}

// startOf is what the head is asked for; the places are taken.
func startOf(list []*place) (*protocol.Spawn, error) {
	m := &protocol.Spawn{Do: protocol.SpawnStart}
	var at wire.MembersBuilder
	var last *place
	for i, x := range list {
		err := func() error {
			defer x.lock()()
			switch {
			case x.id == (wire.ProcID{}):
				return errors.New("it has no place")
			case x.started:
				return errors.New("it was started before")
			case x.exec == "" && len(x.args) > 0:
				return fmt.Errorf("%d arguments of no program", len(x.args))
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

// began: x has started, or why not.
func (x *place) began(err error) {
	p := x.of.p
	defer x.lock()()
	x.asking = false
	switch {
	case x.freed: // it runs by itself
		x.of.left--
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
	_ = exit.GrequestComplete() // nobody else does
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

// next is that of Kind: the second stage.
func next(op *mpi.Persistent) (r mpi.Request) {
	x := op.State().(*place)
	defer x.lock()()
	r, x.exit = x.exit, mpi.Request{}
	return r
}

// free is that of Kind: one message for all of an allocation.
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
			if x.freed = true; !x.exit.IsNull() { // nobody waits for it any more
				_ = x.exit.Free()
				x.exit = mpi.Request{}
			}
			if !x.asking {
				list = append(list, x)
			}
		}
		a.left -= len(list)
		a.giveBack(list)
		unneeded := a.left == 0 && !a.over
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
		return errors.New("a request is given twice")
	case len(m.Ranges()) > protocol.MaxRanges:
		return fmt.Errorf("%d rows of processes, at most %d allowed", len(m.Ranges()), protocol.MaxRanges)
	}
	return nil
}

// Signal sends a signal of the operating system to the processes of some requests, and
// what they have started. Processes that have exited are passed over; ErrRequest for one that is not
// started. What a signal does to a process counts as if it had come from elsewhere.
// Local, but for one round trip to the head. MPI_Signal.
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
