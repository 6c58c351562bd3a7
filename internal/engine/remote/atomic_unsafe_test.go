// SPDX-License-Identifier: Apache-2.0

package remote

// unsafe: FetchOp and CompareSwap want addresses.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

func int64Buf(v *int64) buffer.Buf {
	return buffer.New(unsafe.Pointer(v), 1, int64Type)
}

// What single numbers give is what kernels give, bit for bit.
func TestFetchOpIsKernel(t *testing.T) {
	target := ownTarget(t, 64)
	mem, numbers := target.Mapped(), newSpecials()
	for k := range dtype.NumKinds {
		for _, op := range allOps {
			can := widthOf(k) != 0 && (op >= kernel.Replace || kernel.Of(op, k) != nil)
			for range 2000 {
				n := sizeOf(k)
				numbers.fill(k, mem)
				operand, result := numbers.fill(k, make([]byte, 16))[:n], make([]byte, n)
				was := bytes.Clone(mem[8:][:n])
				want := was
				if can {
					want = apply(op, k, was, operand)
				}
				if did := target.FetchOp(8, k, op, addr(operand), addr(result)); did != can {
					t.Fatalf("operation %d on kind %d: %v", op, k, did)
				}
				if !can {
					break
				}
				if !bytes.Equal(mem[8:][:n], want) || !bytes.Equal(result, was) {
					t.Fatalf("operation %d on kind %d: %x op %x is %x, want %x", op, k, operand, was, mem[8:][:n], want)
				}
			}
		}
	}
}

func TestFetchOpRefuses(t *testing.T) {
	target := ownTarget(t, 64)
	var v, w int64
	for _, off := range []int64{-1 << 63, -8, -1, 1, 4, 57, 64, 1<<63 - 1, 1<<63 - 8} {
		if target.FetchOp(off, dtype.Int64, kernel.Sum, unsafe.Pointer(&v), unsafe.Pointer(&w)) ||
			target.CompareSwap(off, dtype.Int64, unsafe.Pointer(&v), unsafe.Pointer(&v), unsafe.Pointer(&w)) {
			t.Errorf("offset %d", off)
		}
	}
	if target.FetchOp(0, dtype.Int64, 200, unsafe.Pointer(&v), unsafe.Pointer(&w)) || target.FetchOp(0, 200, kernel.Sum, unsafe.Pointer(&v), unsafe.Pointer(&w)) {
		t.Error("no such operation or kind")
	}
	if ownTarget(t, 0).FetchOp(0, dtype.Int64, kernel.Sum, unsafe.Pointer(&v), unsafe.Pointer(&w)) {
		t.Error("no memory")
	}
}

func TestCompareAndSwap(t *testing.T) {
	eachAccess(t, 256, func(a access) {
		mem := a.region.Mem()
		for k := range dtype.NumKinds {
			dt := basicOf(k)
			n := dt.Size
			for _, equal := range []bool{true, false} {
				random(mem)
				want := bytes.Clone(mem)
				off := 3 * n
				compare, value, result := bytes.Clone(mem[off:][:n]), random(make([]byte, n)), make([]byte, n)
				if !equal {
					compare[n-1]++
				}
				bufs := [3]buffer.Buf{}
				for i, b := range [][]byte{compare, value, result} {
					bufs[i] = strided(b, 0, 1, dt)
				}
				ok(t, a.target.CompareAndSwap(bufs[0], bufs[1], bufs[2], off))
				flush(t, a.target)
				if !bytes.Equal(result, want[off:][:n]) {
					t.Fatalf("%s: kind %d: %x was there, want %x", a.name, k, result, want[off:][:n])
				}
				if equal {
					copy(want[off:], value)
				}
				if !bytes.Equal(mem, want) {
					t.Fatalf("%s: kind %d: wrong memory", a.name, k)
				}
			}
		}
	})
}

