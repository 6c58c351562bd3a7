// SPDX-License-Identifier: Apache-2.0

package testjob

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/mpi"
)

// rank is the testing.TB of one rank.
type rank struct {
	testing.TB
	ctx    context.Context // of the process
	number int
	end    *ending
}

// ending is that of a Run before all ranks have returned.
type ending struct {
	begun atomic.Bool
	kill  func()
}

// begin ends the test; first reports whether nobody has done it before.
func (e *ending) begin() (first bool) {
	if !e.begun.CompareAndSwap(false, true) {
		return false
	}
	e.kill()
	return true
}

// Context carries the rank's process and ends with it, or with the test.
func (t *rank) Context() context.Context { return t.ctx }

// Error logs and goes on.
func (t *rank) Error(args ...any) {
	t.TB.Helper()
	if t.end.begun.Load() {
		t.TB.Fail()
		return
	}
	t.TB.Errorf("rank %d: %s", t.number, fmt.Sprint(args...))
}

// Errorf logs and goes on.
func (t *rank) Errorf(format string, args ...any) {
	t.TB.Helper()
	t.Error(fmt.Sprintf(format, args...))
}

// Fatal logs and ends the test.
func (t *rank) Fatal(args ...any) {
	t.TB.Helper()
	t.Error(args...)
	t.FailNow()
}

// Fatalf logs and ends the test.
func (t *rank) Fatalf(format string, args ...any) {
	t.TB.Helper()
	t.Error(fmt.Sprintf(format, args...))
	t.FailNow()
}

// FailNow ends the test on all ranks. Unlike testing.T's it may be called on
// any goroutine of a rank, and ends that goroutine.
func (t *rank) FailNow() {
	t.TB.Fail()
	t.end.begin()
	runtime.Goexit()
}

// Run is mpitest.Run with an option Within; t is what an mpitest.T stands on.
func Run(tb testing.TB, n int, f func(t testing.TB, world *mpi.Comm), opts ...Option) {
	tb.Helper()
	j := New(tb, opts...)
	starts := j.Add(n)
	procs := make([]*mpi.Process, n)
	for i, sp := range starts {
		p, err := j.Boot(sp)
		if err != nil {
			for _, q := range procs[:i] {
				j.Kill(q)
			}
			tb.Fatalf("rank %d: %v", i, err)
		}
		procs[i] = p
	}
	stopped := make(chan struct{}) // closed when the killer is through
	end := &ending{kill: func() {
		go func() {
			defer close(stopped)
			for _, p := range procs {
				p.Core().Process().Kill(nil)
			}
		}()
	}}
	var wg sync.WaitGroup
	for i, p := range procs {
		wg.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					tb.Errorf("rank %d: panic: %v\n%s", i, r, debug.Stack())
					end.begin()
				}
			}()
			f(&rank{TB: tb, ctx: p.Context(), number: i, end: end}, p.World())
			j.returned(p.Core().Process().Self)
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	timer := time.NewTimer(j.cfg.deadline)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		tb.Errorf("the ranks have not returned after %v:\n%s", j.cfg.deadline, j.RollCall())
		end.begin()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			buf := make([]byte, 1<<20)
			tb.Fatalf("ranks do not even return after their process was killed:\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
	if tb.Failed() {
		end.begin()
		select {
		case <-stopped:
		case <-time.After(10 * time.Second):
			tb.Fatal("a process cannot be killed: a goroutine may have panicked inside the library")
		}
		for _, p := range procs {
			j.Kill(p)
		}
		tb.FailNow()
	}
	// Together, as real processes: one may need the other's answer to leave.
	errs := make([]error, n)
	for i, p := range procs {
		wg.Go(func() { errs[i] = j.Leave(p) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			tb.Errorf("rank %d: Finalize: %v", i, err)
		}
	}
	if tb.Failed() {
		tb.FailNow()
	}
}
