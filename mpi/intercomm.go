// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"cmp"
	"fmt"

	"gompi/internal/calls"
	"gompi/internal/group"
	"gompi/internal/wire"
)

// Intercommunicators. One of the two groups is the low one, on both sides the
// same; both groups together, that one first, have a hidden communicator, over
// which calls that make other communicators agree.

const (
	opInterCreate calls.Name = "IntercommCreate"
	opInterMerge  calls.Name = "IntercommMerge"
	opInterGroups calls.Name = "IntercommCreateFromGroups"
)

// interSerials is how many context ids an intercommunicator takes: its own,
// and the next for both groups together.
const interSerials = 2

// bridge is what an intercommunicator has besides its context.
type bridge struct {
	both *Comm // both groups, the low one first
	low  bool  // the local group is the low one
}

// registerInter gives a blank communicator its context between two groups.
func (c *Comm) registerInter(id wire.ContextID, s shape) error {
	first, second := s.local, s.remote
	if !s.low {
		first, second = second, first
	}
	both, err := c.core.proc.newComm(id.Next(), group.Union(first, second), c.Name()+" (both groups)")
	if err != nil {
		return err
	}
	if err := c.core.RegisterInter(id, s.local, s.remote, &both.core.Comm, s.low, c); err != nil {
		both.Free()
		return err
	}
	c.core.bridge = &bridge{both, s.low}
	return nil
}

// of is c's core for a call that can return no error.
func (c *Comm) of(op calls.Name) *commCore {
	if c == nil {
		panicNoComm(op)
	}
	return c.core
}

func panicNoComm(op calls.Name) {
	var none *Comm
	panic(none.newError(ErrComm, op, ProcNull, -1, -1, -1, "", errNoComm).Error())
}

// exists refuses a call on no communicator.
func (c *Comm) exists(op calls.Name) error {
	if c == nil {
		return c.argError(ErrComm, op, ProcNull, -1, -1, -1, "", errNoComm)
	}
	return nil
}

// intra refuses a call that intercommunicators do not have.
func (c *Comm) intra(op calls.Name) error {
	if err := c.exists(op); err != nil {
		return err
	}
	if c.core.bridge != nil {
		return c.argError(ErrComm, op, ProcNull, -1, -1, -1, "", fmt.Errorf("it is an intercommunicator"))
	}
	return nil
}

// IsInter reports whether c is an intercommunicator: its messages go to the
// ranks of another, remote group. Local. MPI 4.1 section 7.6.1.
func (c *Comm) IsInter() bool { return c.of("IsInter").bridge != nil }

// RemoteSize is the number of ranks of the remote group, 0 in an
// intracommunicator. Local. MPI 4.1 section 7.6.1.
func (c *Comm) RemoteSize() int { return c.of("RemoteSize").Ctx.Remote.Len() }

// RemoteGroup is the remote group, empty in an intracommunicator. Local.
// MPI 4.1 section 7.6.1.
func (c *Comm) RemoteGroup() Group { return c.of("RemoteGroup").proc.groupOf(c.core.Ctx.Remote) }

// IntercommCreate makes an intercommunicator between the group of c and
// another one, which calls it, too. The leaders, rank localLeader of c in each
// group, meet over peer, in which remoteLeader is the other leader's
// rank; peer, remoteLeader and tag matter only to them. The tag tells several
// calls between the same leaders apart and interferes with no message. A group
// whose leader fails or finds an error gets that error on all ranks. The
// groups must have no process in common. Collective over both groups.
// MPI 4.1 section 7.6.2.
func (c *Comm) IntercommCreate(localLeader int, peer *Comm, remoteLeader, tag int) (*Comm, error) {
	if err := c.intra(opInterCreate); err != nil {
		return nil, err
	}
	if localLeader < 0 || localLeader >= c.core.Size {
		return nil, c.rankError(opInterCreate, localLeader, -1)
	}
	var t treaty
	var failed error
	if c.core.Rank == localLeader {
		t, failed = c.negotiate(peer, remoteLeader, tag)
	}
	remote, err := c.proclaim(&t, localLeader, failed)
	if err != nil {
		return nil, err
	}
	d := c.core.proc.blankComm(c.Name() + "|")
	if err := c.bequeath(d, birth{id: t.id}, shape{c.core.Ctx.Members, remote, t.low}); err != nil {
		return nil, err
	}
	return d, nil
}

