// SPDX-License-Identifier: Apache-2.0

package controltest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// LimitFiles lets this process have open files up to number n-1, until the
// function that it returns is called.
func LimitFiles(t *testing.T, n uint64) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	low := old
	low.Cur = n
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
	}
}
