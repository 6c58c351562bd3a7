// SPDX-License-Identifier: Apache-2.0

package mpitest

import (
	"testing"
	"time"

	"gompi/internal/testjob"
	"gompi/mpi"
)

// Deadline is how long a Run may take without the option Within: 20 s, under the
// race detector two minutes.
const Deadline = slower * 20 * time.Second

// T is a testing.TB for one rank. Fatal, FailNow and Skip end the test: the
// other ranks' calls fail, and they return. What they report then only follows
// from that, and is left out. Unlike a testing.T's, FailNow and Fatal may be
// called on any goroutine of a rank, and end that goroutine. Its Context carries
// the rank's process (mpi.FromContext), and ends when that does.
type T struct{ testing.TB }

// Option changes how ranks are run.
type Option = func(*config)

type config = testjob.Config

// Transport chooses "inproc" (the default), "shm" or "tcp".
func Transport(name string) Option { return testjob.Transport(name) }

// Setting sets a knob, as a flag of gompirun would.
func Setting(name, value string) Option { return testjob.Setting(name, value) }

// Within sets how long a Run may take instead of Deadline.
func Within(d time.Duration) Option { return testjob.Within(d) }

// Run calls f on n ranks, which are goroutines of this process, and returns
// when all have returned. world is their communicator. A rank that panics or
// calls Fatal ends the others. Ranks are finalized by Run.
func Run(tb testing.TB, n int, f func(t *T, world *mpi.Comm), opts ...Option) {
	tb.Helper()
	testjob.Run(tb, n, func(t testing.TB, world *mpi.Comm) { f(&T{t}, world) }, append([]Option{Within(Deadline)}, opts...)...)
}