// IntercommMerge makes an intracommunicator of both groups of an
// intercommunicator. high is the same on all ranks of a group, else ErrArg on
// all; the group with high comes after the other. If both give the same, all
// ranks find the same order. Collective over both groups.
// MPI 4.1 section 7.6.2.
func (c *Comm) IntercommMerge(high bool) (*Comm, error) {
	if err := c.exists(opInterMerge); err != nil {
		return nil, err
	}
	b := c.core.bridge
	if b == nil {
		return nil, c.argError(ErrComm, opInterMerge, ProcNull, -1, -1, -1, "", fmt.Errorf("it is not an intercommunicator"))
	}
	flag := 0
	if high {
		flag = 1
	}
	u := &Comm{core: b.both.core, user: c.user}
	all, born, err := u.colors(opInterMerge, flag, 0, false)
	if err != nil {
		return nil, c.met(err)
	}
	n, s := c.core.Size, c.shape()
	first, second := s.local, s.remote
	if !s.low {
		n, first, second = c.core.Targets, second, first
	}
	for i, x := range all {
		first := 0
		if i >= n {
			first = n
		}
		if x.color != all[first].color {
			return nil, c.argError(ErrArg, opInterMerge, ProcNull, -1, -1, -1, "", fmt.Errorf("the ranks of a group give different values of high, %s among them", c.core.Who(i)))
		}
	}
	if all[0].color > all[n].color {
		first, second = second, first
	}
	d := c.core.proc.blankComm(c.Name() + "&")
	if err := c.bequeath(d, born, shape{local: group.Union(first, second)}); err != nil {
		return nil, err
	}
	return d, nil
}

// IntercommCreateFromGroups makes an intercommunicator between two groups that
// have no process in common, without any other communicator. Every process of
// both calls it with its own group, the other one, and the same tag. It
// returns on the first rank of the group that is found to be the low one at
// once, on the others when that has called; failures and giving up are as with
// CommFromGroup. Collective over both groups. MPI 4.1 section 7.6.2,
// MPI_Intercomm_create_from_groups.
func IntercommCreateFromGroups(local, remote Group, tag string) (*Comm, error) {
	p := local.proc
	if err := p.checkMeeting(opInterGroups, local, tag); err != nil {
		return nil, err
	}
	var none *Comm
	if remote.Size() == 0 {
		return nil, none.argError(ErrArg, opInterGroups, ProcNull, -1, -1, -1, "", fmt.Errorf("the remote group is empty"))
	}
	if both := local.Intersection(remote); both.Size() > 0 {
		return nil, none.argError(ErrRank, opInterGroups, ProcNull, -1, -1, -1, "", overlapping(both.members))
	}
	s := shape{local.members, remote.members, before(local.members.At(0), remote.members.At(0))}
	first, second := s.local, s.remote
	if !s.low {
		first, second = second, first
	}
	key := append([]byte{bootInterFromPair}, fmt.Sprintf("%d:%s", first.Len(), tag)...)
	b, err := p.meet(opInterGroups, group.Union(first, second), interSerials, local.user, key, 0)
	if err != nil {
		return nil, err
	}
	d := p.blankComm(tag)
	if err := d.registerInter(b.id, s); err != nil {
		return nil, err
	}
	return d, nil
}

func overlapping(m wire.Members) error {
	return fmt.Errorf("process %v is in both groups", m.At(0))
}

// before orders processes: the group whose leader is before the other's is the
// low one.
func before(a, b wire.ProcID) bool {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Serial, b.Serial)) < 0
}
