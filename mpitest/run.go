// SPDX-License-Identifier: Apache-2.0

package mpitest

import (
	"testing"
	"time"

	"gompi/internal/test/testjob"
	"gompi/mpi"
)

// Deadline is how long a Run may take without the option Within: a minute, under the
// race detector six.
const Deadline = slower * time.Minute

// T is a testing.TB for one rank. Fatal, FailNow and Skip end the test: the
// other ranks' calls fail, and they return. What they report then only follows
// from that, and is left out. Unlike a testing.T's, FailNow and Fatal may be
// called on any goroutine of a rank, and end that goroutine. Its Context carries
// the rank's process (mpi.FromContext), and ends when that does.
type T struct {
	testing.TB
	rank *testjob.Rank
}

// Grow asks for n more ranks in gompi://main, which run the function of the Run with
// the communicator of those that come with them as world. It does not wait: the ranks
// must watch the set and adopt the change (package sessions). An error says why it was
// refused.
func (t *T) Grow(n int) (*Resize, error) { return resized(t.rank.Grow(n)) }

// Shrink asks for the leave of ranks of gompi://main, as Grow does. A rank that
// leaves is finalized when its function returns.
func (t *T) Shrink(ranks ...int) (*Resize, error) { return resized(t.rank.Shrink(ranks...)) }

// Args are the arguments with which the rank was spawned, without the program's name.
func (t *T) Args() []string { return t.rank.Args() }

// Kill ends the process of a rank of gompi://main, or with -1 that of the caller, who
// may be in no such set yet, without a word, as a signal would.
// Its calls fail, and what it reports from then on is left out; the others learn of it
// as under --ft. Killing oneself does not return.
func (t *T) Kill(rank int) { t.TB.Helper(); t.rank.Kill(rank) }

// Resize is a change of gompi://main that a rank has asked for.
type Resize struct{ asked *testjob.Resize }

func resized(asked *testjob.Resize, err error) (*Resize, error) {
	if err != nil {
		return nil, err
	}
	return &Resize{asked}, nil
}

// Wait waits until the change has happened and those that leave are gone. It must not
// keep the ranks from adopting it. An error says why it has not happened.
func (r *Resize) Wait() error { return r.asked.Wait() }

// Option changes how ranks are run.
type Option = func(*config)

type config = testjob.Config

// Transport chooses "inproc" (the default), "shm" or "tcp".
func Transport(name string) Option { return testjob.Transport(name) }

// Setting sets a knob, as a flag of gompirun would.
func Setting(name, value string) Option { return testjob.Setting(name, value) }

// Within sets how long a Run may take instead of Deadline.
func Within(d time.Duration) Option { return testjob.Within(d) }

// Program says what a process runs that is spawned (mpi.CommSpawn) with this name; without
// a name it runs the function of the Run. When that has returned it is finalized.
func Program(name string, f func(t *T, world *mpi.Comm)) Option {
	return testjob.Program(name, func(t *testjob.Rank, world *mpi.Comm) { f(&T{t, t}, world) })
}

// Slots sets how many processes the job may have at a time.
func Slots(n int) Option { return testjob.Slots(n, false) }

// Run calls f on n ranks, which are goroutines of this process, and returns
// when all have returned. world is their communicator. A rank that panics or
// calls Fatal ends the others. Ranks are finalized by Run, and so are those that come
// by changes of process sets, on which f runs, too.
//
// The ranks' collective calls are compared: one that differs in its operation, root,
// reduction or length from that of another rank fails with mpi.ErrMismatch, where the
// data would only be wrong otherwise. Setting("GOMPI_CHECK", "1") has everything
// checked that gompirun --check does, Setting("GOMPI_CHECK", "0") nothing.
func Run(tb testing.TB, n int, f func(t *T, world *mpi.Comm), opts ...Option) {
	tb.Helper()
	testjob.Run(tb, n, func(t *testjob.Rank, world *mpi.Comm) { f(&T{t, t}, world) }, append([]Option{Within(Deadline), testjob.CompareCalls()}, opts...)...)
}
