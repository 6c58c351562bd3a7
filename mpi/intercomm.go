// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/core"
)

// Intercommunicators.

const (
	opInterCreate fault.Call = "IntercommCreate"
	opInterMerge  fault.Call = "IntercommMerge"
	opInterGroups fault.Call = "IntercommCreateFromGroups"
)

// of is c's core for a call that can return no error.
func (c *Comm) of(op fault.Call) *commCore {
	if c == nil {
		panicNoComm(op)
	}
	return c.core
}

func panicNoComm(op fault.Call) {
	var none *Comm
	panic(none.newError(&argFault{class: ErrComm, op: op, err: errNoComm}).Error())
}

// exists refuses a call on no communicator.
func (c *Comm) exists(op fault.Call) error {
	if c == nil {
		return c.fail(&argFault{class: ErrComm, op: op, err: errNoComm})
	}
	return nil
}

// intra refuses a call that intercommunicators do not have.
func (c *Comm) intra(op fault.Call) error {
	if err := c.exists(op); err != nil {
		return err
	}
	if c.core.Both != nil {
		return c.fail(&argFault{class: ErrComm, op: op, err: fmt.Errorf("it is an intercommunicator")})
	}
	return nil
}

// IsInter reports whether c is an intercommunicator: its messages go to the
// ranks of another, remote group. Local. MPI 4.1 section 7.6.1.
func (c *Comm) IsInter() bool { return c.of("IsInter").Both != nil }

// RemoteSize is the number of ranks of the remote group, 0 in an
// intracommunicator. Local. MPI 4.1 section 7.6.1.
func (c *Comm) RemoteSize() int { return c.of("RemoteSize").Ctx.Remote.Len() }

// RemoteGroup is the remote group, empty in an intracommunicator. Local.
// MPI 4.1 section 7.6.1.
func (c *Comm) RemoteGroup() Group {
	return c.of("RemoteGroup").proc.groupOf(c.core.Ctx.Remote, c.core.Outputs())
}

// IntercommCreate makes an intercommunicator between the group of c and
// another one, which calls it, too. The leaders, rank localLeader of c in each
// group, meet over peer, in which remoteLeader is the other leader's
// rank; peer, remoteLeader and tag matter only to them. The tag tells several
// calls between the same leaders apart and interferes with no message. Leaders that miss
// each other, as with different tags, wait until the context of c or that of peer ends, or
// one of the two is revoked. A group
// whose leader fails or finds an error gets that error on all ranks. A localLeader
// that c does not have is ErrRank and revokes c, as others may wait for that rank. The
// groups must have no process in common. Collective over both groups.
// MPI 4.1 section 7.6.2.
func (c *Comm) IntercommCreate(localLeader int, peer *Comm, remoteLeader, tag int) (*Comm, error) {
	if err := c.intra(opInterCreate); err != nil {
		return nil, err
	}
	if localLeader < 0 || localLeader >= c.core.Size {
		c.Revoke() // others may wait for this rank
		return nil, c.rankError(opInterCreate, localLeader, -1)
	}
	var a core.Agreed
	var g core.Groups
	var why error
	var own *fault.Fault
	user := c.user
	if c.core.Rank == localLeader {
		a, g, own, why = c.handshake(peer, remoteLeader, tag)
	}
	failed := c.asFault(why)
	if own != nil {
		failed, user = own, nil // the others are told
	}
	a, g, f := c.core.ShareHandshake(opInterCreate, user, localLeader, a, g, failed)
	switch {
	case own != nil:
		return nil, c.errorOf(opInterCreate, ProcNull, -1, own)
	case f != nil && f == failed:
		return nil, why
	case f != nil:
		return nil, c.errorOf(opInterCreate, ProcNull, -1, f)
	}
	return c.child(a, g, c.Name()+"|")
}

// handshake is the leader's part of IntercommCreate. own is a fault of c, err any other error.
func (c *Comm) handshake(peer *Comm, leader, tag int) (a core.Agreed, g core.Groups, own *fault.Fault, err error) {
	switch {
	case peer == nil || peer.core.proc != c.core.proc:
		err = c.fail(&argFault{class: ErrComm, op: opInterCreate, err: fmt.Errorf("the leaders have no communicator in common")})
	case leader < 0 || leader >= peer.core.Targets:
		err = peer.rankError(opInterCreate, leader, tag)
	case tag < 0 || tag > MaxTag:
		err = peer.tagError(opInterCreate, leader, tag)
	default:
		var f *fault.Fault
		var ofThis bool
		if a, g, f, ofThis = c.core.Handshake(opInterCreate, c.user, &peer.core.Comm, peer.user, leader, tag); ofThis {
			own = f
		} else if f != nil {
			err = peer.errorOf(opInterCreate, int32(leader), int32(tag), f)
		}
	}
	return a, g, own, err
}

// asFault is an error that the handler has seen as others are told of it.
func (c *Comm) asFault(err error) *fault.Fault {
	if err == nil {
		return nil
	}
	f := &fault.Fault{Class: fault.Arg, Peer: -1, Err: err}
	var e *Error
	if errors.As(err, &e) {
		f.Class = fault.Class(e.Class)
	}
	return f
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
	if c.core.Both == nil {
		return nil, c.fail(&argFault{class: ErrComm, op: opInterMerge, err: fmt.Errorf("it is not an intercommunicator")})
	}
	flag := 0
	if high {
		flag = 1
	}
	all, a, f := c.core.Choices(opInterMerge, c.user, flag, 0, c.core.Both.Rank == 0)
	if f != nil {
		return nil, c.errorOf(opInterMerge, ProcNull, -1, f)
	}
	n := c.core.LowSize()
	for i, x := range all {
		first := 0
		if i >= n {
			first = n
		}
		if x.Color != all[first].Color {
			a.TakeBack()
			return nil, c.fail(&argFault{class: ErrArg, op: opInterMerge, err: fmt.Errorf("the ranks of a group give different values of high, %s among them", c.core.MemberName(i))})
		}
	}
	return c.core.proc.newComm(c, a, c.core.Groups().Merged(all[0].Color > all[n].Color), c.Name()+"&")
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
		return nil, local.raise(err)
	}
	groups, f := core.Facing(local.members, remote.members)
	if f != nil {
		var none *Comm
		return nil, local.raise(none.errorOf(opInterGroups, ProcNull, -1, f))
	}
	return p.meet(opInterGroups, local.over(remote), groups, tag)
}