// Many goroutines of two processes and the owner: nothing is lost, whatever
// the element, and each value is fetched once.
func TestConcurrentSums(t *testing.T) {
	const goroutines, rounds = 4, 200
	const wideAt, wideSum = 4096, 5000
	eachAccess(t, 64<<10, func(a access) {
		d := a.region.Desc()
		owner, f := a.region.s.Reach(a.region.s.self, &d)
		ok(t, f)
		seen := make([][]int64, 2*goroutines)
		var wg sync.WaitGroup
		for g := range 2 * goroutines {
			target := a.target
			if g%2 == 1 {
				target = owner
			}
			wg.Go(func() {
				one, was := int64(1), int64(0)
				pairs := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 0x3ff0000000000000), 0) // complex128 of 1
				halves := bytes.Repeat([]byte{1, 0}, 300)                                                               // int16 of 1
				floats := binary.LittleEndian.AppendUint64(nil, 0x3ff0000000000000)
				floats = binary.LittleEndian.AppendUint32(floats, 0x3f800000)
				sum := basicOf(dtype.Int64)
				wide := bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, wideSum)
				gaps := must(t)(dtype.NewResized(sum, 0, 16))
				for range rounds {
					// One number alone, among many side by side, and with gaps between them.
					if !target.CPU() || !target.FetchOp(wideAt+8*70, dtype.Int64, kernel.Sum, unsafe.Pointer(&one), nil) {
						if f := target.Accumulate(int64Buf(&one), Layout{wideAt + 8*70, sum, 1}, kernel.Sum); f != nil {
							t.Error(f.Err)
						}
					}
					if f := target.Accumulate(strided(wide, 0, wideSum, sum), Layout{wideAt, sum, wideSum}, kernel.Sum); f != nil {
						t.Error(f.Err)
					}
					if f := target.Accumulate(strided(wide, 0, wideSum/2, sum), Layout{wideAt, gaps, wideSum / 2}, kernel.Sum); f != nil {
						t.Error(f.Err)
					}
					if f := target.GetAccumulate(int64Buf(&one), int64Buf(&was), Layout{8, sum, 1}, kernel.Sum); f != nil {
						t.Error(f.Err)
					}
					if f := target.Accumulate(strided(pairs, 0, 1, basicOf(dtype.Complex128)), Layout{16, basicOf(dtype.Complex128), 1}, kernel.Sum); f != nil {
						t.Error(f.Err)
					}
					for at, number := range map[int64]*dtype.Type{32: basicOf(dtype.Float64), 40: basicOf(dtype.Float32)} {
						if f := target.Accumulate(strided(floats, at-32, 1, number), Layout{at, number, 1}, kernel.Sum); f != nil {
							t.Error(f.Err)
						}
					}
					if f := target.Accumulate(strided(halves, 0, 300, basicOf(dtype.Int16)), Layout{1024, basicOf(dtype.Int16), 300}, kernel.Sum); f != nil {
						t.Error(f.Err)
					}
					if f := target.Flush(nil); f != nil {
						t.Error(f.Err)
					}
					seen[g] = append(seen[g], was)
				}
			})
		}
		wg.Wait()
		const all = 2 * goroutines * rounds
		mem := a.region.Mem()
		if v := binary.LittleEndian.Uint64(mem[8:]); v != all {
			t.Fatalf("%s: int64 is %d, want %d", a.name, v, all)
		}
		if v := *(*float64)(unsafe.Pointer(&mem[16])); v != all {
			t.Fatalf("%s: complex128 is %v, want %d", a.name, v, all)
		}
		if v, w := *(*float64)(unsafe.Pointer(&mem[32])), *(*float32)(unsafe.Pointer(&mem[40])); v != all || w != all {
			t.Fatalf("%s: float64 is %v, float32 %v, want %d", a.name, v, w, all)
		}
		for i := range 300 {
			if v := binary.LittleEndian.Uint16(mem[1024+2*i:]); v != all%65536 {
				t.Fatalf("%s: int16 %d is %d, want %d", a.name, i, v, all%65536)
			}
		}
		for i := range uint64(wideSum) {
			want := all * (2 - i%2)
			if i == 70 {
				want += all
			}
			if v := binary.LittleEndian.Uint64(mem[wideAt+8*i:]); v != want {
				t.Fatalf("%s: int64 %d of many is %d, want %d", a.name, i, v, want)
			}
		}
		once := map[int64]bool{}
		for _, s := range seen {
			for _, v := range s {
				once[v] = true
			}
		}
		if len(once) != all || !once[0] || !once[all-1] {
			t.Fatalf("%s: %d values fetched, want %d", a.name, len(once), all)
		}
	})
}

