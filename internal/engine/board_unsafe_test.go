// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: kernels work on addresses.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"gompi/collectives"
	"gompi/internal/dtype"
	"gompi/internal/wait"
	"gompi/internal/wire"
	"gompi/transport/faulty"
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

func buf64(s []uint64) Buf { return NewBuf(unsafe.Pointer(unsafe.SliceData(s)), int64(len(s)), type64) }

// spread is s with a gap behind each element, and how to take it.
func spread(t testing.TB, s []uint64) (wide []uint64, b Buf) {
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
	return wide, NewBuf(unsafe.Pointer(unsafe.SliceData(wide)), int64(len(s)), every2nd)
}

const gap64 = 0x6761706761706761

// boardJob is a job whose communicator has its board.
func boardJob(t testing.TB, n int, change func(i int, c *Config)) []*node {
	t.Helper()
	ns, _ := testJobOf(t, n, nil, change)
	warmBoard(t, ns)
	return ns
}

func warmBoard(t testing.TB, ns []*node) {
	t.Helper()
	for range boardAfter + 2 {
		for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
			if f != nil {
				t.Fatalf("rank %d: %+v", r, f)
			}
		}
	}
	for i, n := range ns {
		if n.ctx.SharedRoom() != int64(min(boardRoom(len(ns)), sharedRoom)) {
			t.Fatalf("rank %d of %d has room %d", i, len(ns), n.ctx.SharedRoom())
		}
	}
}

// everywhere makes one blocking call on all ranks.
func everywhere(t testing.TB, ns []*node, call func(i int) *CollArgs) []*Fault {
	t.Helper()
	return soon(t, "collective", func() []*Fault {
		faults := make([]*Fault, len(ns))
		var wg sync.WaitGroup
		for i, n := range ns {
			wg.Go(func() { faults[i] = n.Collective(n.ctx, call(i)) })
		}
		wg.Wait()
		return faults
	})
}

