// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"iter"

	"gompi/mpi"
	"gompi/rma"
)

// table is an open hash table of numbers above 0 and their counts. Each rank
// has as many places, a place two words: the number, 0 while it is free, and
// its count.
type table struct {
	c      *mpi.Comm
	win    *rma.Window
	ranks  int
	slots  int // of a rank
	one    []int64
	probes int64 // places that this rank has looked at
}

// newTable makes an empty table. It is collective.
func newTable(c *mpi.Comm, slots int) (*table, error) {
	win, err := rma.Allocate[int64](c, 2*slots)
	if err != nil {
		return nil, err
	}
	t := &table{c: c, win: win, ranks: c.Size(), slots: slots, one: []int64{1}}
	// A new window is zero, so the table is empty.
	return t, win.LockAll(0)
}

// add counts one more of key, which is above 0.
func (t *table) add(key int64) error {
	places := uint64(t.ranks) * uint64(t.slots)
	for at, looked := mix(uint64(key))%places, uint64(0); looked < places; at, looked = (at+1)%places, looked+1 {
		t.probes++
		rank, offset := int(at)/t.slots, 2*(int(at)%t.slots)
		was, err := rma.CompareAndSwap(t.win, 0, key, rank, offset)
		if err == nil {
			err = t.win.Flush(rank)
		}
		if err != nil {
			return err
		}
		if was == 0 || was == key {
			return rma.Accumulate(t.win, t.one, rank, offset+1, mpi.Sum)
		}
	}
	return fmt.Errorf("no place for %d: all %d are taken", key, places)
}

// settle ends all insertions: afterwards every rank may look at its own
// places. It is collective.
func (t *table) settle() error {
	if err := t.win.UnlockAll(); err != nil {
		return err
	}
	return t.c.Barrier()
}

// mine goes through the places of this rank.
func (t *table) mine() iter.Seq2[int64, int64] {
	words := rma.Memory[int64](t.win)
	return func(yield func(key, n int64) bool) {
		for i := 0; i < len(words); i += 2 {
			if words[i] != 0 && !yield(words[i], words[i+1]) {
				return
			}
		}
	}
}

func (t *table) free() error { return t.win.Free() }

// mix spreads neighbouring numbers (splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
