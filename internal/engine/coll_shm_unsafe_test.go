// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: kernels work on addresses.

import (
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/data/dtype"
	"gompi/internal/engine/shmcoll"
)

// join64 composes maps x -> ax + b modulo 1<<32, kept as {a, b}: associative,
// and not commutative.
func join64(dst, a, b unsafe.Pointer, n int64) {
	x, y, z := unsafe.Slice((*uint64)(a), n), unsafe.Slice((*uint64)(b), n), unsafe.Slice((*uint64)(dst), n)
	for i := range z {
		z[i] = compose(x[i], y[i])
	}
}

func compose(x, y uint64) uint64 {
	a, b, c, d := uint32(x>>32), uint32(x), uint32(y>>32), uint32(y)
	return uint64(a*c)<<32 | uint64(a*d+b)
}

var type64 = &dtype.Type{Name: "uint64", Size: 8, Kind: dtype.Uint64}

func buf64(s []uint64) buffer.Buf {
	return buffer.New(unsafe.Pointer(unsafe.SliceData(s)), int64(len(s)), type64)
}

// spread is s with a gap behind each element, and how to take it.
func spread(t testing.TB, s []uint64) (wide []uint64, b buffer.Buf) {
	t.Helper()
	if len(s) == 0 {
		return nil, buf64(s)
	}
	every2nd, err := dtype.NewResized(type64, 0, 16)
	if err != nil {
		t.Fatal(err)
	}
	wide = make([]uint64, 2*len(s))
	for i, v := range s {
		wide[2*i], wide[2*i+1] = v, gap64
	}
	return wide, buffer.New(unsafe.Pointer(unsafe.SliceData(wide)), int64(len(s)), every2nd)
}

const gap64 = 0x6761706761706761

// areaJob is a job whose communicator has its area.
func areaJob(t testing.TB, n int, change func(i int, c *Config)) []*node {
	t.Helper()
	ns, _ := testJobOf(t, n, nil, change)
	warmArea(t, ns)
	return ns
}

func warmArea(t testing.TB, ns []*node) {
	t.Helper()
	for range 2 {
		for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
			if f != nil {
				t.Fatalf("rank %d: %+v", r, f)
			}
		}
	}
	for i, n := range ns {
		if n.ctx.area == nil {
			t.Fatalf("rank %d of %d has no area", i, len(ns))
		}
	}
}

// everywhere makes one blocking call on all ranks.
func everywhere(t testing.TB, ns []*node, call func(i int) *CollArgs) []*fault.Fault {
	t.Helper()
	return soon(t, "collective", func() []*fault.Fault {
		faults := make([]*fault.Fault, len(ns))
		var wg sync.WaitGroup
		for i, n := range ns {
			wg.Go(func() { faults[i] = n.Collective(n.ctx, call(i)) })
		}
		wg.Wait()
		return faults
	})
}

// call64 are the arguments of a call on uint64; it goes over the area if it
// can.
func (n *node) call64(op collectives.Op, in, out []uint64, count, root int) *CollArgs {
	a := &CollArgs{
		Op:   fault.Call(op.String()),
		Call: shmcoll.Call{In: buf64(in), Out: buf64(out), Unit: 8, Kernel: join64, Args: collectives.Args{Op: op, Rank: n.ctx.Rank, Size: n.ctx.Members.Len(), Count: int64(count), Root: root}},
	}
	if op == collectives.OpReduceScatter {
		a.Args.Counts = uneven(a.Args.Size, count)
	}
	a.Args.Shared, a.Args.Reads = n.ctx.SharedRoom()/8, n.ctx.Reads()
	a.Table = selection.DefaultTable()
	a.Alg = a.Table.Select(&a.Args, 8, false)
	return a
}

// uneven cuts count elements a rank into blocks of 0, 2, 0, 2, ... times that.
func uneven(size, count int) []int64 {
	blocks := make([]int64, size)
	for i := range blocks {
		if blocks[i] = int64(count); i+1 < size || size%2 == 0 {
			blocks[i] = int64(2 * count * (i % 2))
		}
	}
	return blocks
}

// word64 is what rank r puts into element i of call k.
func word64(k, r, i int) uint64 {
	return uint64(k)<<40 ^ uint64(r)<<20 ^ uint64(i)*0x9e3779b9 | 1<<32 | 1
}

func fold(k, from, to, i int) uint64 {
	v := word64(k, to, i)
	for r := to - 1; r >= from; r-- {
		v = compose(word64(k, r, i), v)
	}
	return v
}