// call64 are the arguments of a call on uint64; it goes over the board if it
// can.
func (n *node) call64(op collectives.Op, in, out []uint64, count, root int) *CollArgs {
	a := &CollArgs{Op: Op(op.String()), In: buf64(in), Out: buf64(out), Unit: 8, Kernel: join64,
		Args: collectives.Args{Op: op, Rank: n.ctx.Rank, Size: n.ctx.Members.Len(), Count: int64(count), Root: root}}
	if op == collectives.OpReduceScatter {
		a.Args.Counts = uneven(a.Args.Size, count)
	}
	a.Args.Shared, a.Args.Reads = n.ctx.SharedRoom()/8, n.ctx.Reads()
	a.Alg = collectives.DefaultTable().Select(&a.Args, 8, false)
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

// boardCase makes one rank's buffers of a call and says what must be in out.
func boardCase(op collectives.Op, k, rank, size, count, root int, inPlace bool) (in, out []uint64, want func(i int) uint64) {
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

// TestBoardOperations: every operation, every root, lengths up to the room and
// beyond, in place and not, in random order, with and without synchronisation.
func TestBoardOperations(t *testing.T) {
	for _, size := range []int{2, 3, 5, 8} {
		ns := boardJob(t, size, nil)
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
						in, out, want := boardCase(c.op, k, rank, size, c.count, c.root, c.inPlace)
						a := n.call64(c.op, in, out, c.count, c.root)
						if g, err := collectives.ByName(c.op, "read"); err == nil && k%3 != 0 {
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
			t.Errorf("%d of %d calls used the board", used, len(calls))
		}
	}
}

// TestBoardBlocks: operations whose blocks only some ranks know, small and
// large ones, with gaps, in place and not.
func TestBoardBlocks(t *testing.T) {
	const size = 4
	ns := boardJob(t, size, nil)
	scatterv, err := collectives.ByName(collectives.OpScatterv, "read")
	if err != nil {
		t.Fatal(err)
	}
	alltoallv, err := collectives.ByName(collectives.OpAlltoallv, "read")
	if err != nil {
		t.Fatal(err)
	}
	for k := range 80 {
		scale := []int{1, 20, 200, 5000, 40_000}[k%5]
		block := func(from, to int) int64 {
			rnd := rand.New(rand.NewPCG(uint64(k), uint64(from*size+to)))
			return int64(rnd.IntN(scale))
		}
		inPlace := k%4 == 3
		if inPlace { // the same blocks come and go
			old := block
			block = func(from, to int) int64 { return old(min(from, to), max(from, to)) }
		}
		displs := func(n func(q int) int64) (counts, displs []int64, end int64) {
			for q := range size {
				end += int64(q % 2) // a gap
				counts, displs = append(counts, n(q)), append(displs, end)
				end += n(q)
			}
			return counts, displs, end
		}
		outs, root := make([][]uint64, size), k%size
		faults := everywhere(t, ns, func(rank int) *CollArgs {
			a := ns[rank].call64(collectives.OpBarrier, nil, nil, 0, root)
			a.Args.InPlace = inPlace
			var in []uint64
			if k%2 == 0 {
				a.Alg, a.Args.Op = scatterv, collectives.OpScatterv
				a.Args.InPlace = false
				outs[rank] = make([]uint64, block(root, rank))
				if rank == root {
					counts, at, end := displs(func(q int) int64 { return block(root, q) })
					in = make([]uint64, end)
					a.Args.Counts, a.Args.Displs = counts, at
				}
				a.Args.Count = int64(len(outs[rank]))
			} else {
				a.Alg, a.Args.Op = alltoallv, collectives.OpAlltoallv
				counts, at, end := displs(func(q int) int64 { return block(rank, q) })
				in = make([]uint64, end)
				a.Args.InCounts, a.Args.InDispls = counts, at
				counts, at, end = displs(func(q int) int64 { return block(q, rank) })
				a.Args.OutCounts, a.Args.OutDispls = counts, at
				if outs[rank] = in; !inPlace {
					outs[rank] = make([]uint64, end)
				}
			}
			for i := range in {
				in[i] = word64(k, rank, i)
			}
			a.In, a.Out = buf64(in), buf64(outs[rank])
			return a
		})
		for rank, f := range faults {
			if f != nil {
				t.Fatalf("call %d, rank %d: %+v", k, rank, f)
			}
			check := func(from int, got []uint64) {
				_, at, _ := displs(func(q int) int64 { return block(from, q) })
				for i, v := range got {
					if want := word64(k, from, int(at[rank])+i); v != want {
						t.Fatalf("call %d, rank %d: element %d from rank %d is %x, want %x", k, rank, i, from, v, want)
					}
				}
			}
			if k%2 == 0 {
				check(root, outs[rank])
				continue
			}
			counts, at, _ := displs(func(q int) int64 { return block(q, rank) })
			for q := range size {
				check(q, outs[rank][at[q]:][:counts[q]])
			}
		}
	}
}

// Ranks that disagree about a block are told.
func TestBoardBlockMismatch(t *testing.T) {
	for _, n := range []int64{3, 100_000} {
		ns := boardJob(t, 2, nil)
		faults := everywhere(t, ns, func(rank int) *CollArgs {
			a := ns[rank].call64(collectives.OpBarrier, make([]uint64, 2*n), make([]uint64, 2*n), 0, 0)
			a.Alg, _ = collectives.ByName(collectives.OpAlltoallv, "read")
			a.Args.Op = collectives.OpAlltoallv
			a.Args.InCounts, a.Args.InDispls = []int64{n, n}, []int64{0, n}
			a.Args.OutCounts, a.Args.OutDispls = []int64{n, n - int64(rank)}, []int64{0, n}
			if rank == 1 {
				a.Args.OutCounts = []int64{n - 1, n}
			}
			return a
		})
		wantClass(t, "rank 1", faults[1], Mismatch)
		if c := faults[0].class(); c != Aborted && c != OK {
			t.Fatalf("rank 0: %+v", faults[0])
		}
	}
}

func TestBoardAllgatherv(t *testing.T) {
	ns := boardJob(t, 4, nil)
	counts, displs := []int64{3, 0, 40, 1}, []int64{50, 0, 5, 0}
	outs := make([][]uint64, len(ns))
	faults := everywhere(t, ns, func(i int) *CollArgs {
		in := make([]uint64, counts[i])
		for e := range in {
			in[e] = word64(1, i, e)
		}
		outs[i] = make([]uint64, 60)
		a := ns[i].call64(collectives.OpBarrier, in, outs[i], 0, 0)
		a.Args.Op, a.Args.Counts, a.Args.Displs = collectives.OpAllgatherv, counts, displs
		a.Alg, _ = collectives.ByName(collectives.OpAllgatherv, "shared")
		return a
	})
	for r, f := range faults {
		if f != nil {
			t.Fatalf("rank %d: %+v", r, f)
		}
		for q, n := range counts {
			for e := range n {
				if got := outs[r][displs[q]+e]; got != word64(1, q, int(e)) {
					t.Fatalf("rank %d: element %d of rank %d is %x", r, e, q, got)
				}
			}
		}
	}
}

// A rank that sleeps over a board is woken, and the numbers of sleepers end at
// none.
func TestBoardSleepers(t *testing.T) {
	ns := boardJob(t, 3, nil)
	for round := range 6 {
		late := round % 3
		done := make(chan *Fault, len(ns))
		call := func(i int) {
			done <- ns[i].Collective(ns[i].ctx, ns[i].call64(collectives.OpAllreduce, make([]uint64, 1), make([]uint64, 1), 1, 0))
		}
		for i := range ns {
			if i != late {
				go call(i)
			}
		}
		for i := range ns {
			if i != late {
				ns[i].asleep(t)
			}
		}
		go call(late)
		for range ns {
			if f := soon(t, "allreduce", func() *Fault { return <-done }); f != nil {
				t.Fatal(f)
			}
		}
		if n := ns[0].ctx.board.head.sleepers.Load(); n != 0 {
			t.Fatalf("%d sleepers are left", n)
		}
	}
}

// A root that runs ahead waits for the readers of its old publications, and
// sleeps until one of them is done.
func TestBoardRootAhead(t *testing.T) {
	ns := boardJob(t, 2, nil)
	const calls = 3 * boardSlots
	root := make(chan *Fault, calls)
	go func() {
		for k := range calls {
			root <- ns[0].Collective(ns[0].ctx, ns[0].call64(collectives.OpBcast, nil, []uint64{uint64(k)}, 1, 0))
		}
	}()
	const ahead = boardSlots - 1
	for range ahead {
		if f := soon(t, "bcast", func() *Fault { return <-root }); f != nil {
			t.Fatal(f)
		}
	}
	ns[0].asleep(t)
	for k := range calls {
		out := make([]uint64, 1)
		if f := ns[1].Collective(ns[1].ctx, ns[1].call64(collectives.OpBcast, nil, out, 1, 0)); f != nil || out[0] != uint64(k) {
			t.Fatalf("bcast %d gives %d, %+v", k, out[0], f)
		}
	}
	for range calls - ahead {
		if f := soon(t, "bcast", func() *Fault { return <-root }); f != nil {
			t.Fatal(f)
		}
	}
}

// What a rank has not told yet holds nobody up who is at the same call, also if
// no rank ever waits long enough to tell all.
func TestBoardUntold(t *testing.T) {
	const size = 2
	ns := boardJob(t, size, func(_ int, c *Config) { c.Policy = wait.Policy{Spin: 1 << 30} })
	direct, err := collectives.ByName(collectives.OpBarrier, "direct")
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	ops := []collectives.Op{collectives.OpBcast, collectives.OpScatter, collectives.OpScan, collectives.OpExscan,
		collectives.OpGather, collectives.OpReduce, collectives.OpAllreduce}
	for k := range 400 {
		for range rnd.IntN(3) { // numbers are used up
			everywhere(t, ns, func(i int) *CollArgs {
				a := ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0)
				a.Alg = direct
				return a
			})
		}
		op, root, count := ops[rnd.IntN(len(ops))], rnd.IntN(size), []int{1, 6, 7, 8, 100}[rnd.IntN(5)]
		outs := make([][]uint64, size)
		var want [size]func(i int) uint64
		faults := everywhere(t, ns, func(i int) *CollArgs {
			var in []uint64
			in, outs[i], want[i] = boardCase(op, k, i, size, count, root, false)
			return ns[i].call64(op, in, outs[i], count, root)
		})
		for rank, f := range faults {
			if f != nil {
				t.Fatalf("call %d, %v, rank %d: %+v", k, op, rank, f)
			}
			for i, v := range outs[rank] {
				if v != want[rank](i) {
					t.Fatalf("call %d, %v, rank %d: element %d is %x, want %x", k, op, rank, i, v, want[rank](i))
				}
			}
		}
	}
}

// A rank knows whom it waited for after an operation of all ranks, and gives way
// to them, but not for ever.
func TestBoardGivesWay(t *testing.T) {
	ns := boardJob(t, 3, func(_ int, c *Config) { c.Policy = wait.ForGoroutine() })
	run := func(op collectives.Op, root int) {
		t.Helper()
		for rank, f := range everywhere(t, ns, func(i int) *CollArgs {
			in, out, _ := boardCase(op, 1, i, len(ns), 1, root, false)
			return ns[i].call64(op, in, out, 1, root)
		}) {
			if f != nil {
				t.Fatalf("rank %d: %+v", rank, f)
			}
		}
	}
	for _, c := range []struct {
		op    collectives.Op
		root  int
		waits [3]string
	}{
		{collectives.OpBcast, 1, [3]string{"1..1", "", "1..1"}},
		{collectives.OpGather, 2, [3]string{"", "", "0..2"}},
		{collectives.OpScan, 0, [3]string{"", "0..1", "0..2"}},
		{collectives.OpExscan, 0, [3]string{"", "0..0", "0..1"}},
		{collectives.OpAllreduce, 0, [3]string{}},
	} {
		run(collectives.OpBarrier, 0)
		run(c.op, c.root)
		for rank, want := range c.waits {
			a, got := &ns[rank].ctx.board.after, ""
			if a.some {
				got = fmt.Sprintf("%d..%d", a.lo, a.hi)
			}
			if got != want {
				t.Errorf("%v: rank %d gives way to %q, want %q", c.op, rank, got, want)
			}
		}
	}
	run(collectives.OpBarrier, 0)
	run(collectives.OpBcast, 0)
	run(collectives.OpBarrier, 0) // returns before anybody comes to a bcast
}

// Ranks that make different calls are told, and the board serves the next one.
func TestBoardMismatch(t *testing.T) {
	ns := boardJob(t, 2, nil)
	for r, f := range everywhere(t, ns, func(i int) *CollArgs {
		return ns[i].call64(collectives.OpAllreduce, make([]uint64, 1+i), make([]uint64, 1+i), 1+i, 0)
	}) {
		if f.class() != Mismatch && f.class() != Aborted {
			t.Fatalf("rank %d: %+v", r, f)
		}
	}
	for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
		if f != nil {
			t.Fatalf("rank %d, afterwards: %+v", r, f)
		}
	}
}

