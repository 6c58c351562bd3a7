// SPDX-License-Identifier: Apache-2.0

package core

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/base/group"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/data/kernel"
)

const opTest = "Test"

func contains(f *fault.Fault, text string) bool {
	return f != nil && f.Err != nil && strings.Contains(f.Err.Error(), text)
}

// All ways to agree give all ranks one id that nobody has had, and communicators
// that work.
func TestAgree(t *testing.T) {
	world := worldOf(t, 3)
	ids := make([][]wire.ContextID, len(world))
	each(world, func(c *Comm) {
		note := func(d *Comm) {
			if d != nil {
				ids[c.Rank] = append(ids[c.Rank], d.Ctx.ID)
			}
		}
		a, f := c.Agree(opTest, nil)
		note(made(t, c, a, c.Groups(), f))
		a, f = c.StartAgree(opTest, nil).Wait()
		note(made(t, c, a, c.Groups(), f))
		words := []uint64{0, 10 + uint64(c.Rank), 1}
		a, f = c.AgreeWith(opTest, nil, words, kernel.Max)
		note(made(t, c, a, c.Groups(), f))
		if words[1] != 12 || words[2] != 1 {
			t.Errorf("words are %v", words)
		}
		a, f = c.Meet(opTest, nil, c.Ctx.Members, 3)
		note(made(t, c, a, c.Groups(), f))
		a, f = c.Proc.Meet(opTest, nil, c.Groups(), "tag")
		note(made(t, c, a, c.Groups(), f))

		// Ranks 0 and 2 change places, rank 1 is not in it.
		color, key := 4, -c.Rank
		if c.Rank == 1 {
			color = -1
		}
		all, a, f := c.Choices(opTest, nil, color, key, color >= 0)
		if f != nil {
			t.Errorf("rank %d: %v", c.Rank, f)
			return
		}
		g := a.Chosen(all, color)
		if c.Rank == 1 {
			if g.Local.Len() != 0 {
				t.Errorf("the group of nobody is %v", g.Local)
			}
			a.Decline()
			return
		}
		if d := made(t, c, a, g, f); d != nil && (d.Size != 2 || d.Rank != 1-c.Rank/2) {
			t.Errorf("rank %d of %d", d.Rank, d.Size)
		}
	})
	for k, id := range ids[0] {
		for r := range world {
			if len(ids[r]) != 5 || ids[r][k] != id {
				t.Fatalf("the ids of rank %d are %v, of rank 0 %v", r, ids[r], ids[0])
			}
		}
		for _, other := range ids[0][:k] {
			if other == id {
				t.Errorf("id %v twice", id)
			}
		}
	}
}

// A serial that cannot be is an error, and what its teller has offered comes back.
func TestSerialOutOfRange(t *testing.T) {
	world := worldOf(t, 2)
	each(world, func(c *Comm) { barrier(c) })
	c := world[0]
	offer := c.Offer()
	if blockIn(offer) == 0 {
		t.Fatal("no memory")
	}
	for _, serial := range []uint64{0, math.MaxUint32} {
		a, f := c.AgreeOn(opTest, offer&^math.MaxUint32|serial)
		wants(t, f, fault.Comm, "no context id left")
		if a.own != 0 {
			t.Error("its block is not taken back")
		}
		if again := c.Offer(); blockIn(again) != blockIn(offer) {
			t.Errorf("block %d is offered after %d", blockIn(again), blockIn(offer))
		}
	}
	c.Proc.serial.Store(math.MaxUint32 - 1)
	_, f := c.AgreeOn(opTest, c.Offer())
	wants(t, f, fault.Comm, "no context id left")
}

// A block outside the memory that the ranks have in common does no harm but to the
// communicator for which it was told.
func TestBlockOutside(t *testing.T) {
	for _, block := range []uint64{math.MaxUint32, 1 << 20} {
		world := worldOf(t, 2)
		each(world, func(c *Comm) {
			barrier(c)
			a, f := c.AgreeOn(opTest, block<<blockBits|77)
			a.own = 0
			d := blank(c.Proc, "made")
			if f == nil {
				f = d.Register(&a, c.Groups(), nil)
			}
			if f == nil {
				f = barrier(d)
			}
			wants(t, f, fault.Revoked, "its place in the memory")
			if f := barrier(c); f != nil {
				t.Errorf("what it was made from: %v", f)
			}
		})
	}
}

// groupBody is what a leader tells of a group and its hosts.
func groupBody(m wire.Members, hosts wire.Hosts) []byte {
	return wire.AppendHosts(wire.AppendMembers(nil, m), hosts)
}

