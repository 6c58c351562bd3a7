// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gompi/internal/buffer"
	"gompi/internal/calls"
	"gompi/internal/engine"
	"gompi/internal/fault"
	"gompi/internal/wire"
)

// Communicators made from a communicator. Rank 0 (of an intercommunicator:
// that of the low group) chooses the context id for all: groups that have no
// process in common share it.

const (
	opDup    calls.Name = "Dup"
	opIdup   calls.Name = "Idup"
	opSplit  calls.Name = "Split"
	opCreate calls.Name = "Create"
)

// shape is who belongs to a communicator to be made.
type shape struct {
	local  wire.Members
	remote wire.Members // empty in an intracommunicator
	low    bool         // local stands first where both groups stand together
}

func (c *Comm) shape() shape {
	s := shape{local: c.core.Ctx.Members, remote: c.core.Ctx.Remote}
	if b := c.core.bridge; b != nil {
		s.low = b.low
	}
	return s
}

// meeting is the communicator over which the ranks of c agree on another of
// its kind, and how many context ids that takes.
func (c *Comm) meeting() (*Comm, uint32) {
	if b := c.core.bridge; b != nil {
		return &Comm{core: b.both.core, user: c.user}, interSerials
	}
	return c, 1
}

// met is an error of that communicator as one of c.
func (c *Comm) met(err error) error {
	if err != nil && c.core.bridge != nil {
		c.core.ShareFate()
		c.CallErrorHandler(err)
	}
	return err
}

// birth is what the ranks of c agree on for a communicator to be made.
type birth struct {
	id wire.ContextID
	// block is the place in c's memory that giver, a rank of c, has offered for
	// its board, 0: none. own is what this rank has offered.
	block, own uint32
	giver      wire.ProcID
}

// offer is what this rank tells of n new contexts: rank 0 the first's serial. The
// call that tells it adds the place of a block, see offering.
func (c *Comm) offer(n uint32) uint64 {
	if c.core.Rank == 0 {
		return uint64(c.core.Proc.NewSerials(n))
	}
	return 0
}

// blockBits is where the place of a block stands in an offer, above the serial.
const blockBits = 32

func blockIn(offer uint64) uint32 { return uint32(offer >> blockBits) }

// offering makes the call tell of a block, too, in the first word of what this rank
// says.
func (a *call) offering(word *uint64) *call {
	a.Offer = word
	return a
}

// birthOf is what rank 0 has offered.
func (c *Comm) birthOf(op calls.Name, offer uint64) (birth, error) {
	b := birth{block: blockIn(offer), giver: c.core.Ctx.Members.At(0)}
	if c.core.Rank == 0 {
		b.own = b.block
	}
	var err error
	if b.id, err = contextFrom(b.giver, offer&(1<<blockBits-1)); err != nil {
		c.takeBack(&b)
		return b, c.argError(ErrComm, op, ProcNull, -1, -1, -1, "", err)
	}
	return b, nil
}

// takeBack takes back the block that this rank has offered, of which nobody makes
// use.
func (c *Comm) takeBack(b *birth) {
	if b.own != 0 {
		c.core.Engine.TakeBack(c.core.Ctx, b.own)
		b.own = 0
	}
}

// contextFrom is a context of which another process has told the serial. There
// is one after it.
func contextFrom(creator wire.ProcID, serial uint64) (wire.ContextID, error) {
	if serial == 0 || serial >= math.MaxUint32 {
		return wire.ContextID{}, fmt.Errorf("process %v has no context id left", creator)
	}
	return wire.ContextID{Creator: creator, Serial: uint32(serial)}, nil
}

// agree makes all ranks agree on a context id.
func (c *Comm) agree(op calls.Name) (birth, error) {
	u, n := c.meeting()
	word := []uint64{u.offer(n)}
	told := new(call).bcast(u, BufOf(word), 0).as(op)
	if c.core.bridge == nil && c.core.Rank == 0 {
		told.offering(&word[0])
	}
	if err := told.run(); err != nil {
		return birth{}, c.met(err)
	}
	b, err := u.birthOf(op, word[0])
	return b, c.met(err)
}

// child makes a communicator that c's ranks have agreed on: nil for a process
// that is not a member, and for one that would face an empty group.
func (c *Comm) child(b birth, s shape, name string) (*Comm, error) {
	p := c.core.proc
	if s.local.Index(p.core.Self) < 0 || c.core.bridge != nil && s.remote.Len() == 0 {
		c.decline(b)
		return nil, nil
	}
	d := p.blankComm(name)
	if err := c.bequeath(d, b, s); err != nil {
		return nil, err
	}
	return d, nil
}

// decline says that this process is not in what the ranks of c make.
func (c *Comm) decline(b birth) {
	c.takeBack(&b)
	c.core.Engine.SkipContext(b.id)
	if c.core.bridge != nil {
		c.core.Engine.SkipContext(b.id.Next())
	}
}

