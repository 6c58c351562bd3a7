// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"slices"

	"gompi/internal/test/testlab"
	"gompi/mpi"
)

// make makes a communicator, and checks that it is the one that the program
// says.
func (pl *player) make(c *mpi.Comm, e *testlab.Event) error {
	d, err := pl.made(c, e)
	if err != nil {
		return err
	}
	at, member := pl.p.Layout(e.ID).Place(pl.rank)
	if !member || d == nil {
		if member != (d != nil) {
			return fmt.Errorf("member %v, but the communicator is %v", member, d)
		}
		return nil
	}
	if d.Rank() != at.Rank || d.Size() != len(at.Local) || d.RemoteSize() != len(at.Remote) || d.IsInter() != (at.Remote != nil) {
		return fmt.Errorf("rank %d of %d facing %d, want %+v", d.Rank(), d.Size(), d.RemoteSize(), at)
	}
	pl.comms[e.ID] = d
	return nil
}

func (pl *player) made(c *mpi.Comm, e *testlab.Event) (*mpi.Comm, error) {
	at, member := pl.p.Layout(e.ID).Place(pl.rank)
	tag := fmt.Sprint(e.ID)
	switch e.How {
	case testlab.Dup:
		return c.Dup()
	case testlab.Idup:
		d, r := c.Idup()
		_, err := r.Wait()
		return d, err
	case testlab.Split:
		color := mpi.Undefined
		if member {
			color = slices.IndexFunc(e.Groups, func(g []int) bool { return slices.Contains(g, pl.rank) })
		}
		return c.Split(color, 2*at.Rank-1)
	case testlab.Grid:
		return c.CartCreate(e.Dims, e.Periods, false)
	case testlab.Graph:
		near := pl.p.Near(e.ID, at)
		return c.DistGraphCreateAdjacent(pl.ranks(at, near.Sources), nil, pl.ranks(at, near.Dests), nil, nil, false)
	case testlab.IntercommMerge:
		own, _ := pl.p.Layout(e.Comm).Place(pl.rank)
		return c.IntercommMerge(at.Local[0] != own.Local[0])
	}
	g, err := pl.members(at.Local)
	if err != nil {
		return nil, err
	}
	switch e.How {
	case testlab.Create:
		return c.Create(g)
	case testlab.CreateGroup:
		return c.CreateGroup(g, e.ID)
	case testlab.CommFromGroup:
		return mpi.CommFromGroup(g, tag)
	case testlab.IntercommCreate:
		lead := e.ID % len(at.Local)
		return c.IntercommCreate(lead, pl.comms[testlab.World], at.Remote[e.ID%len(at.Remote)], e.ID)
	case testlab.IntercommFromGroups:
		remote, err := pl.members(at.Remote)
		if err != nil {
			return nil, err
		}
		return mpi.IntercommCreateFromGroups(g, remote, tag)
	}
	return nil, fmt.Errorf("unknown way to make a communicator")
}

// ranks is where ranks of World stand in a place's group.
func (pl *player) ranks(at testlab.Place, world []int) (in []int) {
	for _, r := range world {
		in = append(in, slices.Index(at.Local, r))
	}
	return in
}

// members is a group by ranks of World.
func (pl *player) members(ranks []int) (mpi.Group, error) {
	return pl.comms[testlab.World].Group().Incl(ranks)
}

// free frees a communicator and what was prepared on it. Other operations on it
// may be under way.
func (pl *player) free(comm int) error {
	for id, r := range pl.prepared {
		if r.comm == comm {
			if err := r.Free(); err != nil {
				return err
			}
			delete(pl.prepared, id)
		}
	}
	c := pl.comms[comm]
	pl.comms[comm] = nil
	return c.Free()
}
