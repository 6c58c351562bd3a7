// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
)

func random(b []byte) []byte {
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

func ok(t testing.TB, f *fault.Fault) {
	t.Helper()
	if f != nil {
		t.Fatalf("class %d: %v", f.Class, f.Err)
	}
}

func flush(t testing.TB, a *Target) {
	t.Helper()
	ok(t, a.Flush(nil))
}

// What is put is there, what is there is got, and nothing else changes.
func TestPutGet(t *testing.T) {
	const size = 3 << 20
	eachAccess(t, size, func(a access) {
		want := make([]byte, size)
		for _, c := range []struct{ off, n int }{{0, 0}, {0, 1}, {1, 8}, {size - 1, 1}, {size, 0}, {1000, 4096}, {77, 100_000}, {5, size - 5}} {
			src := random(make([]byte, c.n))
			ok(t, a.target.Put(buffer.Of(src), Layout{int64(c.off), dtype.Byte, int64(c.n)}))
			flush(t, a.target)
			copy(want[c.off:], src)
			if !bytes.Equal(a.region.Mem(), want) {
				t.Fatalf("%s: put of %d bytes at %d", a.name, c.n, c.off)
			}
			dst := make([]byte, c.n)
			ok(t, a.target.Get(buffer.Of(dst), Layout{int64(c.off), dtype.Byte, int64(c.n)}))
			flush(t, a.target)
			if !bytes.Equal(dst, src) {
				t.Fatalf("%s: get of %d bytes at %d", a.name, c.n, c.off)
			}
		}
	})
}
