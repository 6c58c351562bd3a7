// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// Try runs f with a testing.TB whose failures do not fail tb, and returns
// whether f failed and what it said. For code that may be run again to find
// out more about a failure.
func Try(tb testing.TB, f func(tb testing.TB)) (failed bool, log string) {
	r := &recorder{TB: tb}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.cleanup()
		defer func() {
			if v := recover(); v != nil {
				r.Errorf("panic: %v\n%s", v, debug.Stack())
			}
		}()
		f(r)
	}()
	<-done
	return r.failed, r.log.String()
}

// recorder is a testing.TB that records its messages.
type recorder struct {
	testing.TB
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	failed bool
	log    strings.Builder
	after  []func()
}

func (r *recorder) say(fail bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || fail
	if text != "" {
		r.log.WriteString(strings.TrimSuffix(text, "\n") + "\n")
	}
}

func (r *recorder) Context() context.Context  { return r.ctx }
func (r *recorder) Helper()                   {}
func (r *recorder) Log(args ...any)           { r.say(false, fmt.Sprintln(args...)) }
func (r *recorder) Logf(f string, a ...any)   { r.say(false, fmt.Sprintf(f, a...)) }
func (r *recorder) Error(args ...any)         { r.say(true, fmt.Sprintln(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.say(true, fmt.Sprintf(f, a...)) }
func (r *recorder) Fail()                     { r.say(true, "") }
func (r *recorder) Fatal(args ...any)         { r.say(true, fmt.Sprintln(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(f string, a ...any) { r.say(true, fmt.Sprintf(f, a...)); runtime.Goexit() }
func (r *recorder) FailNow()                  { r.say(true, ""); runtime.Goexit() }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = append(r.after, f)
}

func (r *recorder) cleanup() {
	r.cancel()
	for {
		r.mu.Lock()
		n := len(r.after)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		f := r.after[n-1]
		r.after = r.after[:n-1]
		r.mu.Unlock()
		f()
	}
}
