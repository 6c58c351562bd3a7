// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/mpi"
	"gompi/mpitest"
)

// claimed is more than any machine has, within what the engine believes.
const claimed = 1 << 43

// vast is address space without memory: what is sent from it claims a length
// that no receiver can hold, and reading it would be a fault.
func vast(t *mpitest.T) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, claimed, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	must(t, err)
	t.Cleanup(func() { unix.Munmap(b) })
	return b
}

func TestRecvNewOfTooMuch(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		if w.Rank() == 0 {
			big := vast(t)
			must(t, mpi.Ssend(w, big, 1, 7))
			must(t, mpi.Send(w, big, 1, 8))
			must(t, w.Core().SendValue(big, 1, 9))
			must(t, w.Core().SendValue(big, 1, 10))
			must(t, w.Core().SendValue(big, 1, 11))
			must(t, mpi.Send(w, []int32{1, 2, 3}, 1, 12))
			return
		}
		text := []string{"on WORLD rank 1", "peer 0", "8796093022208 bytes", "can have"}
		b, st, err := mpi.RecvNew[byte](w, mpi.AnySource, 7)
		wantError(t, err, mpi.ErrNoMemory, append(text, "RecvNew", "tag 7")...)
		if b != nil || st.Source != 0 || st.Tag != 7 {
			t.Fatalf("%d bytes, %+v", len(b), st)
		}
		_, _, err = mpi.RecvNew[int64](w, 0, mpi.AnyTag)
		wantError(t, err, mpi.ErrNoMemory, append(text, "tag 8")...)
		_, _, err = w.Core().ReceiveValue(0, 9, math.MaxInt64)
		wantError(t, err, mpi.ErrNoMemory, append(text, "value.Recv", "tag 9")...)
		_, _, err = w.Core().ReceiveValue(0, 10, 100)
		wantError(t, err, mpi.ErrTruncate)
		_, _, err = mpi.RecvNew[byte](w, 0, 11)
		if err == nil {
			t.Fatal("a value was received as elements")
		}
		v, _, err := mpi.RecvNew[int32](w, 0, 12)
		if err != nil || len(v) != 3 || v[2] != 3 {
			t.Fatal(v, err)
		}
	})
}

// What can be had is not refused.
func TestRecvNewAsksForRoom(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		const n = 17 << 20
		if w.Rank() == 0 {
			b := make([]byte, n)
			b[n-1] = 5
			must(t, mpi.Send(w, b, 1, 0))
			return
		}
		b, st, err := mpi.RecvNew[byte](w, 0, 0)
		if err != nil || len(b) != n || st.Bytes != n || b[n-1] != 5 {
			t.Fatal(len(b), st, err)
		}
	})
}