// bequeath makes a blank communicator one that was made from c.
func (c *Comm) bequeath(d *Comm, b birth, s shape) error {
	d.core.handler.Store(c.core.handler.Load())
	switch {
	case s.remote.Len() > 0:
		return d.registerInter(b.id, s)
	case c.core.bridge != nil: // what was merged is the program's new world
		return d.core.Register(b.id, s.local, d)
	}
	if s.local.Index(b.giver) < 0 || s.local.Len() == 1 {
		b.block = 0
	}
	if b.giver != c.core.proc.core.Self || b.block == 0 {
		c.takeBack(&b)
	}
	return d.core.RegisterIn(c.core.Ctx, b.block, b.id, s.local, d)
}

// Dup makes a communicator of the same ranks with a context of its own, the
// topology and the error handler of c, and the attributes that their keys'
// callbacks copy. The hints of c are not copied. If a callback fails, so does
// Dup on that process alone. Collective over c. MPI 4.1 section 7.4.2.
func (c *Comm) Dup() (*Comm, error) { return c.DupWithInfo(nil) }

// DupWithInfo is Dup that gives the new communicator a copy of info as its
// hints. Collective over c. MPI 4.1 section 7.4.2.
func (c *Comm) DupWithInfo(info *Info) (*Comm, error) {
	if err := c.exists(opDup); err != nil {
		return nil, err
	}
	attrs, failed := c.copyAttrs(opDup)
	b, err := c.agree(opDup)
	if err != nil {
		return nil, c.giveBack(attrs, err)
	}
	d, err := c.child(b, c.shape(), c.Name()+"+")
	if err != nil {
		return nil, c.giveBack(attrs, err)
	}
	return c.furnish(d, attrs, info, failed)
}

// furnish completes a duplicate of c, or gives it up.
func (c *Comm) furnish(d *Comm, attrs []attribute, info *Info, failed error) (*Comm, error) {
	if failed != nil {
		d.Free()
		return nil, failed
	}
	d.core.topo = c.core.topo
	d.core.attrs.list = attrs
	if info != nil {
		d.SetInfo(info)
	}
	return d, nil
}

// Idup starts a Dup. The communicator must not be used before the request is
// complete, nor at all if that gives an error. Collective over c.
// MPI 4.1 section 7.4.2.
func (c *Comm) Idup() (*Comm, Request) { return c.IdupWithInfo(nil) }

// IdupWithInfo starts a DupWithInfo, see Idup. MPI 4.1 section 7.4.2.
func (c *Comm) IdupWithInfo(info *Info) (*Comm, Request) {
	if err := c.exists(opIdup); err != nil {
		return nil, c.failedRequest(opIdup, err)
	}
	info = info.Dup()
	attrs, failed := c.copyAttrs(opIdup)
	u, n := c.meeting()
	word := []uint64{u.offer(n)}
	if c.core.bridge == nil && c.core.Rank == 0 {
		word[0] |= uint64(c.core.Engine.Offer(c.core.Ctx)) << blockBits
	}
	told := new(call).bcast(u, BufOf(word), 0).as(opIdup).start()
	d := c.core.proc.blankComm(c.Name() + "+")
	e := c.core.Engine
	h := e.NewOther(c.core.Ctx, opIdup, buffer.Buf{})
	go func() {
		_, err := told.Wait()
		var b birth
		if err == nil {
			b, err = u.birthOf(opIdup, word[0])
		}
		if err == nil {
			err = c.bequeath(d, b, c.shape())
		}
		if err == nil {
			_, err = c.furnish(d, attrs, info, failed)
		} else {
			err = c.giveBack(attrs, err)
		}
		st := engine.Status{Source: AnySource, Tag: AnyTag}
		if err != nil {
			st.Fault = &fault.Fault{Class: fault.Told, Peer: -1, Err: err}
		}
		e.Complete(h, st)
	}()
	return d, Request{h}
}

// Split makes a communicator for each color: of the ranks that give it, in the
// order of their keys, equal ones in the order of their ranks. color is not
// negative, or Undefined: then the result is nil. Another color of any rank is
// ErrArg on all. The groups of an intercommunicator are split alike; where one
// has no rank of a color, those of the other get nil. Collective over c.
// MPI 4.1 section 7.4.2.
func (c *Comm) Split(color, key int) (*Comm, error) {
	if err := c.exists(opSplit); err != nil {
		return nil, err
	}
	all, b, err := c.colors(opSplit, color, key, color != Undefined)
	if err != nil {
		return nil, err
	}
	for i, x := range all {
		if x.color < 0 && x.color != Undefined {
			c.takeBack(&b)
			return nil, c.argError(ErrArg, opSplit, ProcNull, -1, -1, -1, "", fmt.Errorf("%s gives color %d", c.core.Who(i), x.color))
		}
	}
	return c.childOf(b, all, color, fmt.Sprintf("%s/%d", c.Name(), color))
}

