// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gompi/internal/engine"
	"gompi/internal/wire"
)

// Communicators made from a communicator. Its rank 0 chooses the context id
// for all: groups that have no process in common share it.

const (
	opDup    engine.Op = "Dup"
	opSplit  engine.Op = "Split"
	opCreate engine.Op = "Create"
)

// newSerials reserves n consecutive serials of contexts that this process
// creates. 0: there are no more.
func (p *Process) newSerials(n uint32) uint32 {
	for {
		last := p.serial.Load()
		if last > math.MaxUint32-n {
			return 0
		}
		if p.serial.CompareAndSwap(last, last+n) {
			return last + 1
		}
	}
}

// offer is what this rank tells of a new context: rank 0 its serial.
func (c *Comm) offer() uint64 {
	if c.core.rank == 0 {
		return uint64(c.core.proc.newSerials(1))
	}
	return 0
}

// contextOf is the id with the serial that rank 0 has told.
func (c *Comm) contextOf(op engine.Op, serial uint64) (wire.ContextID, error) {
	creator := c.core.ctx.Members.At(0)
	if serial == 0 {
		return wire.ContextID{}, c.argError(ErrComm, op, ProcNull, -1, -1, -1, "", fmt.Errorf("process %v has no context id left", creator))
	}
	return wire.ContextID{Creator: creator, Serial: uint32(serial)}, nil
}

// agree makes all ranks agree on a context id.
func (c *Comm) agree(op engine.Op) (wire.ContextID, error) {
	serial, err := BcastOne(c, c.offer(), 0)
	if err != nil {
		return wire.ContextID{}, err
	}
	return c.contextOf(op, serial)
}

// Dup makes a communicator of the same ranks with a context of its own.
// Collective over c. MPI 4.1 section 7.4.2.
func (c *Comm) Dup() (*Comm, error) {
	id, err := c.agree(opDup)
	if err != nil {
		return nil, err
	}
	return c.child(id, c.core.ctx.Members, c.Name()+"+")
}

// child makes a communicator that c's ranks have agreed on: nil for a process
// that is not a member.
func (c *Comm) child(id wire.ContextID, members wire.Members, name string) (*Comm, error) {
	p := c.core.proc
	if members.Index(p.self) < 0 {
		p.e.SkipContext(id)
		return nil, nil
	}
	return p.newComm(id, members, name)
}

// Split makes a communicator for each color: of the ranks that give it, in the
// order of their keys, equal ones in the order of their ranks. color is not
// negative, or Undefined: then the result is nil. Another color of any rank is
// ErrArg on all. Collective over c. MPI 4.1 section 7.4.2.
func (c *Comm) Split(color, key int) (*Comm, error) {
	all, id, err := c.colors(opSplit, color, key)
	if err != nil {
		return nil, err
	}
	for r, x := range all {
		if x.color < 0 && x.color != Undefined {
			return nil, c.argError(ErrArg, opSplit, ProcNull, -1, -1, -1, "", fmt.Errorf("rank %d gives color %d", r, x.color))
		}
	}
	if color == Undefined {
		c.core.proc.e.SkipContext(id)
		return nil, nil
	}
	return c.child(id, c.chosen(all, int64(color)), fmt.Sprintf("%s/%d", c.Name(), color))
}

// choice is what a rank says in a Split.
type choice struct {
	color, key int64
	serial     uint64 // of rank 0
}

// colors exchanges the colors and keys of all ranks, with a context id.
func (c *Comm) colors(op engine.Op, color, key int) ([]choice, wire.ContextID, error) {
	words := make([]int64, 3*c.core.size)
	mine := words[3*c.core.rank:][:3]
	mine[0], mine[1], mine[2] = int64(color), int64(key), int64(c.offer())
	if err := Allgather(c, mine, words); err != nil {
		return nil, wire.ContextID{}, err
	}
	all := make([]choice, c.core.size)
	for i := range all {
		w := words[3*i:]
		all[i] = choice{w[0], w[1], uint64(w[2])}
	}
	id, err := c.contextOf(op, all[0].serial)
	return all, id, err
}

// chosen is the processes of one color in the order of their keys.
func (c *Comm) chosen(all []choice, color int64) wire.Members {
	var ranks []int
	for r, x := range all {
		if x.color == color {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[a].key, all[b].key) })
	var m wire.MembersBuilder
	for _, r := range ranks {
		m.Add(wire.Range{First: c.core.ctx.Members.At(r), Count: 1})
	}
	return m.Members()
}

// Create makes a communicator of the ranks of g, a subgroup of c's group; the
// result is nil on ranks outside it. Ranks may give different groups if those
// have no process in common. A process of g that is not in c is ErrRank on the
// caller. Collective over c; CreateGroup needs only the members.
// MPI 4.1 section 7.4.2.
func (c *Comm) Create(g Group) (*Comm, error) {
	wrong := c.subgroup(opCreate, g)
	id, err := c.agree(opCreate)
	if wrong != nil || err != nil {
		return nil, cmp.Or(wrong, err)
	}
	return c.child(id, g.members, c.Name()+"*")
}

// subgroup checks that all processes of g are in c.
func (c *Comm) subgroup(op engine.Op, g Group) error {
	if out := g.Difference(c.Group()); out.Size() > 0 {
		return c.argError(ErrRank, op, ProcNull, -1, -1, -1, "",
			fmt.Errorf("process %v of the group is not in the communicator", out.members.At(0)))
	}
	return nil
}
