// SPDX-License-Identifier: Apache-2.0

package shmcoll

// unsafe: kernels work on addresses.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"gompi/collectives"
	"gompi/internal/data/buffer"
)

// duo are two ranks of an area that make the same calls, each as far as it comes.
type duo struct {
	*crew
	rnd   *rand.Rand
	calls []duoCall
	at    [2]int // the call in which a rank is
	in    [2]bool
	out   [2][]byte
}

type duoCall struct {
	op   collectives.Op
	n    int // bytes of a block
	root int
	data [2][]byte
}

var duoOps = []collectives.Op{collectives.OpBarrier, collectives.OpBarrier, collectives.OpAllreduce, collectives.OpBcast, collectives.OpReduce,
	collectives.OpAllgather, collectives.OpGather, collectives.OpScan, collectives.OpAlltoallv}

func newDuo(seed uint64, calls int) *duo {
	d := &duo{crew: newCrew(2), rnd: rand.New(rand.NewPCG(seed, 2))}
	for range calls {
		x := duoCall{op: duoOps[d.rnd.IntN(len(duoOps))], n: 8 << d.rnd.IntN(5), root: d.rnd.IntN(2)}
		if d.rnd.IntN(2) == 0 {
			x.n = 8
		}
		for r := range x.data {
			x.data[r] = make([]byte, 2*x.n)
			for i := range x.data[r] {
				x.data[r][i] = byte(d.rnd.Uint32())
			}
		}
		d.calls = append(d.calls, x)
	}
	return d
}

// begin lets a rank begin its next call, briefly or not.
func (d *duo) begin(rank int) {
	x, seq := &d.calls[d.at[rank]], uint32(d.at[rank]+1)
	in := x.data[rank][:x.n]
	out := make([]byte, x.n)
	switch x.op {
	case collectives.OpBarrier:
		in, out = nil, nil
	case collectives.OpAllgather, collectives.OpAlltoallv:
		out = make([]byte, 2*x.n)
	case collectives.OpGather:
		if out = nil; rank == x.root {
			out = make([]byte, 2*x.n)
		}
	case collectives.OpBcast:
		if rank == x.root {
			copy(out, in)
		}
		in = nil
	case collectives.OpReduce:
		if rank != x.root {
			out = nil
		}
	}
	d.in[rank], d.out[rank] = true, out
	b, brief := &d.areas[rank], d.rnd.IntN(2) == 0
	if x.op == collectives.OpAlltoallv {
		in, counts, displs := x.data[rank], []int64{int64(x.n), int64(x.n)}, []int64{0, int64(x.n)}
		if brief {
			mine, its := rank*x.n, (1-rank)*x.n
			b.BeginFast(&FastCall{Op: x.op, Unit: 1, In: in[its:][:x.n], Out: out[its:][:x.n], Kept: in[mine:][:x.n], KeepAt: out[mine:][:x.n]}, seq, false)
			return
		}
		b.Begin(&Call{Args: collectives.Args{Op: x.op, Rank: rank, Size: 2, InCounts: counts, InDispls: displs, OutCounts: counts, OutDispls: displs},
			In: buffer.Of(in), Out: buffer.Of(out), Unit: 1}, seq, true, false)
		return
	}
	k := FastCall{Op: x.op, Root: x.root, Count: int64(x.n / 8), Unit: 8, In: in, Out: out}
	if x.op == collectives.OpAllreduce || x.op == collectives.OpReduce || x.op == collectives.OpScan {
		k.Kernel = add64
	}
	if x.op == collectives.OpBarrier {
		k.Count = 0
	}
	if brief {
		b.BeginFast(&k, seq, false)
		return
	}
	b.Begin(&Call{Args: collectives.Args{Op: x.op, Rank: rank, Size: 2, Root: x.root, Count: k.Count}, In: buffer.Of(in), Out: buffer.Of(out), Unit: 8, Kernel: k.Kernel}, seq, false, false)
}

// step lets a rank go on, and checks what it has got when a call is over.
func (d *duo) step(rank int) error {
	if !d.in[rank] {
		if d.at[rank] == len(d.calls) {
			return nil
		}
		d.begin(rank)
	}
	b := &d.areas[rank]
	done := b.Step()
	if b.Fault() != nil {
		return fmt.Errorf("rank %d in call %d: %+v", rank, d.at[rank], b.Fault())
	}
	if !done {
		if d.rnd.IntN(3) == 0 {
			b.TellLate(true)
		}
		return nil
	}
	b.Told()
	b.End(false)
	x := &d.calls[d.at[rank]]
	if got, want := d.out[rank], x.want(rank); !bytes.Equal(got, want) {
		return fmt.Errorf("rank %d, call %d, %v of %d bytes: %x, want %x", rank, d.at[rank], x.op, x.n, got, want)
	}
	d.in[rank] = false
	d.at[rank]++
	return nil
}

