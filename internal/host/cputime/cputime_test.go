// SPDX-License-Identifier: Apache-2.0

package cputime

import (
	"runtime"
	"testing"
	"time"
)

// TestThread: who computes has had a processor, and for no longer than by the clock.
func TestThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, before := time.Now(), Thread()
	for Thread()-before < time.Millisecond {
		if time.Since(began) > time.Minute {
			t.Fatal("a minute of computing is not a millisecond of it")
		}
	}
	if d, whole := Thread()-before, time.Since(began); d > whole+10*time.Millisecond {
		t.Errorf("%v of %v", d, whole)
	}
}
