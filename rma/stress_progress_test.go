// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// busyRank: rank 0 computes with some goroutines without a library call, until
// a number in its window is set; rank 1 measures how long accesses to it take.
func busyRank(w *mpi.Comm, arg string) error {
	flavor, many, _ := strings.Cut(arg, " ")
	goroutines, err := strconv.Atoi(many)
	if err != nil {
		return err
	}
	const n = 1 << 17
	mem := make([]int64, n)
	var win *rma.Window
	if flavor == "create" {
		win, err = rma.Create(w, mem)
	} else if win, err = rma.Allocate[int64](w, n); err == nil {
		mem = rma.Memory[int64](win)
	}
	if err != nil {
		return err
	}
	if err := w.Barrier(); err != nil {
		return err
	}
	if w.Rank() == 0 {
		if goroutines == 0 {
			goroutines = runtime.GOMAXPROCS(0)
		}
		compute(&mem[n-1], goroutines)
		return win.Free()
	}
	if err := measure(win, n); err != nil {
		return err
	}
	return win.Free()
}

// compute does until the number is not zero any more.
func compute(flag *int64, goroutines int) {
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for x := uint64(1); atomic.LoadInt64(flag) == 0; {
				for range 1000 {
					x = x*6364136223846793005 + 1442695040888963407
				}
			}
		})
	}
	wg.Wait()
}

func measure(win *rma.Window, n int) error {
	rounds := testlab.Rounds(5, 100)
	one, many := make([]int64, 1), make([]int64, n)
	fetch := func() error {
		_, err := rma.FetchAndOp(win, 1, 0, 1, mpi.Sum)
		return err
	}
	locked := func(f func() error) func() error {
		return func() error {
			return first(func() error { return win.Lock(rma.LockShared, 0, 0) }, f, func() error { return win.Unlock(0) })
		}
	}
	for _, what := range []struct {
		name string
		f    func() error
	}{
		{"Lock, Unlock", locked(func() error { return nil })},
		{"Lock, Put 8 B, Unlock", locked(func() error { return rma.Put(win, one, 0, 0) })},
		{"Lock, Get 8 B, Unlock", locked(func() error { return rma.Get(win, one, 0, 0) })},
		{"Lock, Get 1 MiB, Unlock", locked(func() error { return rma.Get(win, many, 0, 0) })},
		{"Lock, FetchAndOp, Unlock", locked(fetch)},
	} {
		var s testlab.Spread
		for range rounds {
			begin := time.Now()
			if err := what.f(); err != nil {
				return fmt.Errorf("%s: %w", what.name, err)
			}
			s.Add(time.Since(begin))
		}
		fmt.Printf("%-25s median %-10v 90%% within %v\n", what.name, s.At(0.5), s.At(0.9))
	}
	return locked(func() error { return rma.Put(win, []int64{1}, 0, n-1) })()
}

// TestStressComputing: accesses to a rank that computes complete. -v shows how
// long they take.
func TestStressComputing(t *testing.T) {
	ofProcesses(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, env := range [][]string{{"GOMPI_TRANSPORT=shm"}, {"GOMPI_TRANSPORT=shm", "GOMPI_CMA=off"}, {"GOMPI_TRANSPORT=tcp"}} {
		for _, flavor := range []string{"allocate", "create"} {
			for _, procs := range []string{"1", "2"} {
				for _, goroutines := range []string{"0", "1"} {
					if procs == "1" && goroutines == "1" || !testlab.Long() && (flavor == "create" || procs == "2") {
						continue
					}
					name := fmt.Sprintf("%s/%s/%s of %s", strings.Join(env, " "), flavor, goroutines, procs)
					t.Run(name, func(t *testing.T) {
						r := mpitest.Exec(t, 2, []string{self, "rank", "busy", flavor + " " + goroutines},
							mpitest.Env(append(env, "GOMAXPROCS="+procs)...), mpitest.Timeout(time.Minute))
						t.Log(r.Stdout)
						if r.Status != 0 {
							t.Fatalf("status %d\n%s", r.Status, r.Stderr)
						}
					})
				}
			}
		}
	}
}