func (x *duoCall) want(rank int) []byte {
	a, b := x.data[0], x.data[1]
	switch x.op {
	case collectives.OpBcast:
		return x.data[x.root][:x.n]
	case collectives.OpAllgather:
		return bytes.Join([][]byte{a[:x.n], b[:x.n]}, nil)
	case collectives.OpAlltoallv:
		return bytes.Join([][]byte{a[rank*x.n:][:x.n], b[rank*x.n:][:x.n]}, nil)
	case collectives.OpGather:
		if rank == x.root {
			return bytes.Join([][]byte{a[:x.n], b[:x.n]}, nil)
		}
		return nil
	case collectives.OpScan:
		if rank == 0 {
			return a[:x.n]
		}
	case collectives.OpReduce:
		if rank != x.root {
			return nil
		}
	case collectives.OpBarrier:
		return nil
	}
	sum := make([]byte, x.n)
	add64(address(sum), address(a), address(b), int64(x.n/8))
	return sum
}

// Calls of two ranks in any order, brief or not, each rank as far ahead of the other as
// it may be: what they get is right.
func TestTwoRanks(t *testing.T) {
	for seed := range uint64(200) {
		d := newDuo(seed, 100)
		for turns := 0; d.at != [2]int{len(d.calls), len(d.calls)}; turns++ {
			if turns > 1000*len(d.calls) {
				t.Fatalf("seed %d: ranks are in calls %v for ever", seed, d.at)
			}
			rank := d.rnd.IntN(2)
			for range d.rnd.IntN(8) {
				if err := d.step(rank); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		}
	}
}

// Where one rank does not know the call before as one in which all wait for all, as after
// a refused call, they find each other all the same.
func TestDuplexAside(t *testing.T) {
	for forgetful := range 2 {
		d := newDuo(7, 0)
		for range 20 {
			d.calls = append(d.calls, duoCall{op: collectives.OpBarrier}, duoCall{op: collectives.OpAllreduce, n: 8, data: [2][]byte{{1, 7: 1}, {2, 7: 2}}})
		}
		for turns := 0; d.at != [2]int{len(d.calls), len(d.calls)}; turns++ {
			if turns > 100*asideEvery*len(d.calls) {
				t.Fatalf("ranks are in calls %v for ever", d.at)
			}
			if !d.in[forgetful] && turns%3 == 0 {
				d.areas[forgetful].op.all = false
			}
			if err := d.step(turns % 2); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A rank that makes another call, whose words stand elsewhere, is found.
func TestDuplexMismatch(t *testing.T) {
	for _, brief := range []bool{true, false} {
		c := newCrew(2)
		for range 3 {
			c.run(t, collectives.OpBarrier, 0)
		}
		seq := c.seq + 1
		long := make([]byte, 64)
		c.areas[0].BeginFast(&FastCall{Op: collectives.OpBarrier, Unit: 1}, seq, false)
		if brief {
			c.areas[1].BeginFast(&FastCall{Op: collectives.OpAllreduce, Count: 8, Unit: 8, In: long, Out: make([]byte, 64), Kernel: add64}, seq, false)
		} else {
			c.areas[1].Begin(&Call{Args: collectives.Args{Op: collectives.OpAlltoallv, Rank: 1, Size: 2, InCounts: []int64{8, 8}, InDispls: []int64{0, 8}, OutCounts: []int64{8, 8}, OutDispls: []int64{0, 8}},
				In: buffer.Of(long[:16]), Out: buffer.Of(make([]byte, 16)), Unit: 1}, seq, true, false)
		}
		found := false
		for range 2 * asideEvery {
			for r := range c.areas {
				if b := &c.areas[r]; b.Fault() == nil && b.Step() {
					if found = b.Fault() != nil; !found {
						t.Fatalf("rank %d has ended well", r)
					}
				}
			}
		}
		if !found {
			t.Error("nobody has noticed")
		}
		b := &c.areas[0]
		b.BeginFast(&FastCall{Op: collectives.OpAlltoallv, Unit: 1, In: long[:8], Out: long[8:16]}, seq+1, false)
		c.areas[1].BeginFast(&FastCall{Op: collectives.OpAlltoallv, Unit: 1, In: long[16:32], Out: long[32:40]}, seq+1, false)
		c.areas[1].Step()
		if b.Step(); b.Fault() == nil || b.Fault().Got != 16 || b.Fault().Want != 8 {
			t.Errorf("a block of 16 bytes for 8: %+v", b.Fault())
		}
	}
}