// childOf is child of the ranks of one color. The first of them gives the memory.
func (c *Comm) childOf(b birth, all []choice, color int, name string) (*Comm, error) {
	s := c.chosen(all, color)
	if c.core.bridge == nil && s.local.Len() > 0 {
		b.giver = s.local.At(0)
		b.block = blockIn(all[c.core.Ctx.Members.Index(b.giver)].offer)
	}
	return c.child(b, s, name)
}

// choice is what a rank says in a Split.
type choice struct {
	color, key int64
	offer      uint64
}

// colors exchanges the colors and keys of all ranks, with a context id, and the
// blocks of those that offer one. The low group of an intercommunicator comes
// first.
func (c *Comm) colors(op calls.Name, color, key int, offers bool) ([]choice, birth, error) {
	u, n := c.meeting()
	words := make([]uint64, 3*u.core.Size)
	mine := words[3*u.core.Rank:][:3]
	mine[0], mine[1], mine[2] = uint64(color), uint64(key), u.offer(n)
	told := new(call).allgather(u, BufOf(mine), BufOf(words)).as(op)
	if offers && c.core.bridge == nil {
		told.offering(&mine[2])
	}
	if err := told.run(); err != nil {
		return nil, birth{}, c.met(err)
	}
	all := make([]choice, u.core.Size)
	for i := range all {
		w := words[3*i:]
		all[i] = choice{int64(w[0]), int64(w[1]), w[2]}
	}
	b, err := u.birthOf(op, all[0].offer)
	b.own = blockIn(mine[2])
	if err != nil {
		u.takeBack(&b)
	}
	return all, b, c.met(err)
}

// chosen is the shape of the communicator of one color.
func (c *Comm) chosen(all []choice, color int) shape {
	m := c.core.Ctx.Members
	b := c.core.bridge
	if b == nil {
		return shape{local: pick(m, all, color)}
	}
	s := shape{low: b.low}
	if b.low {
		s.local, s.remote = pick(m, all[:c.core.Size], color), pick(c.core.Ctx.Remote, all[c.core.Size:], color)
	} else {
		s.local, s.remote = pick(m, all[c.core.Targets:], color), pick(c.core.Ctx.Remote, all[:c.core.Targets], color)
	}
	return s
}

// pick is the processes of one color in the order of their keys; nobody for
// Undefined.
func pick(m wire.Members, all []choice, color int) wire.Members {
	var ranks []int
	for r, x := range all {
		if color != Undefined && x.color == int64(color) {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[a].key, all[b].key) })
	var b wire.MembersBuilder
	for _, r := range ranks {
		b.Add(wire.Range{First: m.At(r), Count: 1})
	}
	return b.Members()
}

// Create makes a communicator of the ranks of g, a subgroup of c's group; the
// result is nil on ranks outside it. Ranks may give different groups if those
// have no process in common; GOMPI_CHECK=1 finds members that disagree
// (ErrMismatch). On an intercommunicator each side gives a
// subgroup of its local group; if one side's is empty, the result is nil. A
// process of g that is not in c is ErrRank on the caller. Collective over c;
// CreateGroup needs only the members. MPI 4.1 section 7.4.2.
func (c *Comm) Create(g Group) (*Comm, error) {
	if err := c.exists(opCreate); err != nil {
		return nil, err
	}
	wrong := c.subgroup(opCreate, g)
	if c.core.bridge != nil {
		color, rank := 0, g.rankOf(c.core.proc)
		if wrong != nil || rank == Undefined {
			color = Undefined
		}
		all, b, err := c.colors(opCreate, color, rank, false)
		switch {
		case err != nil:
			return nil, err
		case wrong != nil:
			c.decline(b)
			return nil, wrong
		}
		return c.childOf(b, all, color, c.Name()+"*")
	}
	b, err := c.agree(opCreate)
	if err != nil {
		return nil, err
	}
	if f := c.core.SameGroup(opCreate, c.user, g.members); f != nil && wrong == nil {
		wrong = c.errorOf(opCreate, ProcNull, -1, f)
	}
	if wrong != nil {
		c.decline(b)
		return nil, wrong
	}
	return c.child(b, shape{local: g.members}, c.Name()+"*")
}

// subgroup checks that all processes of g are in c.
func (c *Comm) subgroup(op calls.Name, g Group) error {
	if out := g.Difference(c.Group()); out.Size() > 0 {
		return c.argError(ErrRank, op, ProcNull, -1, -1, -1, "",
			fmt.Errorf("process %v of the group is not in the communicator", out.members.At(0)))
	}
	return nil
}
