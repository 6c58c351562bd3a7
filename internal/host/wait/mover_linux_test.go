// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// affinity of this test's thread, to which it is locked until it ends.
func affinity(t *testing.T) (set unix.CPUSet) {
	t.Helper()
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Skip("sched_getaffinity: ", err)
	}
	return set
}

func TestMoverEven(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all := affinity(t)
	var cpus []int
	for cpu := range len(all) * 64 {
		if all.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	if len(cpus) < 2 {
		t.Skip("one processor")
	}
	m := new(Mover)
	load := make([]uint16, len(all)*64) // many of them are not there
	for _, cpu := range cpus {
		load[cpu] = 3
	}
	for _, here := range cpus {
		if m.Balance(here, load) {
			t.Errorf("moves from %d, which has no more than others", here)
		}
		if load[here]++; m.Balance(here, load) {
			t.Errorf("moves from %d to others that have one less", here)
		}
		if load[here]++; !m.Balance(here, load) {
			t.Errorf("does not move from %d to others that have two less", here)
		}
		load[here] = 3
		if now := affinity(t); now != all {
			t.Fatal("the thread may not run any more where it might")
		}
		if at := CPU(); at < 0 || !all.IsSet(at) {
			t.Errorf("runs on %d", at)
		}
	}
}

// A thread that was bound stays where it is.
func TestMoverBound(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all := affinity(t)
	var one unix.CPUSet
	here := 0
	for !all.IsSet(here) {
		here++
	}
	one.Set(here)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Skip("sched_setaffinity: ", err)
	}
	defer unix.SchedSetaffinity(0, &all)
	load := make([]uint16, len(all)*64)
	load[here] = 8
	if new(Mover).Balance(here, load) {
		t.Error("moved")
	}
	if affinity(t) != one {
		t.Error("it is not bound any more")
	}
}

// Threads that move one after the other end evenly spread, and rest.
func TestEmptier(t *testing.T) {
	for range 300 {
		threads, cpus := 1+rand.IntN(40), 1+rand.IntN(6)
		var allowed unix.CPUSet
		load := make([]uint16, cpus+3)
		at := make([]int, threads)
		for cpu := range cpus {
			allowed.Set(cpu)
		}
		for i := range at {
			at[i] = rand.IntN(cpus)
			load[at[i]]++
		}
		before, moves := slices.Clone(load), 0
		for moved := true; moved; {
			moved = false
			for _, i := range rand.Perm(threads) {
				if to := leastLoaded(at[i], load, &allowed); to >= 0 {
					load[at[i]]--
					load[to]++
					at[i], moves, moved = to, moves+1, true
				}
			}
			if moves > threads {
				t.Fatalf("%v threads on %d processors move for ever", before, cpus)
			}
		}
		if n := load[:cpus]; slices.Max(n)-slices.Min(n) > 1 || slices.Max(load[cpus:]) > 0 {
			t.Fatalf("%v threads on %d processors end as %v", before, cpus, load)
		}
	}
}
