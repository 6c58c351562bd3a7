// SPDX-License-Identifier: Apache-2.0

package dtype

// unsafe: Pack takes an address.

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// most is up to how many bytes a random type may pack.
const most = 1 << 12

// TestAgainstTypemap compares random types with their slow twins: what they
// are, and what they pack from any packed byte to any other.
func TestAgainstTypemap(t *testing.T) {
	for range 10 { // one check of rapid is a hundred types
		rapid.Check(t, compareType)
	}
}

func compareType(r *rapid.T) {
	b := drawType(r, 4)
	if b.m.size() > most {
		return
	}
	compareBounds(r, b)
	if b.m.size() == 0 {
		return
	}
	count := rapid.Int64Range(1, 5).Draw(r, "count")
	at := b.m.bytesOf(count)
	lo, hi := int64(0), int64(0) // the address itself must be memory
	for _, a := range at {
		lo, hi = min(lo, a), max(hi, a)
	}
	mem := make([]byte, hi-lo+1)
	for i := range mem {
		mem[i] = byte(i*7 + i>>8)
	}
	off := rapid.Int64Range(0, int64(len(at))).Draw(r, "off")
	n := rapid.Int64Range(0, int64(len(at))-off).Draw(r, "n")
	comparePack(r, b.t, mem, -lo, at, off, n)
	if distinct(at) { // or the order of the copies counts
		compareUnpack(r, b.t, mem, -lo, at, off, n)
	}
	comparePlaces(r, b.t, at, off, n)
	compareExternal(r, b, mem, -lo, count)
}

func distinct(at []int64) bool {
	seen := make(map[int64]bool, len(at))
	for _, a := range at {
		seen[a] = true
	}
	return len(seen) == len(at)
}

func compareBounds(r *rapid.T, b both) {
	lb, ub := b.m.trueBounds()
	got := []int64{b.t.Size, b.t.Extent(), b.t.LB(), b.t.TrueLB(), b.t.TrueExtent()}
	want := []int64{b.m.size(), b.m.extent(), b.m.lb, lb, ub - lb}
	if base := b.m.base(); len(b.m.elems) > 0 && b.t.Base() != base {
		r.Fatalf("base %v, want %v", b.t.Base(), base)
	}
	for i, what := range []string{"size", "extent", "lower bound", "true lower bound", "true extent"} {
		if got[i] != want[i] {
			r.Fatalf("%s %d, want %d: %v", what, got[i], want[i], b.m)
		}
	}
}

// comparePack packs into the middle of a slice, which must not change around.
func comparePack(r *rapid.T, t *Type, mem []byte, origin int64, at []int64, off, n int64) {
	got := bytes.Repeat([]byte{0xEE}, int(n)+16)
	want := bytes.Clone(got)
	for i, a := range at[off : off+n] {
		want[8+i] = mem[a+origin]
	}
	t.Pack(got[8:8+n], unsafe.Add(unsafe.Pointer(&mem[0]), origin), off)
	if !bytes.Equal(got, want) {
		r.Fatalf("packed [%d, %d):\n% x, want\n% x", off, off+n, got, want)
	}
}

func compareUnpack(r *rapid.T, t *Type, mem []byte, origin int64, at []int64, off, n int64) {
	src := make([]byte, n)
	for i := range src {
		src[i] = byte(200 + i*3)
	}
	want := bytes.Clone(mem)
	for i, a := range at[off : off+n] {
		want[a+origin] = src[i]
	}
	t.Unpack(unsafe.Add(unsafe.Pointer(&mem[0]), origin), off, src)
	if !bytes.Equal(mem, want) {
		r.Fatalf("unpacked [%d, %d):\n% x, want\n% x", off, off+n, mem, want)
	}
}

