// SPDX-License-Identifier: Apache-2.0

package mpitest

import (
	"testing"
	"time"

	"gompi/internal/test/testjob"
	"gompi/mpi"
)

// Deadline is how long a Run may take without the option Within: one minute, or six under
// the race detector.
const Deadline = slower * time.Minute

// T is a testing.TB for one rank. Its Context carries the rank's process
// (mpi.FromContext), and ends when the process does.
//
// Fatal, FailNow and Skip end the test: the calls of the other ranks fail, and the ranks
// return. The test does not report errors that follow from that. Unlike those of a
// testing.T, FailNow and Fatal may be called on any goroutine of a rank, and end that
// goroutine.
type T struct {
	testing.TB
	rank *testjob.Rank
}

// Grow requests n more ranks in gompi://main. They run the function of the Run; their world
// is the communicator of the newcomers. One rank calls it. It does not wait: the ranks must
// watch the set and commit the change (package sessions). An error says why the request was
// refused.
func (t *T) Grow(n int) (*Resize, error) { return resized(t.rank.Grow(n)) }

// Shrink requests that ranks of gompi://main leave, as Grow requests more. A rank that
// leaves is finalized when its function returns.
func (t *T) Shrink(ranks ...int) (*Resize, error) { return resized(t.rank.Shrink(ranks...)) }

// Args returns the arguments with which the rank was spawned, without the program's name.
func (t *T) Args() []string { return t.rank.Args() }

// Kill ends the process of a rank of gompi://main as SIGKILL does, or with -1 that of the
// caller, which need not be in the set. Calls of that rank fail, and the test does not report
// its errors from then on. The others learn of the death as under --ft. A rank that kills
// itself does not return from Kill.
func (t *T) Kill(rank int) { t.TB.Helper(); t.rank.Kill(rank) }

// Resize is a change of gompi://main that a rank has requested.
type Resize struct{ r *testjob.Resize }

func resized(r *testjob.Resize, err error) (*Resize, error) {
	if err != nil {
		return nil, err
	}
	return &Resize{r}, nil
}

// Wait waits until the change is committed and the ranks that leave are gone. The caller
// must not keep the ranks from committing it. An error says why the change has not happened.
func (r *Resize) Wait() error { return r.r.Wait() }

// Option changes how Run runs ranks. Transport, Setting, Within, Program and Slots return
// options; Run takes no others.
type Option = interface{ RunOption() }

// Transport chooses "inproc" (the default), "shm" or "tcp".
func Transport(name string) Option { return testjob.Transport(name) }

// Setting sets a GOMPI_ variable for the ranks, as a flag of gompirun does.
func Setting(name, value string) Option { return testjob.Setting(name, value) }

// Within sets how long a Run may take instead of Deadline.
func Within(d time.Duration) Option { return testjob.Within(d) }

// Program is what a process runs that is spawned (mpi.CommSpawn) with this name. A process
// that is spawned without a name runs the function of the Run. When the function has returned
// the process is finalized.
func Program(name string, f func(t *T, world *mpi.Comm)) Option {
	return testjob.Program(name, func(t *testjob.Rank, world *mpi.Comm) { f(&T{t, t}, world) })
}

// Slots bounds how many processes the job has at a time.
func Slots(n int) Option { return testjob.Slots(n, false) }

// Run calls f on n ranks, which are goroutines of this process, and returns when all have
// returned. world is their communicator. Ranks that come by changes of process sets run f
// too. Run finalizes all ranks. A rank that panics or calls Fatal ends the others.
//
// Run compares the ranks' collective calls: a call that differs in its operation, root,
// reduction or length from that of another rank fails with mpi.ErrMismatch, where only the
// data would be wrong otherwise. Setting("GOMPI_CHECK", "1") checks everything that gompirun
// --check does, Setting("GOMPI_CHECK", "0") nothing.
func Run(tb testing.TB, n int, f func(t *T, world *mpi.Comm), opts ...Option) {
	tb.Helper()
	testjob.Run(tb, n, func(t *testjob.Rank, world *mpi.Comm) { f(&T{t, t}, world) }, append([]Option{Within(Deadline), testjob.CompareCalls()}, opts...)...)
}
