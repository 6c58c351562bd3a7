// SPDX-License-Identifier: Apache-2.0

package kernel

// unsafe: addresses for kernels.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"gompi/internal/data/dtype"
)

func at(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// each runs f for every operation and kind that has a kernel.
func each(t *testing.T, f func(t *testing.T, o Op, k dtype.Kind)) {
	for o := range numOps {
		for k := range dtype.NumKinds {
			if defined(o, k) {
				t.Run(fmt.Sprintf("%s/%d", opNames[o], k), func(t *testing.T) { f(t, o, k) })
			}
		}
	}
}

func TestDefined(t *testing.T) {
	for o := range Op(255) {
		for k := range dtype.Kind(255) {
			if got := Of(o, k) != nil; got != defined(o, k) {
				t.Errorf("kernel of operation %d on kind %d: %v", o, k, got)
			}
		}
	}
}

// mask clears the padding of pairs, which has no value.
func mask(k dtype.Kind, b []byte) []byte {
	if isPair(k) {
		for i := 0; i < len(b); i += 16 {
			clear(b[i+sizeOf(valueKind(k)) : i+8])
		}
	}
	return b
}

// All pairs of special elements against the oracle: by itself, and in the
// middle of others.
func TestOracle(t *testing.T) {
	each(t, func(t *testing.T, o Op, k dtype.Kind) {
		list := specials(k)
		var a, b, d []byte
		for _, x := range list {
			for _, y := range list {
				a, b = append(a, x...), append(b, y...)
			}
		}
		size := sizeOf(k)
		d = make([]byte, len(a))
		for i := 0; i < len(a); i += size {
			want(o, k, d[i:i+size], a[i:i+size], b[i:i+size])
		}
		n := int64(len(a) / size)
		for name, f := range map[string]Func{"Of": Of(o, k), "loop": loops[o][k]} {
			got := make([]byte, len(a))
			f(at(got), at(a), at(b), n)
			compare(t, name, k, a, b, got, d)
			clear(got)
			for i := 0; i < len(a); i += size {
				f(at(got[i:]), at(a[i:]), at(b[i:]), 1)
			}
			compare(t, name+" one by one", k, a, b, got, d)
			f(at(got), at(b), at(a), n)
			compare(t, name+" commuted", k, b, a, got, d)
		}
	})
}

func compare(t *testing.T, name string, k dtype.Kind, a, b, got, want []byte) {
	t.Helper()
	size := sizeOf(k)
	mask(k, got)
	for i := 0; i+size <= len(got); i += size {
		if !bytes.Equal(got[i:i+size], want[i:i+size]) {
			t.Fatalf("%s: element %d: %x op %x is %x, want %x", name, i/size, a[i:i+size], b[i:i+size], got[i:i+size], want[i:i+size])
		}
	}
}

// Those that do not round are associative to the bit.
func TestAssociative(t *testing.T) {
	each(t, func(t *testing.T, o Op, k dtype.Kind) {
		if (o == Sum || o == Prod) && !isInt(k) {
			t.Skip("rounds")
		}
		f, size, list := Of(o, k), sizeOf(k), specials(k)
		pick := rand.New(rand.NewPCG(1, uint64(o)))
		for range 20_000 {
			a, b, c := list[pick.IntN(len(list))], list[pick.IntN(len(list))], list[pick.IntN(len(list))]
			left, right := make([]byte, size), make([]byte, size)
			f(at(left), at(a), at(b), 1)
			f(at(left), at(left), at(c), 1)
			f(at(right), at(b), at(c), 1)
			f(at(right), at(a), at(right), 1)
			if l, r := mask(k, left), mask(k, right); !bytes.Equal(l, r) {
				t.Fatalf("(%x op %x) op %x is %x, otherwise %x", a, b, c, l, r)
			}
		}
	})
}

// agree compares assembly and loop on n elements at three misalignments, with
// each way to alias, and looks at what lies around the result.
func agree(t *testing.T, o Op, k dtype.Kind, n int, offs [3]int, a, b []byte) {
	t.Helper()
	const around = 64
	bytesLen := n * sizeOf(k)
	place := func(off int, from []byte) []byte {
		room := make([]byte, around+off+bytesLen+around)
		for i := range room {
			room[i] = byte(37 * i)
		}
		copy(room[around+off:], from[:bytesLen])
		return room
	}
	expect := make([]byte, bytesLen)
	loops[o][k](at(expect), at(a[:bytesLen]), at(b[:bytesLen]), int64(n))
	mask(k, expect)
	for alias, name := range []string{"apart", "onto a", "onto b"} {
		rooms := [3][]byte{place(offs[0], b), place(offs[1], a), place(offs[2], b)}
		var in [3][]byte
		for i, r := range rooms {
			in[i] = r[around+offs[i]:][:bytesLen]
		}
		to := [3]int{0, 1, 2}[alias]
		before := slices.Clone(rooms[to])
		vectors[o][k](at(in[to]), at(in[1]), at(in[2]), int64(n))
		compare(t, fmt.Sprintf("%d elements %s at %v", n, name, offs), k, a, b, in[to], expect)
		lo, hi := around+offs[to], around+offs[to]+bytesLen
		if !bytes.Equal(rooms[to][:lo], before[:lo]) || !bytes.Equal(rooms[to][hi:], before[hi:]) {
			t.Fatalf("%d elements %s at %v: wrote outside", n, name, offs)
		}
	}
}

// fill puts special and random elements into b.
func fill(r *rand.Rand, k dtype.Kind, b []byte) {
	list := specials(k)
	for len(b) > 0 {
		if e := list[r.IntN(len(list))]; r.IntN(2) == 0 {
			b = b[copy(b, e):]
			continue
		}
		n := min(len(b), sizeOf(k))
		for i := range b[:n] {
			b[i] = byte(r.Uint32())
		}
		b = b[n:]
	}
}

func TestAssembly(t *testing.T) {
	each(t, func(t *testing.T, o Op, k dtype.Kind) {
		if vectors[o][k] == nil {
			t.Skip("Go only")
		}
		r := rand.New(rand.NewPCG(uint64(o), uint64(k)))
		const most = 700
		a, b := make([]byte, most), make([]byte, most)
		for n := 0; n*sizeOf(k) <= most; n++ {
			fill(r, k, a)
			fill(r, k, b)
			agree(t, o, k, n, [3]int{r.IntN(65), r.IntN(65), r.IntN(65)}, a, b)
		}
	})
}

// Where a long kernel is cut.
func TestPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, k := range []dtype.Kind{dtype.Uint8, dtype.Int16, dtype.Float32, dtype.Float64, dtype.Complex128} {
		size := sizeOf(k)
		const most = 300 << 10
		a, b := make([]byte, most), make([]byte, most)
		fill(r, k, a)
		fill(r, k, b)
		for _, n := range []int{64<<10 - size, 64 << 10, 64<<10 + size, 128<<10 - size, 128 << 10, 128<<10 + size, 192<<10 + 31, most} {
			if vectors[Sum][k] == nil {
				t.Skip("Go only")
			}
			agree(t, Sum, k, n/size, [3]int{8, 0, 1}, a, b)
		}
	}
}

