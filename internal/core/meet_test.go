// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
)

// lendingWorld is worldOf with a memory that all have, of which a rank may lend.
func lendingWorld(t *testing.T, n int) []*Comm {
	t.Helper()
	world := worldOf(t, n)
	for _, c := range world {
		c.Proc.Lend(c)
	}
	each(world, func(c *Comm) {
		if f := barrier(c); f != nil {
			t.Error(f)
		}
	})
	return world
}

func groupOf(world []*Comm, ranks ...int) Groups {
	var b wire.MembersBuilder
	for _, r := range ranks {
		b.Add(wire.Range{First: world[r].Proc.Self, Count: 1})
	}
	return Groups{Local: b.Members()}
}

// What the first of the world makes with others has its memory in the world's; what
// another makes has not.
func TestGroupInLentMemory(t *testing.T) {
	world := lendingWorld(t, 3)
	for _, ranks := range [][]int{{0, 2}, {0, 2, 1}, {0, 1}, {1, 2}, {2, 0}, {0}} {
		each(world, func(c *Comm) {
			g := groupOf(world, ranks...)
			if g.Local.Index(c.Proc.Self) < 0 {
				return
			}
			a, f := c.Proc.Meet(opTest, nil, g, "lent")
			if lent := ranks[0] == 0 && len(ranks) > 1; (a.block != 0) != lent {
				t.Errorf("rank %d of %v: block %d", c.Rank, ranks, a.block)
			}
			if d := made(t, c, a, g, f); d != nil {
				d.Free()
			}
		})
	}
}

// The memory is there when the world has been freed by some of its ranks, and comes
// back when nobody uses it: more are made than it has room for.
func TestLentWhenFreed(t *testing.T) {
	world := lendingWorld(t, 3)
	world[2].Free()
	for round := range 5 {
		if round == 3 {
			world[1].Free()
		}
		each(world, func(c *Comm) {
			a, f := c.Proc.Meet(opTest, nil, c.Groups(), "freed")
			if a.block == 0 {
				t.Errorf("round %d, rank %d: no block", round, c.Rank)
			}
			if d := made(t, c, a, c.Groups(), f); d != nil {
				d.Free()
			}
		})
	}
}

// A block for a process that has no such memory makes it no member: what is told is
// not taken for a place elsewhere.
func TestLentToOthers(t *testing.T) {
	world := lendingWorld(t, 2)
	own := blank(world[1].Proc, "own")
	if f := own.Register(&Agreed{ID: wire.ContextID{Creator: world[1].Proc.Self}}, Groups{Local: wire.MembersOf(world[1].Proc.Self)}, nil); f != nil {
		t.Fatal(f)
	}
	world[1].Proc.lender.Store(own)
	each(world, func(c *Comm) {
		a, f := c.Proc.Meet(opTest, nil, c.Groups(), "others")
		if c.Rank == 1 {
			wants(t, f, fault.Comm, "memory is to be that of others")
		} else if f != nil || a.block == 0 {
			t.Errorf("block %d, %v", a.block, f)
		}
	})
}

// A first that gives up takes back what it has offered.
func TestLentInVain(t *testing.T) {
	world := lendingWorld(t, 2)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for range 5 {
		each(world, func(c *Comm) {
			user := gone
			if c.Rank == 1 {
				user = context.Background()
			}
			if _, f := c.Proc.Meet(opTest, user, c.Groups(), "given up"); f == nil {
				t.Errorf("rank %d has met", c.Rank)
			}
		})
	}
	if a, f := world[0].Proc.Meet(opTest, nil, world[0].Groups(), "again"); f != nil || a.block == 0 {
		t.Errorf("block %d, %v", a.block, f)
	}
}

// The first process may hear before the others that the change of their sets was rolled back:
// they learn of it from its message.
func TestMeetUndone(t *testing.T) {
	const op = 7
	world := worldOf(t, 3)
	gone, cancel := context.WithCancelCause(context.Background())
	cancel(fault.Rollback(op))
	each(world, func(c *Comm) {
		user := gone
		if c.Rank > 0 {
			user = nil
		}
		_, f := c.Proc.Meet(opTest, user, c.Groups(), "undone")
		if c.Rank > 0 {
			wants(t, f, fault.RolledBack, fault.Rollback(op).Error())
		} else if f == nil || f.Err != error(fault.Rollback(op)) {
			t.Errorf("the first has met: %v", f)
		}
	})
}

// What is merged lies in the memory of both groups, if the first of that is the first
// of it; else nothing of that memory is lost.
func TestMergedInMemoryOfBoth(t *testing.T) {
	world := worldOf(t, 4)
	each(world, func(c *Comm) {
		g := groupOf(world, 0, 1)
		g.Remote, g.Low = groupOf(world, 2, 3).Local, c.Rank < 2
		if !g.Low {
			g.Local, g.Remote = g.Remote, g.Local
		}
		a, f := c.Proc.Meet(opTest, nil, g, "both")
		both := made(t, c, a, g, f)
		if both == nil {
			return
		}
		for round := range 8 {
			_, a, f := both.Choices(opTest, nil, 0, 0, both.Both.Rank == 0)
			if a.block == 0 {
				t.Errorf("round %d, rank %d: no block", round, c.Rank)
			}
			lowLast := round%2 == 1
			d := made(t, c, a, both.Groups().Merged(lowLast), f)
			if d == nil {
				return
			}
			if first := d.Rank == 0; first != (c.Rank == 0 && !lowLast || c.Rank == 2 && lowLast) {
				t.Errorf("round %d: rank %d is %d", round, c.Rank, d.Rank)
			}
			d.Free()
			if f := barrier(both); f != nil { // all have left it
				t.Errorf("round %d, rank %d: %v", round, c.Rank, f)
			}
		}
		both.Free()
	})
}
