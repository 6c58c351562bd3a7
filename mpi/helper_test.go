// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// overAll runs f on n ranks over each transport.
func overAll(t *testing.T, n int, f func(t *mpitest.T, w *mpi.Comm), opts ...mpitest.Option) {
	t.Helper()
	for _, tr := range transports {
		t.Run(tr, func(t *testing.T) {
			mpitest.Run(t, n, f, append([]mpitest.Option{mpitest.Transport(tr)}, opts...)...)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks the class of an error and that its text has all parts.
func wantError(t testing.TB, err error, class mpi.Class, parts ...string) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Fatalf("error is %v, want class %q", err, class)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("error %q does not contain %q", err, p)
		}
	}
	said := 0
	for part := range strings.SplitSeq(err.Error(), ": ") {
		switch part {
		case "not found", "refused by gompirun", "the process set is gone", "job is ending":
			said++
		}
	}
	if said > 1 {
		t.Errorf("error %q says twice of what kind it is", err)
	}
}

// fill fills s with start, start+1, ...
func fill(s []int64, start int) {
	for i := range s {
		s[i] = int64(start + i)
	}
}

func checkFill(t *mpitest.T, s []int64, start int) {
	t.Helper()
	for i, v := range s {
		if v != int64(start+i) {
			t.Fatalf("element %d of %d is %d, want %d", i, len(s), v, start+i)
		}
	}
}

// sizes reach from nothing over eager to several chunks of a bulk transfer.
var sizes = []int{0, 1, 100, 2000, 40000}
