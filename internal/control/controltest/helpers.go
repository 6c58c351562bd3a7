// SPDX-License-Identifier: Apache-2.0

package controltest

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// Limit ends a test that would hang: long enough for one under the race detector beside
// other work.
const Limit = time.Minute

// Leftover counts what a server or client may leak.
type Leftover struct{ Goroutines, fds int }

// Within allows less: something of an earlier test may just have been ending.
func (l Leftover) Within(m Leftover) bool { return l.Goroutines <= m.Goroutines && l.fds <= m.fds }

func Leftovers() Leftover {
	if r, w, err := os.Pipe(); err == nil { // opens what the runtime keeps open for its poller
		r.Close()
		w.Close()
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return Leftover{runtime.NumGoroutine(), len(fds)}
}

func WaitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(Limit)
	for !ok() {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("not reached: %s; %+v\n%s", what, Leftovers(), buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}

// Async runs f and returns its error when asked.
func Async(t *testing.T, f func() error) func() error {
	ch := make(chan error, 1)
	go func() { ch <- f() }()
	return func() error {
		t.Helper()
		select {
		case err := <-ch:
			return err
		case <-time.After(Limit):
			t.Fatal("call does not return")
			return nil
		}
	}
}
