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
	if r.Worth(errors.New("other")) || !r.Worth(fmt.Errorf("x: %w", syscall.ENFILE)) || !r.Worth(fmt.Errorf("x: %w", syscall.ENOMEM)) {
		t.Error("what is worth another attempt?")
	}
	r.since = r.since.Add(-all)
	if r.Worth(syscall.EMFILE) {
		t.Errorf("still worth it after %v", all)
	}
}

func TestPause(t *testing.T) {
	var r Retry
	if d := r.Pause(); d != first {
		t.Errorf("the first pause is %v, want %v", d, first)
	}
	for range 20 {
		r.Pause()
	}
	if d := r.Pause(); d != most {
		t.Errorf("pauses grow to %v, want %v", d, most)
	}
}
