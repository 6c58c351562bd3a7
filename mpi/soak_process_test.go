// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// TestSoakKilledProcesses: real processes kill themselves in the midst of what
// they do; under --ft the job goes on.
func TestSoakKilledProcesses(t *testing.T) {
	kills := testlab.Rounds(12, 500)
	before := testlab.Take()
	stop := func() {}
	if testlab.Long() {
		stop = sync.OnceFunc(reusePIDs(t))
	}
	defer stop()
	rnd := rand.New(rand.NewPCG(4, 5))
	late := map[string]*testlab.Spread{"shm": {}, "tcp": {}}
	all := scenes()
	for k := range kills {
		tr := []string{"shm", "tcp"}[k%2]
		s := all[(k/2)%len(all)]
		steps := rnd.IntN(60)
		r := osRanks(t, cast, []string{"die", s.name, strconv.Itoa(steps)},
			mpitest.Flags("--ft", "--transport", tr))
		if r.Status != 0 {
			t.Fatalf("%s %s %d: status %d\n%s%s", tr, s.name, steps, r.Status, r.Stdout, r.Stderr)
		}
		killed := int64(0)
		learnt := 0
		for line := range strings.Lines(r.Stdout) {
			f := strings.SplitN(line, " ", 3)
			at, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil || len(f) < 3 {
				t.Fatalf("line %q", line)
			}
			if f[1] == "killed" {
				killed = at
			}
		}
		for line := range strings.Lines(r.Stdout) {
			f := strings.SplitN(line, " ", 3)
			if f[1] != "learnt" {
				continue
			}
			at, _ := strconv.ParseInt(f[0], 10, 64)
			late[tr].Add(max(0, time.Duration(at-killed)))
			learnt++
		}
		if want := map[bool]int{true: cast - 1, false: 1}[s.all]; killed == 0 || learnt != want {
			t.Fatalf("%s %s %d: %d ranks have learnt of the death, want %d\n%s%s", tr, s.name, steps, learnt, want, r.Stdout, r.Stderr)
		}
	}
	for _, tr := range []string{"shm", "tcp"} {
		t.Logf("%s: time from a death to the error: %v", tr, late[tr])
		checkLate(t, late[tr])
	}
	stop()
	testlab.Nothing(t, before, 16<<20)
}

// lastPID is where Linux keeps the pid that it gave last. Root may change it.
const lastPID = "/proc/sys/kernel/ns_last_pid"

// reusePIDs starts processes that end at once, all in a small range of pids,
// so that the pid of a rank that was killed soon belongs to a stranger. The
// function that it returns ends that.
func reusePIDs(t *testing.T) (stop func()) {
	const window = 400
	first, err := os.ReadFile(lastPID)
	if err == nil {
		err = os.WriteFile(lastPID, first, 0)
	}
	if err != nil {
		t.Logf("pids are not reused: %v", err)
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			if n%window == window-1 {
				os.WriteFile(lastPID, first, 0)
			}
			exec.Command("true").Run()
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// TestSoakJobs: jobs in a row, of goroutines and of processes, leave nothing.
func TestSoakJobs(t *testing.T) {
	jobs := testlab.Rounds(10, 200)
	run := func(t *testing.T, i int) {
		mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
			checkRing(t, w)
			must(t, w.Barrier())
		}, mpitest.Transport(transports[i%len(transports)]))
	}
	t.Run("goroutines", func(t *testing.T) {
		t.Run("first", func(t *testing.T) {
			for i := range transports {
				run(t, i)
			}
		})
		before := testlab.Take()
		t.Run("all", func(t *testing.T) {
			for i := range jobs {
				// Each in a test of its own: servers end with their test.
				t.Run("", func(t *testing.T) { run(t, i) })
			}
		})
		testlab.Nothing(t, before, 8<<20)
	})
	t.Run("processes", func(t *testing.T) {
		before := testlab.Take()
		for i := range jobs {
			r := osRanks(t, 3, []string{"pid"}, mpitest.Flags("--transport", []string{"shm", "tcp"}[i%2]))
			if r.Status != 0 {
				t.Fatalf("status %d: %s", r.Status, r.Stderr)
			}
			n := 0
			for line := range strings.Lines(r.Stdout) {
				var pid int
				if _, err := fmt.Sscanf(line, "pid %d", &pid); err != nil {
					t.Fatalf("line %q: %v", line, err)
				}
				n++
				if err := unix.Kill(pid, 0); err != unix.ESRCH {
					t.Errorf("process %d is there after gompirun has ended: %v", pid, err)
				}
			}
			if n != 3 {
				t.Fatalf("%d ranks have told their pid:\n%s", n, r.Stdout)
			}
		}
		testlab.Nothing(t, before, 8<<20)
	})
}

// attempts is how often a measurement may be repeated that other work on the
// machine can spoil but not improve.
const attempts = 5

// TestIdleRanks: ranks that wait cost nothing. The limit is what a few wake-ups
// a second of the machine's own may cost; one rank that woke every millisecond
// would use more.
func TestIdleRanks(t *testing.T) {
	const ranks, limit = 8, 3.0
	for _, tr := range []string{"shm", "tcp"} {
		t.Run(tr, func(t *testing.T) {
			for range attempts {
				r := osRanks(t, ranks, []string{"idle"}, mpitest.Flags("--transport", tr))
				var used float64
				if _, err := fmt.Sscanf(r.Stdout, "used %f percent", &used); err != nil || r.Status != 0 {
					t.Fatalf("status %d, %v:\n%s%s", r.Status, err, r.Stdout, r.Stderr)
				}
				t.Logf("%d idle ranks use %.2f %% of a processor", ranks, used)
				if used < limit {
					return
				}
			}
			t.Errorf("idle ranks use more than %v %%", limit)
		})
	}
}

// TestCollectWhileWaiting: a rank that waits does not hold up the garbage
// collector longer than limit. What the machine takes for a collection beside
// a goroutine that computes and yields comes on top. On a machine where that is
// much, others compute: each step of the collector waits for their time slices.
// Then it may take some more of them, but not the waiting rank's own time.
func TestCollectWhileWaiting(t *testing.T) {
	if underRace {
		t.Skip("the poll loop is ten times slower under the race detector: its turns are no measure of time")
	}
	const limit, busy = 10 * time.Millisecond, 2 * time.Millisecond
	for _, tr := range []string{"shm", "tcp"} {
		for _, procs := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s-%d", tr, procs), func(t *testing.T) {
				for range attempts {
					r := osRanks(t, 2, []string{"collect", strconv.Itoa(procs)}, mpitest.Flags("--transport", tr))
					var us, used, control int64
					if _, err := fmt.Sscanf(r.Stdout, "p90 %d us, processor %d us, control %d us", &us, &used, &control); err != nil || r.Status != 0 {
						t.Fatalf("status %d, %v:\n%s%s", r.Status, err, r.Stdout, r.Stderr)
					}
					t.Logf("runtime.GC takes %s", strings.TrimSpace(r.Stdout))
					most := limit.Microseconds()
					if us-control < most || control > busy.Microseconds() && used < most && us-4*control < most {
						return
					}
				}
				t.Errorf("runtime.GC takes more than %v", limit)
			})
		}
	}
}
