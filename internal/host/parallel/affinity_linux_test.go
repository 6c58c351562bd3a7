// SPDX-License-Identifier: Apache-2.0

package parallel

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRoams: of a process that is bound to one processor a helper runs on others on which
// its parent may, if it is to; the threads of the process are at home afterwards.
func TestRoams(t *testing.T) {
	if os.Getenv("CREW_BOUND") != "" {
		bound(t)
		return
	}
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() < 2 {
		t.Skip("there is one processor")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRoams$")
	cmd.Env = append(os.Environ(), "CREW_BOUND=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// bound is TestRoams in a process of its own.
func bound(t *testing.T) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	for range 2 { // a thread may have started another one meanwhile
		for _, tid := range threads(t) {
			_ = unix.SchedSetaffinity(tid, &one) // or it has ended
		}
	}
	for _, roams := range []bool{false, true} {
		var both sync.WaitGroup
		both.Add(2)
		at := make([]unix.CPUSet, 2)
		err := Workers{Threads: 2, Migrate: roams}.Each(2, func(i int) error {
			both.Done()
			both.Wait() // else one does it all
			return unix.SchedGetaffinity(0, &at[i])
		})
		home := 0
		for _, set := range at {
			switch {
			case set == one:
				home++
			case set.Count() != all.Count()-1:
				t.Errorf("a hand may run on %d processors of %d", set.Count(), all.Count())
			}
		}
		if want := map[bool]int{true: 1, false: 2}[roams]; err != nil || home != want {
			t.Errorf("roams %v: %d hands at home, %d wanted; %v", roams, home, want, err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() { // a thread ends some time after its goroutine
		strays := 0
		for _, tid := range threads(t) {
			var set unix.CPUSet
			if unix.SchedGetaffinity(tid, &set) == nil && set != one {
				strays++
			}
		}
		if strays == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d threads are not at home", strays)
		}
	}
}

// threads are those of this process.
func threads(t *testing.T) (list []int) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if tid, err := strconv.Atoi(task.Name()); err == nil {
			list = append(list, tid)
		}
	}
	return list
}
