// SPDX-License-Identifier: Apache-2.0

package shmcoll

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"gompi/collectives"
	"gompi/internal/control/collmem"
)

// ringRank is one rank's part in a ring: the operations that it has begun and not
// ended, oldest first.
type ringRank struct {
	ring  Ring
	turns []*ringTurn
	begun int // of the operations
}

type ringTurn struct {
	Turn
	k   int
	in  []byte
	out []byte
}

func (r *ringRank) done(next uint64) uint64 {
	if len(r.turns) > 0 {
		next = r.turns[0].Number()
	}
	return next - 1
}

// Operations in a ring, some of which a rank does not make and the others give up
// then, at any time: all others end, with what each rank has published for them.
func TestRing(t *testing.T) {
	for _, size := range []int{1, 2, 3, 7} {
		for ring := range 2 {
			rnd := rand.New(rand.NewPCG(uint64(size), uint64(ring)))
			playRing(t, rnd, size, ring)
		}
	}
}

func playRing(t *testing.T, rnd *rand.Rand, size, ring int) {
	const operations = 300
	c := newCrew(size)
	ranks := make([]*ringRank, size)
	for r := range ranks {
		ranks[r] = &ringRank{}
		c.areas[r].OpenRing(&ranks[r].ring, ring)
	}
	numbers, refuses := make([]uint64, operations+1), make([]int, operations)
	number := uint64(rnd.IntN(1 << 40))
	for k := range numbers {
		if number++; ring == 0 {
			number += uint64(rnd.IntN(20) / 17 * rnd.IntN(30))
		}
		numbers[k] = number
	}
	for k := range refuses {
		if refuses[k] = -1; rnd.IntN(20) == 0 {
			refuses[k] = rnd.IntN(size)
		}
	}
	most := RingSlots + 4
	if ring > 0 {
		most = 1
	}
	begin := func(r int) {
		x := ranks[r]
		k := x.begun
		x.begun++
		if refuses[k] == r {
			return
		}
		q := &ringTurn{k: k, in: make([]byte, 8), out: make([]byte, 8)}
		binary.NativeEndian.PutUint64(q.in, uint64(k+1)<<8|1<<r)
		q.Begin(&x.ring, numbers[k], collectives.OpAllreduce, q.out, 8, or64)
		x.turns = append(x.turns, q)
		x.ring.Tell(x.done(numbers[k]))
	}
	end := func(r, i int) {
		x := ranks[r]
		x.turns = append(x.turns[:i], x.turns[i+1:]...)
		x.ring.Tell(x.done(numbers[x.begun]))
	}
	for turns := 0; ; turns++ {
		left := 0
		for _, x := range ranks {
			left += operations - x.begun + len(x.turns)
		}
		if left == 0 {
			return
		}
		if turns > 1000*operations*size {
			t.Fatalf("%d ranks, ring %d: %d operations go on for ever", size, ring, left)
		}
		r := rnd.IntN(size)
		x := ranks[r]
		if x.begun < operations && len(x.turns) < most && rnd.IntN(3) == 0 {
			begin(r)
		}
		if len(x.turns) == 0 {
			continue
		}
		i := rnd.IntN(len(x.turns))
		q := x.turns[i]
		if by := refuses[q.k]; by >= 0 && ranks[by].begun > q.k {
			end(r, i)
			continue
		}
		if !q.Offered() && !q.Offer(q.in, x.done(q.Number())) {
			continue
		}
		done, f := q.Take()
		if f != nil {
			t.Fatalf("operation %d: %+v", q.k, f)
		}
		if done {
			if got, want := binary.NativeEndian.Uint64(q.out), uint64(q.k+1)<<8|(1<<size-1); got != want {
				for r, x := range ranks {
					t.Logf("rank %d begun %d told %d seen %d last %d", r, x.begun, x.ring.told, x.ring.seen, x.ring.last)
					for _, q := range x.turns {
						t.Logf("  k %d number %d slot %d offered %v next %d refused %d", q.k, q.Number(), q.Number()%8, q.Offered(), q.next, refuses[q.k])
					}
				}
				t.Fatalf("%d ranks, ring %d, operation %d: rank %d has %#x, want %#x", size, ring, q.k, r, got, want)
			}
			end(r, i)
		}
	}
}

// Slots and words stand where nothing else does, and those of a block are cleared.
func TestRingLayout(t *testing.T) {
	for _, size := range []int{1, 2, collmem.FewRanks, collmem.FewRanks + 1, TreeRanks, TreeRanks + 1} {
		if n := collmem.Size(size); n%lineBytes != 0 || collmem.RingsAt(size)%lineBytes != 0 || collmem.RingOwner(size)%lineBytes != 0 {
			t.Errorf("%d ranks: %d bytes, rings at %d, of %d", size, n, collmem.RingsAt(size), collmem.RingOwner(size))
		}
		if (RingRoom(size) == 0) != (size > TreeRanks) {
			t.Errorf("%d ranks: room %d", size, RingRoom(size))
		}
	}
	const size = 3
	c := newCrew(size)
	mem := c.areas[0].rings
	for i := range mem {
		mem[i] = 0xff
	}
	clearRings(mem, size)
	for q := range size {
		for ring := range 1 + PersistentRings {
			var r Ring
			c.areas[q].OpenRing(&r, ring)
			if w := viewWord(r.owned(q)).Load(); w != 0 {
				t.Errorf("rank %d, ring %d: done with %#x", q, ring, w)
			}
			for n := range r.slots {
				if s := r.slot(q, n); s.number.Load() != 0 || s.call != 0 {
					t.Errorf("rank %d, ring %d, slot %d is not clear", q, ring, n)
				}
			}
		}
	}
}
