// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// TestProgress: everything that needs no answer of the target's program is done
// while that computes without calling the library, also if it has one
// processor.
func TestProgress(t *testing.T) {
	ofProcesses(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i, env := range [][]string{
		{"GOMPI_TRANSPORT=shm"},
		{"GOMPI_TRANSPORT=shm", "GOMPI_CMA=off"},
		{"GOMPI_TRANSPORT=tcp"},
	} {
		for k, procs := range []string{"GOMAXPROCS=1", "GOMAXPROCS=2"} {
			if (i+k)%testlab.Every(2) != 0 || testing.Short() && procs != "GOMAXPROCS=1" {
				continue
			}
			env := append([]string{procs}, env...)
			t.Run(strings.ReplaceAll(strings.Join(env, "-"), "=", "-"), func(t *testing.T) {
				r := mpitest.Exec(t, 2, []string{self, "compute"}, mpitest.Env(env...))
				if r.Status != 0 {
					t.Fatalf("status %d:\n%s%s", r.Status, r.Stdout, r.Stderr)
				}
				t.Log(strings.TrimSpace(r.Stdout))
			})
		}
	}
}

// computing is how long the target computes, far longer than the accesses take.
const computing = 3 * time.Second

func computeRank(w *mpi.Comm) error {
	fast, err := rma.Allocate[int64](w, 1000)
	if err != nil {
		return err
	}
	slow, err := rma.Create(w, make([]int64, 1000))
	if err != nil {
		return err
	}
	if err := w.Barrier(); err != nil {
		return err
	}
	begin := time.Now()
	if w.Rank() == 1 {
		x := 1.0
		for time.Since(begin) < computing {
			for range 1 << 20 {
				x = x*1.0000001 + 1e-9
			}
		}
		if x == 0 {
			fmt.Println(x)
		}
	} else {
		if err := useMemory(fast); err != nil {
			return err
		}
		if err := useMemory(slow); err != nil {
			return err
		}
		took := time.Since(begin)
		fmt.Println("accesses took", took)
		if took > computing*3/4 {
			return fmt.Errorf("the accesses took %v, while the target computed", took)
		}
	}
	if err := fast.Free(); err != nil {
		return err
	}
	return slow.Free()
}

// useMemory makes accesses of all kinds to rank 1, each complete before the
// next.
func useMemory(win *rma.Window) error {
	buf := make([]int64, 500)
	for k := range 3 {
		if err := win.Lock(rma.LockExclusive, 1, 0); err != nil {
			return err
		}
		if err := rma.Get(win, buf, 1, 0); err != nil {
			return err
		}
		if err := win.Flush(1); err != nil {
			return err
		}
		if buf[1] != int64(k) {
			return fmt.Errorf("round %d: read %d", k, buf[1])
		}
		buf[1]++
		if err := rma.Put(win, buf, 1, 0); err != nil {
			return err
		}
		if err := win.Flush(1); err != nil {
			return err
		}
		if old, err := rma.FetchAndOp(win, int64(1), 1, 999, mpi.Sum); err != nil || old != int64(k) {
			return fmt.Errorf("round %d: fetched %d, %w", k, old, err)
		}
		if err := win.Unlock(1); err != nil {
			return err
		}
	}
	return nil
}
