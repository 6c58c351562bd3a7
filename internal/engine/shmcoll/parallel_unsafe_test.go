// SPDX-License-Identifier: Apache-2.0

package shmcoll

// unsafe: kernels work on addresses.

import (
	"testing"
	"unsafe"

	"gompi/collectives"
	"gompi/internal/control/collmem"
	"gompi/internal/data/buffer"
)

// crew are the areas of some ranks in one memory, which one goroutine steps.
type crew struct {
	areas []Area
	seq   uint32
	mark  byte // in the second byte of what each rank gives
}

func newCrew(size int) *crew {
	c := &crew{areas: make([]Area, size)}
	mem := make([]byte, collmem.Size(size)+linePair)
	mem = mem[-uintptr(address(mem))%linePair:][:collmem.Size(size)]
	for r := range c.areas {
		c.areas[r].Open(mem, r, size, nil)
	}
	return c
}

func add64(dst, a, b unsafe.Pointer, n int64) {
	for i := range uintptr(n) {
		*(*uint64)(unsafe.Add(dst, 8*i)) = *(*uint64)(unsafe.Add(a, 8*i)) + *(*uint64)(unsafe.Add(b, 8*i))
	}
}

// run makes an operation of one word a rank, 1 << rank, and checks the results of
// those that add.
func (c *crew) run(t *testing.T, op collectives.Op, root int) {
	t.Helper()
	c.seq++
	size := len(c.areas)
	outs := make([][]byte, size)
	left := 0
	for r := range c.areas {
		in := make([]byte, 8)
		in[0], in[1] = 1<<r, c.mark
		outs[r] = make([]byte, 8*size)
		n := 8
		if op == collectives.OpGather {
			n *= size
		}
		from, to := buffer.Of(in), buffer.Of(outs[r][:n])
		c.areas[r].Begin(&Call{Args: collectives.Args{Op: op, Rank: r, Size: size, Root: root, Count: 1}, In: from, Out: to, Unit: 8, Kernel: add64}, c.seq, false, false)
		left++
	}
	done := make([]bool, size)
	for turns := 0; left > 0; turns++ {
		if turns > 10*size {
			t.Fatalf("%v: %d of %d ranks go on for ever", op, left, size)
		}
		for r := range c.areas {
			b := &c.areas[r]
			if done[r] || !b.Step() {
				continue
			}
			if f := b.Fault(); f != nil {
				t.Fatalf("%v: rank %d: %+v", op, r, f)
			}
			done[r] = true
			b.Told()
			b.End(false)
			left--
		}
	}
	for r := range c.areas {
		want := 0
		switch op {
		case collectives.OpAllreduce:
			want = 1<<size - 1
		case collectives.OpScan:
			want = 2<<r - 1
		case collectives.OpExscan:
			want = 1<<r - 1
		default:
			continue
		}
		if outs[r][0] != byte(want) {
			t.Errorf("%v: rank %d has %d, want %d", op, r, outs[r][0], want)
		}
		if op == collectives.OpAllreduce && outs[r][1] != c.mark*byte(size) {
			t.Errorf("%v %#x: rank %d has mark %d, want %d", op, c.seq, r, outs[r][1], c.mark*byte(size))
		}
	}
}

func or64(dst, a, b unsafe.Pointer, n int64) {
	for i := range uintptr(n) {
		*(*uint64)(unsafe.Add(dst, 8*i)) = *(*uint64)(unsafe.Add(a, 8*i)) | *(*uint64)(unsafe.Add(b, 8*i))
	}
}
