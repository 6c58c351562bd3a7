// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// Descriptors and memory come back; other errors are no reason to wait.
func TestWorth(t *testing.T) {
	var r Retry
	if r.Allows(errors.New("other")) || !r.Allows(fmt.Errorf("x: %w", syscall.ENFILE)) || !r.Allows(fmt.Errorf("x: %w", syscall.ENOMEM)) {
		t.Error("what is worth another attempt?")
	}
	r.start = r.start.Add(-maxTotal)
	if r.Allows(syscall.EMFILE) {
		t.Errorf("still worth it after %v", maxTotal)
	}
}

func TestPause(t *testing.T) {
	var r Retry
	if d := r.NextPause(); d != firstPause {
		t.Errorf("the first pause is %v, want %v", d, firstPause)
	}
	for range 20 {
		r.NextPause()
	}
	if d := r.NextPause(); d != maxPause {
		t.Errorf("pauses grow to %v, want %v", d, maxPause)
	}
}
