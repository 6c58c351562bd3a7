// SPDX-License-Identifier: Apache-2.0

package rma_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// TestExpose: a key travels in a message, others read and write, and after
// Close they are told so.
func TestExpose(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		mem := make([]int32, 100)
		keys := make([]rma.Key, 1)
		var x *rma.Exposed
		if w.Rank() == 0 {
			for i := range mem {
				mem[i] = int32(i)
			}
			var err error
			x, err = rma.Expose(w.Process(), mem)
			must(t, err)
			keys[0] = x.Key()
		}
		must(t, mpi.Bcast(w, keys, 0))
		r, err := rma.Open(w.Process(), keys[0])
		must(t, err)
		if r.Bytes() != 400 || r.DispUnit() != 4 {
			t.Fatalf("%d bytes in units of %d", r.Bytes(), r.DispUnit())
		}
		got := make([]int32, 3)
		must(t, rma.Read(r, got, 97))
		if got[0] != 97 || got[2] != 99 {
			t.Fatalf("read %v", got)
		}
		must(t, w.Barrier())
		must(t, rma.Write(r, []int32{int32(-w.Rank())}, 10+w.Rank()))
		must(t, w.Barrier())
		must(t, rma.Read(r, got, 10))
		if got[0] != 0 || got[1] != -1 || got[2] != -2 {
			t.Fatalf("read %v", got)
		}
		wantError(t, rma.Read(r, got, 98), mpi.ErrRMARange)
		wantError(t, rma.Read(r, got, -1), mpi.ErrRMARange, "offset -1")
		wantError(t, rma.Write(r, got, 101), mpi.ErrRMARange)
		must(t, w.Barrier())
		if w.Rank() == 0 {
			must(t, x.Close())
			wantError(t, x.Close(), mpi.ErrClosed)
		}
		must(t, w.Barrier())
		wantError(t, rma.Read(r, got, 0), mpi.ErrClosed)
		wantError(t, rma.Write(r, got, 0), mpi.ErrClosed)
		must(t, r.Close())
	})
}

func TestKeyText(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		x, err := rma.Expose(w.Process(), make([]int64, 3))
		must(t, err)
		text, err := x.Key().MarshalText()
		must(t, err)
		var k rma.Key
		must(t, k.UnmarshalText(text))
		if k != x.Key() || string(text) != x.Key().String() {
			t.Fatal("the key has changed")
		}
		if k.UnmarshalText(text[1:]) == nil || k.UnmarshalText([]byte("!")) == nil {
			t.Fatal("what is no key was taken for one")
		}
		_, err = rma.Open(w.Process(), rma.Key{})
		wantError(t, err, mpi.ErrArg)
		must(t, x.Close())
	})
}
