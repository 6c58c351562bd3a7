// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

// unsafe: one piece of memory is mapped many times side by side, so that a
// buffer of more than 4 GiB needs 64 MiB.

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

const (
	hugePiece = 64 << 20
	hugeBytes = 4<<30 + hugePiece
)

// huge returns hugeBytes of address space that repeat the same hugePiece.
func huge(t *mpitest.T) []byte {
	fd, err := unix.MemfdCreate("huge", unix.MFD_CLOEXEC)
	must(t, err)
	defer unix.Close(fd)
	must(t, unix.Ftruncate(fd, hugePiece))
	base, err := unix.MmapPtr(-1, 0, nil, hugeBytes, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	must(t, err)
	t.Cleanup(func() { unix.MunmapPtr(base, hugeBytes) })
	for at := uintptr(0); at < hugeBytes; at += hugePiece {
		_, err := unix.MmapPtr(fd, 0, unsafe.Add(base, at), hugePiece, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
		must(t, err)
	}
	return unsafe.Slice((*byte)(base), hugeBytes)
}

func TestMessageOver4GiB(t *testing.T) {
	if !testlab.Long() {
		t.Skip("moves 13 GB: GOMPI_TEST=long")
	}
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		const n = hugeBytes - 4097
		buf := huge(t)
		if w.Rank() == 0 {
			for i := 0; i < hugePiece; i += 4096 {
				buf[i] = byte(i >> 12)
			}
			must(t, mpi.Send(w, buf[:n], 1, 0))
			return
		}
		st, err := mpi.Recv(w, buf, 0, mpi.AnyTag)
		if err != nil || st.Count != n || st.Bytes != n {
			t.Fatalf("%+v, %v", st, err)
		}
		for i := 0; i < hugePiece-4096; i += 4096 {
			if buf[i] != byte(i>>12) {
				t.Fatalf("byte %d is %d, want %d", i, buf[i], byte(i>>12))
			}
		}
	})
}
