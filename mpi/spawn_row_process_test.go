// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// holdsOf prints what this process and gompirun have, when those that were spawned are gone,
// and gompirun has let go of them.
func holdsOf(ranks int) error {
	if err := testlab.Gone(ranks); err != nil {
		return err
	}
	for files, same := launcherFiles(), 0; same < 10; same++ {
		<-time.After(20 * time.Millisecond)
		if n := launcherFiles(); n != files {
			files, same = n, 0
		}
	}
	l := testlab.Take()
	head := os.Getppid()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", head))
	fmt.Println("holds", l.Goroutines, l.Files(), l.Maps, l.HeapBytes>>10, launcherFiles(), strings.Count(string(maps), "/memfd:"),
		testlab.StatusOf(head, "VmRSS"), testlab.StatusOf(head, "Threads"))
	return err
}

// inARowRank spawns so many times, one after the other, and says twice what is held.
func inARowRank(w *mpi.Comm, args []string) error {
	rounds, _ := strconv.Atoi(args[1])
	for i := range rounds {
		c, _, err := mpi.CommSpawn(w, self(4, "spawned"), 0)
		if err == nil {
			err = greet(c)
		}
		if err == nil && w.Rank() == 0 && (i+1 == 10 || i+1 == rounds) {
			err = holdsOf(w.Size())
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	return w.Barrier()
}

// TestSoakSpawnsInARow: processes are spawned and part many times, and nothing grows in
// their parent, nor in gompirun.
func TestSoakSpawnsInARow(t *testing.T) {
	rounds := testlab.Rounds(50, 2000)
	for _, transport := range []string{"shm", "tcp"} {
		began := time.Now()
		r := spawns(t, 1, []string{"row", strconv.Itoa(rounds)}, mpitest.Flags("--transport", transport), mpitest.Timeout(20*time.Minute))
		var all [2][8]int
		for i, line := range strings.Split(strings.TrimSpace(r.Stdout), "\n") {
			a := &all[min(i, 1)]
			if n, err := fmt.Sscanf(line, "holds %d %d %d %d %d %d %d %d", &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6], &a[7]); n != 8 || i > 1 {
				t.Fatal(errors.Join(err, errors.New(r.Stdout+r.Stderr)))
			}
		}
		for i, what := range []string{"goroutines", "descriptors", "mappings", "KiB of heap", "descriptors of gompirun", "mappings of gompirun", "KiB of gompirun", "threads of gompirun"} {
			slack := []int{1, 1, 0, 512, 3, 2, 8 << 10, 4}[i]
			if before, after := all[0][i], all[1][i]; after > before+slack {
				t.Errorf("%s: %d %s after %d spawns, %d after %d", transport, after, what, rounds, before, 10)
			}
		}
		t.Logf("%s: %v for each; after %d spawns %v, after %d %v", transport, time.Since(began)/time.Duration(rounds), 10, all[0], rounds, all[1])
	}
}