func comparePlaces(r *rapid.T, t *Type, at []int64, off, n int64) {
	lo, hi := t.Span(off, n)
	var wantLo, wantHi int64
	for i, a := range at[off : off+n] {
		if i == 0 {
			wantLo, wantHi = a, a+1
		}
		wantLo, wantHi = min(wantLo, a), max(wantHi, a+1)
	}
	if lo != wantLo || hi != wantHi {
		r.Fatalf("span of [%d, %d) is [%d, %d), want [%d, %d)", off, off+n, lo, hi, wantLo, wantHi)
	}
	place, length := t.Block(off, n)
	want := int64(0)
	for want < n && at[off+want] == at[off]+want {
		want++
	}
	if n > 0 && place != at[off] || length != want {
		r.Fatalf("block of [%d, %d) is %d bytes at %d, want %d at %v", off, off+n, length, place, want, at[off:])
	}
}

func compareExternal(r *rapid.T, b both, mem []byte, origin, count int64) {
	var want []byte
	var at []int64 // of the bytes that have a meaning
	for i := range count {
		for _, e := range b.m.elems {
			for _, x := range numbersOf(e.t) {
				from := i*b.m.extent() + e.at + x.at
				for k := range x.width {
					at = append(at, from+k)
					if littleEndian() {
						k = x.width - 1 - k
					}
					want = append(want, mem[origin+from+k])
				}
			}
		}
	}
	if n := b.t.ExternalSize() * count; n != int64(len(want)) {
		r.Fatalf("external size %d, want %d", n, len(want))
	}
	base := unsafe.Add(unsafe.Pointer(&mem[0]), origin)
	got := make([]byte, len(want))
	b.t.PackExternal(got, base, count)
	if !bytes.Equal(got, want) {
		r.Fatalf("external % x, want % x", got, want)
	}
	if !distinct(at) {
		return
	}
	restored := bytes.Clone(mem)
	for _, a := range at {
		mem[origin+a] = 0
	}
	b.t.UnpackExternal(base, count, got)
	if !bytes.Equal(mem, restored) {
		r.Fatalf("unpacked % x, want % x", mem, restored)
	}
}

func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// TestNoAllocations: packing, seeking and converting leave nothing behind.
func TestNoAllocations(t *testing.T) {
	column := must(t)(NewVector(64, 1, 4, tFloat64))
	m, b := make([]float64, 256), make([]byte, 8*64)
	base := unsafe.Pointer(&m[0])
	n := testing.AllocsPerRun(100, func() {
		column.Pack(b[:100], base, 12)
		column.Unpack(base, 12, b[:100])
		column.Span(3, 99)
		column.Block(3, 99)
		column.Reach(1)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { column.PackExternal(b, base, 1) }); n > 1 {
		t.Errorf("external: %v allocations", n)
	}
}

// TestBlockSizes moves blocks of every size there is a loop for, and of some
// beyond, forwards and backwards, and looks at the bytes between them.
func TestBlockSizes(t *testing.T) {
	const count, packed = 7, 2 // packed: the gap in the target
	for size := 1; size < shortMax+80; size++ {
		for _, step := range []int{size, size + 1, 3*size + 5, -size, -2*size - 3} {
			src, first := make([]byte, count*max(step, -step)), 0
			for i := range src {
				src[i] = byte(i*7 + i>>8 + 1)
			}
			if step < 0 {
				first = -step * (count - 1)
			}
			got := make([]byte, count*(size+packed))
			want := bytes.Clone(got)
			for i := range count {
				copy(want[i*(size+packed):][:size], src[first+i*step:])
			}
			copyStrided(unsafe.Pointer(&got[0]), unsafe.Pointer(&src[first]), int64(size+packed), int64(step), count, int64(size))
			if !bytes.Equal(got, want) {
				t.Fatalf("blocks of %d bytes at %d:\n% x, want\n% x", size, step, got, want)
			}
			back := make([]byte, len(src))
			copyStrided(unsafe.Pointer(&back[first]), unsafe.Pointer(&got[0]), int64(step), int64(size+packed), count, int64(size))
			wantBack := make([]byte, len(src))
			for i := range count {
				copy(wantBack[first+i*step:][:size], src[first+i*step:])
			}
			if !bytes.Equal(back, wantBack) {
				t.Fatalf("blocks of %d bytes put at %d:\n% x, want\n% x", size, step, back, wantBack)
			}
		}
	}
}