// areaCase makes one rank's buffers of a call and says what must be in out.
func areaCase(op collectives.Op, k, rank, size, count, root int, inPlace bool) (in, out []uint64, want func(i int) uint64) {
	vec := func(n int) []uint64 { return make([]uint64, n) }
	own := 0
	want = func(i int) uint64 { panic("no result") }
	switch op {
	case collectives.OpBcast:
		out = vec(count)
		want = func(i int) uint64 { return word64(k, root, i) }
		if rank == root {
			in = out
		}
	case collectives.OpAllreduce, collectives.OpScan:
		in, out = vec(count), vec(count)
		last := size - 1
		if op == collectives.OpScan {
			last = rank
		}
		want = func(i int) uint64 { return fold(k, 0, last, i) }
	case collectives.OpExscan:
		in, out = vec(count), vec(count)
		if want = func(i int) uint64 { return fold(k, 0, rank-1, i) }; rank == 0 {
			want = func(int) uint64 { return 0 }
			inPlace = false
		}
	case collectives.OpReduce:
		in = vec(count)
		if rank == root {
			out = vec(count)
			want = func(i int) uint64 { return fold(k, 0, size-1, i) }
		}
	case collectives.OpGather, collectives.OpAllgather:
		in = vec(count)
		if rank == root || op == collectives.OpAllgather {
			out = vec(count * size)
			own = count * rank
			want = func(i int) uint64 { return word64(k, i/count, i%count) }
		}
	case collectives.OpScatter:
		if rank == root {
			in = vec(count * size)
		}
		out = vec(count)
		want = func(i int) uint64 { return word64(k, root, rank*count+i) }
	case collectives.OpAlltoall:
		in, out = vec(count*size), vec(count*size)
		want = func(i int) uint64 { return word64(k, i/count, rank*count+i%count) }
	case collectives.OpReduceScatter:
		counts, before := uneven(size, count), 0
		for _, n := range counts[:rank] {
			before += int(n)
		}
		in, out = vec(count*size), vec(int(counts[rank]))
		want = func(i int) uint64 { return fold(k, 0, size-1, before+i) }
	case collectives.OpReduceScatterBlock:
		in, out = vec(count*size), vec(count)
		want = func(i int) uint64 { return fold(k, 0, size-1, rank*count+i) }
	}
	switch {
	case op == collectives.OpBcast || len(in) == 0 || len(out) == 0 || !inPlace:
	case op == collectives.OpScatter:
		out = in[rank*count:][:count]
	case len(in) <= len(out):
		in = out[own:][:len(in)]
	}
	for i := range in {
		in[i] = word64(k, rank, i)
	}
	return in, out, want
}

// TestAreaOperations: every operation, every root, lengths up to the room and
// beyond, in place and not, in random order, with and without synchronisation.
func TestAreaOperations(t *testing.T) {
	for _, size := range []int{2, 3, 5, 8} {
		ns := areaJob(t, size, nil)
		rnd := rand.New(rand.NewPCG(uint64(size), 1))
		used := 0
		type call struct {
			op          collectives.Op
			count, root int
			inPlace     bool
		}
		calls := make([]call, 300)
		ops := []collectives.Op{collectives.OpBarrier, collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce, collectives.OpGather,
			collectives.OpScatter, collectives.OpAllgather, collectives.OpAlltoall, collectives.OpReduceScatterBlock, collectives.OpReduceScatter, collectives.OpScan, collectives.OpExscan}
		for k := range calls {
			c := call{op: ops[rnd.IntN(len(ops))], count: []int{0, 1, 2, 7, 8, 33, 200, 1024, 1025, 9000, 20_000}[rnd.IntN(11)], root: rnd.IntN(size), inPlace: rnd.IntN(2) == 0}
			calls[k] = c
		}
		soon(t, "program", func() error {
			var wg sync.WaitGroup
			for rank, n := range ns {
				wg.Go(func() {
					for k, c := range calls {
						in, out, want := areaCase(c.op, k, rank, size, c.count, c.root, c.inPlace)
						a := n.call64(c.op, in, out, c.count, c.root)
						if g, err := selection.ByName(c.op, "read"); err == nil && k%3 != 0 {
							a.Alg = g
						}
						a.Args.InPlace = a.In.Overlaps(a.Out)
						var wide []uint64
						if strided := (k + rank) % 4; strided != 0 && a.Alg.Shared && !a.Args.InPlace {
							if strided&1 != 0 {
								_, a.In = spread(t, in)
							}
							if strided&2 != 0 {
								wide, a.Out = spread(t, out)
							}
						}
						if rank == 0 && a.Alg.Shared {
							used++
						}
						if f := n.Collective(n.ctx, a); f != nil {
							t.Errorf("call %d, %+v, rank %d of %d: %+v", k, c, rank, size, f)
							return
						}
						for i := range wide {
							if i%2 == 0 {
								out[i/2] = wide[i]
							} else if wide[i] != gap64 {
								t.Errorf("call %d, %+v, rank %d of %d: gap %d is %x", k, c, rank, size, i/2, wide[i])
							}
						}
						for i, v := range out {
							if v != want(i) {
								t.Errorf("call %d, %+v, rank %d of %d: element %d is %x, want %x", k, c, rank, size, i, v, want(i))
								return
							}
						}
					}
				})
			}
			wg.Wait()
			return nil
		})
		if used < len(calls)/2 {
			t.Errorf("%d of %d calls used the area", used, len(calls))
		}
	}
}
