// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"errors"
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
	"gompi/transport"
	"gompi/transport/faulty"
)

// ways are the ways in which accesses reach a target: each is a transport with
// settings.
var ways = []struct {
	name string
	opts []mpitest.Option
}{
	{"inproc", nil},
	{"shm", []mpitest.Option{mpitest.Transport("shm")}},
	{"shm-cma-off", []mpitest.Option{mpitest.Transport("shm"), mpitest.Setting("GOMPI_CMA", "off")}},
	{"tcp", []mpitest.Option{mpitest.Transport("tcp")}},
	{"shm-awkward", []mpitest.Option{mpitest.Transport("shm"), under(awkward)}},
	{"later", []mpitest.Option{later()}},
}

// apart reports whether no memory can be mapped in a way, which ends a name.
func apart(name string) bool {
	return strings.HasSuffix(name, "tcp") || strings.HasSuffix(name, "later")
}

// later gives each run devices that complete operations later, in any order,
// beside inproc.
func later() mpitest.Option { return devices(faulty.NewDevices(faulty.DevicePlan{Full: 0.2})) }

func devices(x *faulty.Devices) mpitest.Option {
	return testjob.Wrap(func(t transport.Transport, self wire.ProcID, wake func()) (transport.Transport, error) {
		return x.Wrap(t, self, wake), nil
	})
}

// awkward delays, refuses and tells little at a time.
var awkward = faulty.Plan{Delay: 0.1, DelayPolls: 20, Full: 0.1, MaxEvents: 3}

// under puts every transport of a run under a plan.
func under(p faulty.Plan) mpitest.Option {
	return testjob.Wrap(func(t transport.Transport, self wire.ProcID, wake func()) (transport.Transport, error) {
		p := p
		p.Seed, p.Wake = uint64(self.Serial), wake
		return faulty.New(t, p)
	})
}

// overAll runs f on n ranks in each way. The race detector does not see what
// memory that is mapped orders, which is where the words of shm are.
func overAll(t *testing.T, n int, f func(t *mpitest.T, w *mpi.Comm)) {
	t.Helper()
	for _, way := range ways {
		if underRace && strings.HasPrefix(way.name, "shm") {
			continue
		}
		t.Run(way.name, func(t *testing.T) { mpitest.Run(t, n, f, way.opts...) })
	}
}

// ofProcesses skips a test that starts processes under the race detector: it
// sees one process, which there takes seconds to do nothing.
func ofProcesses(t *testing.T) {
	t.Helper()
	if underRace {
		t.Skip("the race detector does not see what processes do to each other")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks the class of an error and that its text has all parts.
func wantError(t testing.TB, err error, class mpi.Class, parts ...string) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Fatalf("error is %v, want class %q", err, class)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("error %q does not contain %q", err, p)
		}
	}
}

// a flavor makes windows of n int64 in one of the ways that windows have
// memory, and says at which offset that of each rank begins.
type flavor struct {
	name string
	make func(comm *mpi.Comm, n int) (win *rma.Window, mem []int64, at []int, err error)
}

var flavors = []flavor{
	{"create", func(comm *mpi.Comm, n int) (*rma.Window, []int64, []int, error) {
		mem := make([]int64, n)
		win, err := rma.Create(comm, mem)
		return win, mem, make([]int, comm.Size()), err
	}},
	{"allocate", func(comm *mpi.Comm, n int) (*rma.Window, []int64, []int, error) {
		win, err := rma.Allocate[int64](comm, n)
		if err != nil {
			return nil, nil, nil, err
		}
		return win, rma.Memory[int64](win), make([]int, comm.Size()), nil
	}},
}

// schemes are the kinds of epochs: each calls access for every rank, and
// returns when all accesses of all ranks have happened.
var schemes = []struct {
	name    string
	passive bool
	run     func(t *mpitest.T, w *mpi.Comm, win *rma.Window, access func(target int))
}{
	{"fence", false, func(t *mpitest.T, w *mpi.Comm, win *rma.Window, access func(int)) {
		must(t, win.Fence(rma.NoPrecede))
		each(w, access)
		must(t, win.Fence(rma.NoSucceed|rma.NoStore))
	}},
	{"start", false, func(t *mpitest.T, w *mpi.Comm, win *rma.Window, access func(int)) {
		must(t, win.Post(w.Group(), rma.NoStore))
		must(t, win.Start(w.Group(), 0))
		each(w, access)
		must(t, win.Complete())
		must(t, win.Wait())
	}},
	{"lock", true, func(t *mpitest.T, w *mpi.Comm, win *rma.Window, access func(int)) {
		each(w, func(target int) {
			must(t, win.Lock(rma.LockExclusive, target, 0))
			access(target)
			must(t, win.Unlock(target))
		})
		must(t, w.Barrier())
	}},
	{"lock-shared", true, func(t *mpitest.T, w *mpi.Comm, win *rma.Window, access func(int)) {
		each(w, func(target int) { must(t, win.Lock(rma.LockShared, target, 0)) })
		each(w, access)
		each(w, func(target int) { must(t, win.Unlock(target)) })
		must(t, w.Barrier())
	}},
	{"lock-all", true, func(t *mpitest.T, w *mpi.Comm, win *rma.Window, access func(int)) {
		must(t, win.LockAll(0))
		each(w, access)
		must(t, win.UnlockAll())
		must(t, w.Barrier())
	}},
	{"lock-all-unchecked", true, func(t *mpitest.T, w *mpi.Comm, win *rma.Window, access func(int)) {
		must(t, win.LockAll(rma.NoCheck))
		each(w, access)
		must(t, win.FlushAll())
		must(t, w.Barrier())
		must(t, win.UnlockAll())
	}},
}

// each calls f for every rank, beginning with the next.
func each(w *mpi.Comm, f func(rank int)) {
	for i := range w.Size() {
		f((w.Rank() + 1 + i) % w.Size())
	}
}
