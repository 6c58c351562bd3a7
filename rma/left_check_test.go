// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rma_test

import (
	"os"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// With GOMPI_CHECK=1 a process that leaves tells what it has not received, not waited
// for and not freed, and where that came from; its status is 0 all the same.
func TestLeftAtTheEnd(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := mpitest.Exec(t, 2, []string{self, "rank", "left", ""}, mpitest.Flags("--check", "1"))
	for _, want := range []string{
		"gompi: rank 0 ends at locks_process_test.go:", "2 messages with tag 98 of 32 bytes from rank 1, WORLD, were not received\n",
		"a message with tag 99 of 100000 bytes from rank 1, ",
		"gompi: rank 1 ends at ", "the communicator spare of 2 ranks, made at left_check_test.go:", "the window WORLD of 2 ranks, made at left_check_test.go:",
	} {
		if !strings.Contains(r.Stderr, want) {
			t.Errorf("no %q", want)
		}
	}
	if n := strings.Count(r.Stderr, "the communicator "); r.Status != 0 || n != 2 || strings.Contains(r.Stderr, "freed here") {
		t.Errorf("status %d, %d communicators:\n%s", r.Status, n, r.Stderr)
	}
	if r = mpitest.Exec(t, 2, []string{self, "rank", "left", ""}); r.Status != 0 || r.Stderr != "" {
		t.Errorf("without the check: status %d: %s", r.Status, r.Stderr)
	}
}

func leftRank(w *mpi.Comm, _ string) error {
	spare, err := w.Dup()
	if err != nil {
		return err
	}
	spare.SetName("spare")
	freed, err := w.Dup()
	if err != nil {
		return err
	}
	freed.SetName("freed here")
	win, err := rma.Allocate[int](w, 3)
	if err != nil {
		return err
	}
	done, err := rma.Allocate[int](w, 3)
	if err != nil {
		return err
	}
	if w.Rank() == 1 {
		for range 2 {
			if err := mpi.Send(w, make([]byte, 32), 0, 98); err != nil {
				return err
			}
		}
		// The receiver only hears of it.
		if err := mpi.Isend(spare, make([]byte, 100_000), 0, 99).Free(); err != nil {
			return err
		}
	}
	if err := freed.Barrier(); err != nil {
		return err
	}
	if err := freed.Free(); err != nil {
		return err
	}
	if err := done.Free(); err != nil {
		return err
	}
	return win.Fence(0)
}
