// SPDX-License-Identifier: Apache-2.0

package testjob

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// Rank is the testing.TB of one rank of a Run.
type Rank struct {
	testing.TB
	of *ranks
	id wire.ProcID
	f  func(t *Rank, world *mpi.Comm)
	// start describes how the rank was started; zero for the ranks of the beginning.
	start protocol.StartProc
	proc  *mpi.Process // nil before it has joined
	name  atomic.Pointer[string]
	// silent says that the rank was killed, and that its reports are only consequences of that.
	silent atomic.Bool

	// of.mu guards the fields below.
	leaves   bool // by a committed change
	unwanted bool // its change was rolled back, or it was killed
	returned bool // its function has returned
	finished bool // a goroutine has finalized or killed it, or is about to
}

func (t *Rank) rename(name string) { t.name.Store(&name) }

// Context carries the rank's process and ends with it.
func (t *Rank) Context() context.Context { return t.proc.Context() }

// Args returns the arguments with which the rank was spawned, without the program's name.
func (t *Rank) Args() []string {
	if len(t.start.Argv) == 0 {
		return nil
	}
	return t.start.Argv[1:]
}

// Error logs a failure and continues.
func (t *Rank) Error(args ...any) {
	t.TB.Helper()
	switch {
	case t.of.end.begun.Load():
		t.TB.Fail()
	case t.silent.Load() || slices.ContainsFunc(args, t.discarded):
	default:
		t.TB.Errorf("%s: %s", *t.name.Load(), fmt.Sprint(args...))
	}
}

// discarded reports whether a value is the error of a newcomer whose change was rolled back.
func (t *Rank) discarded(v any) bool {
	err, ok := v.(error)
	return ok && t.proc.Core().Process().Discards(err)
}

// Errorf logs a failure and continues.
func (t *Rank) Errorf(format string, args ...any) {
	t.TB.Helper()
	if !slices.ContainsFunc(args, t.discarded) {
		t.Error(fmt.Sprintf(format, args...))
	}
}

// Fatal logs a failure and ends the test.
func (t *Rank) Fatal(args ...any) {
	t.TB.Helper()
	t.Error(args...)
	t.failNow(slices.ContainsFunc(args, t.discarded))
}

// Fatalf logs a failure and ends the test.
func (t *Rank) Fatalf(format string, args ...any) {
	t.TB.Helper()
	t.Errorf(format, args...)
	t.failNow(slices.ContainsFunc(args, t.discarded))
}

// FailNow ends the test on all ranks. For a rank that was killed it ends only that rank. Unlike the
// FailNow of testing.T, it may be called on any goroutine of a rank; it ends that goroutine.
func (t *Rank) FailNow() { t.failNow(false) }

func (t *Rank) failNow(discarded bool) {
	if !discarded && !t.silent.Load() {
		t.TB.Fail()
		t.of.end.begin()
	}
	runtime.Goexit()
}

// Grow requests n more ranks in gompi://main. They run the function of the Run; their world is the
// communicator of the newcomers. Grow does not wait: the ranks must watch and adopt the change. An
// error says why the request was refused.
func (t *Rank) Grow(n int) (*Resize, error) {
	return t.resize(change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{n}})
}

// Shrink requests that ranks of gompi://main leave, as Grow does for newcomers.
func (t *Rank) Shrink(ranks ...int) (*Resize, error) {
	r := change.Request{Kind: change.Shrink, In: []uint32{0}}
	var err error
	if r.Out, err = t.inMain(ranks...); err != nil {
		return nil, err
	}
	return t.resize(r)
}

func (t *Rank) resize(r change.Request) (*Resize, error) {
	x := &Resize{proc: t.proc}
	m := &protocol.Submit{Request: r, Parts: make([]protocol.SubmitPart, 1)}
	if err := t.proc.Core().Process().Control.Ask(t.Context(), m, &x.body); err != nil {
		return nil, err
	}
	if x.body.Op == 0 {
		return nil, x.why()
	}
	return x, nil
}

// Kill ends the process of a rank of gompi://main, or with -1 the caller's own process, as a signal
// would. The calls of that rank fail, and its later reports are ignored. A rank that kills itself
// does not return.
func (t *Rank) Kill(rank int) {
	t.TB.Helper()
	ids := []wire.ProcID{t.id}
	var err error
	if rank >= 0 {
		ids, err = t.inMain(rank)
	}
	if err != nil {
		t.Fatal(err)
	}
	if ids[0] != t.id {
		t.of.kill(ids)
		return
	}
	// The rank counts as ended after Goexit, and then the job may close: not before the kill is
	// over, which closes descriptors.
	t.of.kill(ids)
	runtime.Goexit()
}

// inMain returns the processes of ranks in the main set.
func (t *Rank) inMain(ranks ...int) ([]wire.ProcID, error) {
	c := t.proc.Core().Process()
	main, err := c.Main(c.Ctx)
	if err != nil {
		return nil, err
	}
	defer c.Control.ReleaseSet(main.Number)
	ids := make([]wire.ProcID, len(ranks))
	for i, rank := range ranks {
		if rank < 0 || rank >= main.Members.Len() {
			return nil, fmt.Errorf("rank %d of %d in gompi://main", rank, main.Members.Len())
		}
		ids[i] = main.Members.At(rank)
	}
	return ids, nil
}

// Resize is a change of gompi://main that a rank has requested.
type Resize struct {
	proc *mpi.Process
	body protocol.OpBody
}

// Wait waits until the change is done and all leavers are gone. It must not keep the ranks from
// adopting the change. An error says why the change did not happen.
func (x *Resize) Wait() error {
	c := x.proc.Core().Process()
	if err := c.Control.Ask(c.Ctx, &protocol.Await{Op: x.body.Op, Until: change.Done}, &x.body); err != nil {
		return err
	}
	if x.body.State != change.Done {
		return x.why()
	}
	return nil
}

func (x *Resize) why() error { return fmt.Errorf("the change is %v: %s", x.body.State, x.body.Text) }
