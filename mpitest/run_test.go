// SPDX-License-Identifier: Apache-2.0

package mpitest_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
)

// record is a testing.TB that fails without making this test fail.
type record struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	text   strings.Builder
}

func (r *record) Helper() {}

func (r *record) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *record) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *record) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *record) Errorf(format string, args ...any) {
	r.Fail()
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.text, format+"\n", args...)
}

func (r *record) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// failing runs ranks that fail and returns what was reported.
func failing(t *testing.T, n int, f func(t *mpitest.T, world *mpi.Comm), opts ...mpitest.Option) string {
	r := &record{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		mpitest.Run(r, n, f, opts...)
	}()
	<-done
	if !r.Failed() {
		t.Error("the run did not fail")
	}
	return r.text.String()
}

// TestFirstFailure: the rank that failed is reported, the others, which fail
// because of that, are not.
func TestFirstFailure(t *testing.T) {
	report := failing(t, 4, func(t *mpitest.T, world *mpi.Comm) {
		if world.Rank() == 2 {
			t.Errorf("first %d", 1)
			t.Fatal("and last")
		}
		if err := world.Barrier(); err != nil {
			t.Errorf("barrier: %v", err)
			t.Fatal("because of rank 2")
		}
	})
	if report != "rank 2: first 1\nrank 2: and last\n" {
		t.Errorf("reported:\n%s", report)
	}
}

// TestRanksThatHaveReturned: the roll call of a run that hangs says which ranks
// are not there any more, and nothing follows it.
func TestRanksThatHaveReturned(t *testing.T) {
	report := failing(t, 3, func(t *mpitest.T, world *mpi.Comm) {
		if world.Rank() == 1 {
			return
		}
		if _, err := mpi.Recv(world, make([]int, 1), 1, 5); err != nil {
			t.Fatal(err)
		}
	}, mpitest.Within(300*time.Millisecond))
	for _, want := range []string{"the ranks have not returned after 300ms", "rank 1: has returned", "ranks 0,2 (2): Recv with rank 1, tag 5", "waiting in vain"} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in\n%s", want, report)
		}
	}
	if strings.Contains(report, "finalized") {
		t.Errorf("what followed is reported:\n%s", report)
	}
}

// A rank that is killed from inside the test fails nothing, and the others learn
// of it.
func TestKill(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		switch w.Rank() {
		case 0:
			t.Kill(2)
			_, err := mpi.Recv(w, make([]int, 1), 2, 0)
			if !errors.Is(err, mpi.ErrProcFailed) {
				t.Errorf("a receive from who was killed: %v", err)
			}
		case 1:
			t.Kill(1)
			t.Error("killing oneself has returned")
		case 2:
			if _, err := mpi.Recv(w, make([]int, 1), 0, 0); err == nil { // until it is killed: rank 0 sends nothing
				t.Error("a receive of the dead")
			}
			t.Fatal("what the dead say is left out")
		}
	})
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		if _, err := t.Shrink(1); err == nil || !strings.Contains(err.Error(), "rank 1 of 1") {
			t.Errorf("a rank that is not there leaves: %v", err)
		}
	})
}