// A rank that refuses a call, or hears of a failure before it starts one, goes
// on with the others at the next.
func TestBoardAfterRefusal(t *testing.T) {
	ns := boardJob(t, 3, nil)
	for k := range 3 * boardSlots {
		ns[2].Refuse(ns[2].ctx, ns[2].call64(collectives.OpBarrier, nil, nil, 0, 0))
		for i, n := range ns[:2] {
			wantClass(t, fmt.Sprint("rank ", i), soon(t, "barrier", func() *Fault {
				return n.Collective(n.ctx, n.call64(collectives.OpAllreduce, make([]uint64, 1), make([]uint64, 1), 1, 0))
			}), Aborted)
		}
		outs := make([][]uint64, len(ns))
		for r, f := range everywhere(t, ns, func(i int) *CollArgs {
			outs[i] = make([]uint64, 1)
			return ns[i].call64(collectives.OpAllreduce, []uint64{word64(k, i, 0)}, outs[i], 1, 0)
		}) {
			if f != nil || outs[r][0] != fold(k, 0, 2, 0) {
				t.Fatalf("rank %d, time %d: %x, %+v", r, k, outs[r][0], f)
			}
		}
	}
}

// Operations by messages between those on the board use numbers up: whoever
// waits for a slot must hear that the last operation in it has ended.
func TestBoardWithGaps(t *testing.T) {
	ns := boardJob(t, 3, nil)
	direct, err := collectives.ByName(collectives.OpBarrier, "direct")
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 5))
	for k := range 100 {
		for range rnd.IntN(2 * boardSlots) {
			everywhere(t, ns, func(i int) *CollArgs {
				a := ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0)
				a.Alg = direct
				return a
			})
		}
		op := []collectives.Op{collectives.OpBarrier, collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce}[rnd.IntN(4)]
		for r, f := range everywhere(t, ns, func(i int) *CollArgs {
			in, out, _ := boardCase(op, k, i, len(ns), 1, k%3, false)
			return ns[i].call64(op, in, out, 1, k%3)
		}) {
			if f != nil {
				t.Fatalf("call %d, %v, rank %d: %+v", k, op, r, f)
			}
		}
	}
}

