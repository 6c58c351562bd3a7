// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/transport/faulty"
)

// awkward wraps a transport so that it delays, refuses and tells little at a
// time.
var awkward = under(faulty.Plan{Delay: 0.1, DelayPolls: 20, Full: 0.1, MaxEvents: 3})

// carriers are the ways in which bytes travel.
var carriers = []setting{
	{transport: "inproc"},
	{transport: "shm", knobs: []string{"GOMPI_CMA=off"}},
	{transport: "tcp"},
	{transport: "inproc", faulty: true},
	{transport: "shm"},
	{transport: "shm", knobs: []string{"GOMPI_RING=256"}},
	{transport: "shm", knobs: []string{"GOMPI_RING=4096", "GOMPI_CMA=off"}},
	{transport: "shm", faulty: true},
}

// limits change which messages are eager, and how many may be unexpected.
var limits = [][]string{
	nil,
	{"GOMPI_EAGER=-1"},
	{"GOMPI_EAGER=64"},
	{"GOMPI_CREDIT=4096"},
	{"GOMPI_CREDIT=256"},
}

// settings are combinations of carriers and limits: all, of the latter carriers
// the extremes. Where one limits, takes says which of the checks it runs in the
// short form: every fourth, so that each meets each limit, as it meets each carrier.
func settings() (out []setting, takes []func(check int) bool) {
	carriers, limits := carriers, limits
	if underRace {
		// The detector makes everything ten times slower, and sees memory that
		// is not shared between processes only.
		carriers, limits = carriers[:3], limits[:2]
	}
	for i, c := range carriers {
		for j, l := range limits {
			if i > 3 && j > 1 && j < len(limits)-1 && !testlab.Long() {
				continue
			}
			s := c
			s.knobs = append(append([]string(nil), c.knobs...), l...)
			out = append(out, s)
			takes = append(takes, func(check int) bool { return j == 0 || testlab.Takes(i+j+check, 4) })
		}
	}
	return out, takes
}

// A check is one property of the library, which holds under every setting.
type check struct {
	name  string
	ranks int
	run   func(t *mpitest.T, w *mpi.Comm)
}

var checks = []check{
	{"order", 3, checkOrder},
	{"wildcard-order", 4, checkWildcardOrder},
	{"truncation", 2, checkTruncation},
	{"modes", 3, checkModes},
	{"synchronous", 2, checkSynchronous},
	{"probe", 3, checkProbe},
	{"matched-probe-goroutines", 3, checkMatchedProbes},
	{"sendrecv-ring", 5, checkRing},
	{"communicators", 3, checkCommunicators},
	{"goroutines", 3, checkGoroutines},
	{"unexpected-storm", 4, checkStorm},
	{"collectives-overlap", 4, checkOverlap},
	{"withdrawn-receives", 2, checkWithdrawnReceives},
	{"withdrawn-sends", 2, checkWithdrawnSends},
	{"datatypes", 2, checkDatatypes},
	{"strided", 2, checkStrided},
	{"strided-exchange", 3, checkStridedExchange},
	{"strided-collectives", 3, checkStridedCollectives},
	{"textures", 4, checkTextures},
}

// TestConformance runs the checks under every setting: the library behaves
// alike whatever carries its bytes.
func TestConformance(t *testing.T) {
	list, takes := settings()
	for i, s := range list {
		t.Run(s.name(), func(t *testing.T) {
			run := func(check int, name string, f func(t *testing.T)) {
				if takes[i](check) {
					t.Run(name, f)
				}
			}
			for k, c := range checks {
				run(k, c.name, func(t *testing.T) { mpitest.Run(t, c.ranks, c.run, s.options()...) })
			}
			run(len(checks), "flood", func(t *testing.T) {
				var sent atomic.Int64
				mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) { flood(t, w, 8000, 100, &sent) }, append(s.options(), floodSetting)...)
			})
			run(len(checks)+1, "finalize-at-once", func(t *testing.T) { checkFinalizeAtOnce(t, s) })
		})
	}
}

// name is the setting as a test's name.
func (s setting) name() string {
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(s.String(), "GOMPI_", "")), " ", "-")
}

// checkFinalizeAtOnce: ranks leave as soon as their part is done, while others
// still use what they sent.
func checkFinalizeAtOnce(t *testing.T, s setting) {
	const n = 4
	before := testlab.Take()
	t.Run("job", func(t *testing.T) {
		j := testjob.New(t, s.options()...)
		errs := make(chan error, n)
		for i, sp := range j.Add(n) {
			p, err := j.Boot(sp)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				err := passAndLeave(p.World(), i)
				if lerr := j.Leave(p); err == nil {
					err = lerr
				}
				errs <- err
			}()
		}
		timeout := time.After(mpitest.Deadline)
		for range n {
			select {
			case err := <-errs:
				if err != nil {
					t.Error(err)
				}
			case <-timeout:
				t.Fatalf("ranks have not left:\n%s", j.RollCall())
			}
		}
	})
	testlab.Nothing(t, before, 64<<20)
}

// passAndLeave sends a small message to every higher rank, receives from every
// lower one, and passes a large one on to the next.
func passAndLeave(w *mpi.Comm, rank int) error {
	small, large := make([][]int64, w.Size()), make([]int64, 20000)
	in := make([]mpi.Request, rank)
	for from := range w.Size() {
		small[from] = []int64{int64(rank)}
		if from < rank {
			in[from] = mpi.Irecv(w, small[from], from, 1)
		}
	}
	for to := rank + 1; to < w.Size(); to++ {
		if err := mpi.Send(w, small[to], to, 1); err != nil {
			return fmt.Errorf("rank %d to %d: %w", rank, to, err)
		}
	}
	if rank > 0 {
		if _, err := mpi.Recv(w, large, rank-1, 2); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	if rank+1 < w.Size() {
		fill(large, rank)
		if err := mpi.Send(w, large, rank+1, 2); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	for from, r := range in {
		if _, err := r.Wait(); err != nil || small[from][0] != int64(from) {
			return fmt.Errorf("rank %d from %d: got %d, %w", rank, from, small[from][0], err)
		}
	}
	return nil
}