// Accumulates of one origin to one place keep their order, however many and
// however large.
func TestOrder(t *testing.T) {
	eachAccess(t, 1<<20, func(a access) {
		n := a.target.Bytes() / 8
		src := make([]byte, 8*n)
		for i := range 40 {
			count := n
			if i%3 != 0 {
				count = 1 + int64(i)
			}
			for j := range n {
				binary.LittleEndian.PutUint64(src[8*j:], uint64(i))
			}
			ok(t, a.target.Accumulate(strided(src, 0, count, basicOf(dtype.Int64)), Layout{0, basicOf(dtype.Int64), count}, kernel.Replace))
			var was int64
			none := buffer.Buf{}
			ok(t, a.target.GetAccumulate(none, int64Buf(&was), Layout{8 * (count - 1), basicOf(dtype.Int64), 1}, kernel.NoOp))
			flush(t, a.target)
			if was != int64(i) {
				t.Fatalf("%s: round %d: %d is there", a.name, i, was)
			}
		}
	})
}

// Steady state allocates nothing.
func TestNoAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	eachAccess(t, 1<<20, func(a access) {
		if a.name == "posted" {
			return // the devices of tests allocate: TestPostCost
		}
		src, dst := make([]byte, 128<<10), make([]byte, 128<<10)
		column := must(t)(dtype.NewVector(1000, 1, 3, basicOf(dtype.Float64)))
		one, was := new(int64), new(int64)
		for name, f := range map[string]func() *fault.Fault{
			"put":        func() *fault.Fault { return a.target.Put(buffer.Of(src), Layout{8, dtype.Byte, int64(len(src))}) },
			"get":        func() *fault.Fault { return a.target.Get(buffer.Of(dst), Layout{8, dtype.Byte, int64(len(dst))}) },
			"put column": func() *fault.Fault { return a.target.Put(buffer.Of(src[:8000]), Layout{8, column, 1}) },
			"get column": func() *fault.Fault { return a.target.Get(strided(dst, 0, 1, column), Layout{8, column, 1}) },
			"add column": func() *fault.Fault {
				return a.target.Accumulate(strided(src, 0, 1, column), Layout{8, column, 1}, kernel.Sum)
			},
			"fetch": func() *fault.Fault {
				return a.target.GetAccumulate(int64Buf(one), int64Buf(was), Layout{8, int64Type, 1}, kernel.Sum)
			},
			"swap": func() *fault.Fault { return a.target.CompareAndSwap(int64Buf(one), int64Buf(one), int64Buf(was), 8) },
		} {
			round := func() {
				for range 3 {
					if f := f(); f != nil {
						t.Error(f.Err)
					}
				}
				flush(t, a.target)
			}
			if n := testing.AllocsPerRun(200, round); n >= 1 {
				t.Errorf("%s: %s: %v allocations", a.name, name, n)
			}
		}
	})
}

var int64Type = basicOf(dtype.Int64)

func BenchmarkAccess(b *testing.B) {
	eachAccess(b, 8<<20, func(a access) {
		dst := make([]byte, 4<<20)
		one, was := new(int64), new(int64)
		each := func(name string, n int, f func() *fault.Fault) {
			b.Run(fmt.Sprintf("%s/%s", a.name, name), func(b *testing.B) {
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					f()
					if f := a.target.Flush(nil); f != nil {
						b.Fatal(f.Err)
					}
				}
			})
		}
		for _, n := range []int{8, 4096, 64 << 10, 4 << 20} {
			each(fmt.Sprint("put/", n), n, func() *fault.Fault {
				return a.target.Put(buffer.Of(dst[:n]), Layout{0, dtype.Byte, int64(n)})
			})
			each(fmt.Sprint("get/", n), n, func() *fault.Fault {
				return a.target.Get(buffer.Of(dst[:n]), Layout{0, dtype.Byte, int64(n)})
			})
			each(fmt.Sprint("sum/", n), n, func() *fault.Fault {
				return a.target.Accumulate(strided(dst, 0, int64(n)/8, int64Type), Layout{0, int64Type, int64(n) / 8}, kernel.Sum)
			})
		}
		each("fetch", 8, func() *fault.Fault {
			return a.target.GetAccumulate(int64Buf(one), int64Buf(was), Layout{0, int64Type, 1}, kernel.Sum)
		})
		if a.target.CPU() {
			b.Run(a.name+"/FetchOp", func(b *testing.B) {
				for b.Loop() {
					a.target.FetchOp(8, dtype.Int64, kernel.Sum, unsafe.Pointer(one), unsafe.Pointer(was))
				}
			})
		}
	})
}