// What ends a collective ends it on a board: a refusal, a death, a context, the
// end of the process.
func TestBoardEnds(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(ns []*node)
		want Class
	}{
		"refused":   {func(ns []*node) { ns[0].Refuse(ns[0].ctx, ns[0].call64(collectives.OpBarrier, nil, nil, 0, 0)) }, Aborted},
		"death":     {func(ns []*node) { ns[1].ProcFailed(proc(1), "was killed") }, ProcFailed},
		"revoked":   {func(ns []*node) { ns[0].Revoke(ns[0].ctx) }, Revoked},
		"finalized": {func(ns []*node) { ns[1].Close(ended()) }, Closed},
	} {
		t.Run(name, func(t *testing.T) {
			ns := boardJob(t, 2, nil)
			done := make(chan *Fault, 1)
			go func() { done <- ns[1].Collective(ns[1].ctx, ns[1].call64(collectives.OpBarrier, nil, nil, 0, 0)) }()
			ns[1].asleep(t)
			go end.do(ns)
			wantClass(t, name, soon(t, "barrier", func() *Fault { return <-done }), end.want)
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ns := boardJob(t, 2, nil)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan *Fault, 1)
		go func() {
			a := ns[1].call64(collectives.OpBarrier, nil, nil, 0, 0)
			a.User = ctx
			done <- ns[1].Collective(ns[1].ctx, a)
		}()
		ns[1].asleep(t)
		cancel()
		wantClass(t, "cancelled", soon(t, "barrier", func() *Fault { return <-done }), Cancelled)
		// The first may succeed: both ranks have come to it.
		wantClass(t, "afterwards", soon(t, "barrier", func() (f *Fault) {
			for range 2 {
				f = ns[0].Collective(ns[0].ctx, ns[0].call64(collectives.OpBarrier, nil, nil, 0, 0))
			}
			return f
		}), Revoked)
	})
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A rank whose call failed before there was a board decides against one, on
// all ranks, whatever comes first.
func TestNoBoardAfterFailure(t *testing.T) {
	ns, _ := testJobOf(t, 3, nil, nil)
	// As many calls as make a board come due, the last of which one refuses.
	for range boardAfter {
		everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) })
	}
	ns[2].Refuse(ns[2].ctx, ns[2].call64(collectives.OpBarrier, nil, nil, 0, 0))
	for i, n := range ns[:2] {
		wantClass(t, fmt.Sprint("rank ", i), soon(t, "barrier", func() *Fault {
			return n.Collective(n.ctx, n.call64(collectives.OpBarrier, nil, nil, 0, 0))
		}), Aborted)
	}
	for range 4 {
		for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
			if f != nil {
				t.Fatalf("rank %d: %+v", r, f)
			}
		}
	}
	for i, n := range ns {
		if n.ctx.SharedRoom() != 0 {
			t.Errorf("rank %d has a board", i)
		}
	}
}

