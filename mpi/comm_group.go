// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/core"
)

// Communicators made by their members alone: the first of them sends a context
// id to each of the others, and waits for nobody.

const (
	opCreateGroup   fault.Call = "CreateGroup"
	opCommFromGroup fault.Call = "CommFromGroup"
)

// MaxStringTag is the longest tag of CommFromGroup and IntercommFromGroups, in
// bytes.
const MaxStringTag = 1023

// CommFromGroup makes a communicator of the processes of g, without any other
// communicator. Every member calls it with the same group and tag, nobody else
// takes part; calls with other groups or tags may go on at the same time, on
// any goroutine, and those with the same ones follow each other. Collective
// over g: it returns on g's first rank at once, on the others when that has
// called. If a member fails before, those that wait fail (ErrProcFailed); on the
// first rank, and later, it is left to the first use of the communicator.
//
// It gives up when the context of g ends (Group.WithContext): g and tag cannot
// be used together on this process again. The empty group gives nil. Of processes of a
// change that is not decided (package sessions) the communicator is revoked when the
// change is rolled back; who waits for it to be made then gets ErrRolledBack.
// MPI 4.1 section 7.4.2, MPI_Comm_create_from_group.
func CommFromGroup(g Group, tag string) (*Comm, error) {
	if g.Size() == 0 {
		return nil, nil
	}
	p := g.proc
	if err := p.checkMeeting(opCommFromGroup, g, tag); err != nil {
		return nil, g.raise(err)
	}
	return p.meet(opCommFromGroup, g, core.Groups{Local: g.members}, tag)
}

// meet makes the communicator for which processes meet by a tag.
func (p *Process) meet(op fault.Call, g Group, groups core.Groups, tag string) (*Comm, error) {
	var a core.Agreed
	f := p.core.During(g.user, g.child.over, func(user context.Context) (f *fault.Fault) {
		a, f = p.core.Meet(op, user, groups, tag)
		return f
	})
	if f != nil {
		var none *Comm
		return nil, g.raise(none.errorOf(op, ProcNull, -1, f))
	}
	c, err := p.newComm(nil, a, groups, tag)
	if err != nil {
		return nil, g.raise(err)
	}
	c.core.handler.Store(g.child.handler)
	c.core.info.Store(g.child.info)
	c.core.space = g.child.space
	c.core.Over(g.child.over)
	return c, nil
}

// raise shows an error of a call on g, which is about to return it, to g's error
// handler, and to that of its session.
func (g Group) raise(err error) error {
	if h := g.child.handler; h != nil && g.proc != nil {
		(*h)(g.proc.Self(), err)
	}
	if g.child.raise != nil {
		g.child.raise(err)
	}
	return err
}

// checkMeeting checks the arguments of a call without communicator.
func (p *Process) checkMeeting(op fault.Call, g Group, tag string) error {
	var none *Comm
	switch {
	case p == nil || g.Rank() == Undefined:
		return none.fail(&argFault{class: ErrRank, op: op, err: fmt.Errorf("the calling process is not in the group")})
	case len(tag) > MaxStringTag:
		return none.fail(&argFault{class: ErrTag, op: op, got: int64(len(tag)), want: MaxStringTag, unit: "bytes"})
	}
	return nil
}

// CreateGroup makes a communicator of the ranks of g, a subgroup of c's group.
// Only they call it, with the same group and tag, which tells creations on
// several goroutines apart; c is an intracommunicator, and the call interferes
// neither with messages nor with collectives of c. Collective over g; what is
// said of failures and of giving up at CommFromGroup holds.
// MPI 4.1 section 7.4.2.
func (c *Comm) CreateGroup(g Group, tag int) (*Comm, error) {
	if err := c.intra(opCreateGroup); err != nil {
		return nil, err
	}
	if g.Size() == 0 {
		return nil, nil
	}
	if c.core.Ctx.Freed() {
		return nil, c.fail(&argFault{class: ErrComm, op: opCreateGroup, at: atTag(tag), err: errFreed})
	}
	if tag < 0 || tag > MaxTag {
		return nil, c.tagError(opCreateGroup, ProcNull, tag)
	}
	if err := c.subgroup(opCreateGroup, g); err != nil {
		return nil, err
	}
	if g.rankOf(c.core.proc) == Undefined {
		return nil, c.fail(&argFault{class: ErrRank, op: opCreateGroup, at: atTag(tag), err: fmt.Errorf("the calling process is not in the group")})
	}
	var a core.Agreed
	f := c.core.proc.core.During(c.user, c.core.Outputs(), func(user context.Context) (f *fault.Fault) {
		a, f = c.core.Meet(opCreateGroup, user, g.members, uint64(tag))
		return f
	})
	if f != nil {
		var none *Comm
		return nil, none.errorOf(opCreateGroup, ProcNull, -1, f)
	}
	return c.child(a, core.Groups{Local: g.members}, fmt.Sprintf("%s*%d", c.Name(), tag))
}