// What a leader tells its group is checked.
func TestHandshakeTold(t *testing.T) {
	other := wire.NewMembers(wire.Range{First: wire.ProcID{Job: 9, Serial: 1}, Count: 3})
	good := []uint64{0, 9, 1, 5, 1, 0}
	for _, x := range []struct {
		name  string
		head  []uint64
		body  []byte
		class fault.Class
		text  string
	}{
		{"a group", good, groupBody(other, nil), fault.OK, ""},
		{"a group on hosts", good, groupBody(other, wire.Hosts{{Host: 1, Count: 1}, {Host: 4, Count: 2}}), fault.OK, ""},
		{"a class that is none", []uint64{1 << 40, 0, 0, 0, 0, 0}, []byte("why"), fault.Arg, "the leader, rank 0: why"},
		{"a serial that is none", []uint64{0, 9, 1, 1 << 33, 1, 0}, groupBody(other, nil), fault.Comm, "no context id left"},
		{"no group", good, nil, fault.Arg, "remote group"},
		{"an empty group", good, groupBody(wire.Members{}, nil), fault.Arg, "it is empty"},
		{"more than a group", good, append(groupBody(other, nil), 1, 2), fault.Arg, "2 bytes too many"},
		{"hosts of others", good, groupBody(other, wire.Hosts{{Host: 1, Count: 4}}), fault.Arg, "run 0 of 4 members on host 1, 3 are left"},
		{"the same group", good, nil, fault.Arg, "in both groups"},
	} {
		t.Run(x.name, func(t *testing.T) {
			world := worldOf(t, 2)
			each(world, func(c *Comm) {
				if c.Rank == 1 {
					a, g, f := c.ShareHandshake(opTest, nil, 0, Agreed{}, Groups{}, nil)
					if x.class != fault.OK {
						wants(t, f, x.class, x.text)
					} else if f != nil || group.Compare(g.Remote, other) != group.Ident || !g.Low || a.ID.Serial != 5 {
						t.Errorf("told %v, %v, %v", a.ID, g, f)
					}
					return
				}
				body := x.body
				if x.text == "in both groups" {
					body = groupBody(c.Ctx.Members, nil)
				}
				head := append([]uint64(nil), x.head...)
				head[toldBytes] = uint64(len(body))
				for _, b := range []buffer.Buf{buffer.Words(head), buffer.Of(body)} {
					told := c.telling(opTest, nil, 0, b)
					if f := c.Run(&told); f != nil {
						t.Error(f)
					}
				}
			})
		})
	}
}

// All of a group learn that the change was rolled back whose sets their leader meets another
// in.
func TestHandshakeUndone(t *testing.T) {
	const op = 7
	each(worldOf(t, 2), func(c *Comm) {
		failed := &fault.Fault{Class: fault.Revoked, Peer: -1, Err: fmt.Errorf("at the leader: %w", fault.Rollback(op))}
		if c.Rank == 1 {
			failed = nil
		}
		_, _, f := c.ShareHandshake(opTest, nil, 0, Agreed{}, Groups{}, failed)
		wants(t, f, fault.Revoked, fault.Rollback(op).Error())
		if why := fault.Rollback(0); !errors.As(f.Err, &why) || why != op {
			t.Errorf("rank %d does not know the change: %v", c.Rank, f.Err)
		}
	})
}

// What a leader hears of the other is checked before memory is asked for.
func TestHandshakeHeard(t *testing.T) {
	world := worldOf(t, 2)
	each(world, func(c *Comm) {
		own := blank(c.Proc, "own")
		if f := own.Register(&Agreed{ID: wire.ContextID{Creator: c.Proc.Self}}, Groups{Local: wire.MembersOf(c.Proc.Self)}, nil); f != nil {
			t.Error(f)
			return
		}
		if c.Rank == 0 {
			_, _, f, _ := own.Handshake(opTest, nil, c, nil, 1, 0)
			wants(t, f, fault.Count, errGroupBytes.Error())
			a, g, f, _ := own.Handshake(opTest, nil, c, nil, 1, 1)
			if f == nil {
				a, g, f = own.ShareHandshake(opTest, nil, 0, a, g, nil)
			}
			made(t, own, a, g, f)
			return
		}
		head := make([]byte, 8*headWords)
		head[8*headBytes+7] = 1
		if f := c.swap(opTest, nil, head, make([]byte, len(head)), 0, 0); f != nil {
			t.Error(f)
		}
		a, g, f, _ := own.Handshake(opTest, nil, c, nil, 0, 1)
		made(t, own, a, g, f)
	})
}
