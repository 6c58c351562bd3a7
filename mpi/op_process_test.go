// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
)

// A panic of a user's operation ends the process, also where the program would
// recover from it, and says where it was.
func TestUserOpPanics(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := mpitest.Exec(t, 2, []string{self, "rank", "panic"})
	if r.Status == 0 || !strings.Contains(r.Stderr, "a user operation ended with no sum of 1 and 1") || !strings.Contains(r.Stderr, "panickingRank") {
		t.Fatalf("status %d: %s", r.Status, r.Stderr)
	}
}

func panickingRank(w *mpi.Comm) error {
	op := mpi.NewOp(func(in, inout []int) { panic(fmt.Sprintf("no sum of %d and %d", in[0], inout[0])) })
	defer func() { recover() }()
	_, err := mpi.AllreduceOne(w, 1, op)
	return err
}

// A rank whose user operation does not return still tells what it does.
func TestUserOpIsStuck(t *testing.T) {
	r := osRanks(t, 2, []string{"stuck"}, mpitest.Timeout(500*time.Millisecond))
	if r.Status != 124 || strings.Contains(r.Stderr, "did not answer") ||
		!strings.Contains(r.Stderr, "not known: the library is locked") || !strings.Contains(r.Stderr, "stuckRank.func") ||
		!strings.Contains(r.Stderr, "at work in AllreduceOne, at op_process_test.go:") {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
}

func stuckRank(w *mpi.Comm) error {
	op := mpi.NewOp(func(in, inout []int) {
		for {
			<-time.After(time.Hour)
		}
	})
	_, err := mpi.AllreduceOne(w, 1, op)
	return err
}

// A user operation that calls the library would wait for itself; GOMPI_CHECK
// ends the process instead.
func TestUserOpCallsTheLibrary(t *testing.T) {
	r := osRanks(t, 2, []string{"inside"}, mpitest.Flags("--check", "1"))
	if r.Status == 0 || r.Status == 124 || !strings.Contains(r.Stderr, "a user operation calls the library") || !strings.Contains(r.Stderr, "insideRank.func") {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
}

func insideRank(w *mpi.Comm) error {
	op := mpi.NewOp(func(in, inout []int) {
		if err := mpi.Send(w, in, 1-w.Rank(), 0); err != nil {
			panic(err)
		}
	})
	_, err := mpi.AllreduceOne(w, 1, op)
	return err
}

// The launcher says the code as it was given; the status is never that of success.
func TestAbortCodes(t *testing.T) {
	for code, status := range map[string]int{"0": 1, "3": 3, "256": 1, "-1": 255} {
		r := osRanks(t, 1, []string{"abort", code})
		if r.Status != status || !strings.Contains(r.Stderr, "called Abort("+code+"): at ") {
			t.Errorf("Abort(%s): status %d, %s", code, r.Status, r.Stderr)
		}
		// Alone, too.
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "rank", "abort", code)
		if cmd.Run(); cmd.ProcessState.ExitCode() != status {
			t.Errorf("alone, Abort(%s): status %d", code, cmd.ProcessState.ExitCode())
		}
	}
}