func FuzzAssembly(f *testing.F) {
	f.Add(uint8(Sum), uint8(dtype.Float64), uint8(0), uint8(1), uint8(2), bytes.Repeat([]byte{0x7f, 0xf0, 1}, 100))
	f.Add(uint8(Prod), uint8(dtype.Uint8), uint8(31), uint8(32), uint8(33), bytes.Repeat([]byte{0xff, 3}, 500))
	f.Add(uint8(Min), uint8(dtype.Uint64), uint8(8), uint8(8), uint8(8), bytes.Repeat([]byte{0x80, 0, 0, 0x7f}, 64))
	f.Fuzz(func(t *testing.T, op, kind, d, x, y uint8, data []byte) {
		o, k := Op(op)%numOps, dtype.Kind(kind)%dtype.NumKinds
		if vectors[o][k] == nil {
			return
		}
		half := len(data) / 2
		agree(t, o, k, half/sizeOf(k), [3]int{int(d), int(x), int(y)}, data[:half], data[half:])
	})
}

// Bytes per second are those of one operand.
func BenchmarkKernel(b *testing.B) {
	for _, c := range []struct {
		o    Op
		k    dtype.Kind
		name string
	}{
		{Sum, dtype.Float64, "Sum/float64"}, {Sum, dtype.Float32, "Sum/float32"}, {Sum, dtype.Int64, "Sum/int64"}, {Sum, dtype.Uint8, "Sum/uint8"},
		{Sum, dtype.Complex128, "Sum/complex128"},
		{Prod, dtype.Float64, "Prod/float64"}, {Prod, dtype.Int64, "Prod/int64"}, {Prod, dtype.Uint8, "Prod/uint8"}, {Prod, dtype.Complex128, "Prod/complex128"},
		{Min, dtype.Float64, "Min/float64"}, {Max, dtype.Float32, "Max/float32"}, {Min, dtype.Int64, "Min/int64"}, {Max, dtype.Uint64, "Max/uint64"}, {Min, dtype.Int16, "Min/int16"},
		{BitAnd, dtype.Uint8, "BitAnd/uint8"}, {LogOr, dtype.Bool, "LogOr/bool"}, {MinLoc, dtype.PairFloat64, "MinLoc/float64"},
	} {
		for _, size := range []int{16, 1 << 10, 16 << 10, 256 << 10, 4 << 20} {
			x, y := make([]byte, size), make([]byte, size)
			n := int64(size / sizeOf(c.k))
			for form, f := range map[string]Func{"go": loops[c.o][c.k], "assembly": vectors[c.o][c.k]} {
				if f == nil {
					continue
				}
				b.Run(fmt.Sprintf("%s/%d/%s", c.name, size, form), func(b *testing.B) {
					b.SetBytes(int64(size))
					for b.Loop() {
						f(at(y), at(x), at(y), n)
					}
				})
			}
		}
	}
}