// Where not everybody can share, nobody does.
func TestNoBoardWithoutSharer(t *testing.T) {
	ns, _ := testJobOf(t, 3, &faulty.Plan{}, nil)
	for range boardAfter + 4 {
		for r, f := range everywhere(t, ns, func(i int) *CollArgs { return ns[i].call64(collectives.OpBarrier, nil, nil, 0, 0) }) {
			if f != nil {
				t.Fatalf("rank %d: %+v", r, f)
			}
		}
	}
	for i, n := range ns {
		if n.ctx.SharedRoom() != 0 {
			t.Errorf("rank %d has a board", i)
		}
	}
}

// Boards of freed communicators are given back when all ranks have left.
func TestBoardsAreFreed(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	members := wire.NewMembers(wire.Range{First: proc(1), Count: 2})
	for k := range 20 {
		id := wire.ContextID{Creator: proc(1), Serial: uint32(k + 1)}
		for _, n := range ns {
			n.ctx = n.world(t, id, members)
		}
		warmBoard(t, ns)
		for i := range ns {
			n := ns[(i+k)%2]
			n.FreeContext(n.ctx)
		}
	}
	if n := len(ns[0].retired); n > 1 {
		t.Errorf("%d boards are kept", n)
	}
	if n := len(ns[0].watches) + len(ns[1].watches); n > 0 {
		t.Errorf("%d operations are kept", n)
	}
}

// A process that yields in a board's spin serves its other goroutines.
func TestBoardServesMessages(t *testing.T) {
	ns := boardJob(t, 2, func(_ int, c *Config) { c.Policy = wait.Policy{Spin: 1 << 30} })
	done := make(chan *Fault, 1)
	go func() { done <- ns[1].Collective(ns[1].ctx, ns[1].call64(collectives.OpBarrier, nil, nil, 0, 0)) }()
	b := make([]byte, 8)
	for k := range 100 {
		h := ns[1].irecv(0, k, b)
		if f := soon(t, "send", func() *Fault { return ns[0].send(1, k, binary.LittleEndian.AppendUint64(nil, uint64(k))) }); f != nil {
			t.Fatal(f)
		}
		if o := soon(t, "receive", func() Outcome { return ns[1].Wait(h) }); o.Status.Fault != nil || binary.LittleEndian.Uint64(b) != uint64(k) {
			t.Fatalf("message %d: %v, %+v", k, b, o)
		}
	}
	if f := ns[0].Collective(ns[0].ctx, ns[0].call64(collectives.OpBarrier, nil, nil, 0, 0)); f != nil {
		t.Fatal(f)
	}
	if f := soon(t, "barrier", func() *Fault { return <-done }); f != nil {
		t.Fatal(f)
	}
}
