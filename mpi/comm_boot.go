// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"encoding/binary"
	"fmt"

	"gompi/internal/calls"
	"gompi/internal/engine"
	"gompi/internal/wire"
)

// Communicators made by their members alone: the first of them sends a context
// id to each of the others, and waits for nobody.

const (
	opCreateGroup   calls.Name = "CreateGroup"
	opCommFromGroup calls.Name = "CommFromGroup"
)

// MaxStringTag is the longest tag of CommFromGroup and IntercommFromGroups, in
// bytes.
const MaxStringTag = 1023

// What a meeting of processes is for: the first byte of its key.
const (
	bootCreateGroup   = 'g'
	bootFromGroup     = 'c'
	bootInterFromPair = 'i'
)

// CommFromGroup makes a communicator of the processes of g, without any other
// communicator. Every member calls it with the same group and tag, nobody else
// takes part; calls with other groups or tags may go on at the same time, on
// any goroutine, and those with the same ones follow each other. Collective
// over g: it returns on g's first rank at once, on the others when that has
// called. If a member fails before, those that wait fail (ErrProcFailed); on the
// first rank, and later, it is left to the first use of the communicator.
//
// It gives up when the context of g ends (Group.WithContext): g and tag cannot
// be used together on this process again. The empty group gives nil.
// MPI 4.1 section 7.4.2, MPI_Comm_create_from_group.
func CommFromGroup(g Group, tag string) (*Comm, error) {
	if g.Size() == 0 {
		return nil, nil
	}
	p := g.proc
	if err := p.checkMeeting(opCommFromGroup, g, tag); err != nil {
		return nil, err
	}
	b, err := p.meet(opCommFromGroup, g.members, 1, g.user, append([]byte{bootFromGroup}, tag...), 0)
	if err != nil {
		return nil, err
	}
	return p.newComm(b.id, g.members, tag)
}

// checkMeeting checks the arguments of a call without communicator.
func (p *Process) checkMeeting(op calls.Name, g Group, tag string) error {
	var none *Comm
	switch {
	case p == nil || g.Rank() == Undefined:
		return none.argError(ErrRank, op, ProcNull, -1, -1, -1, "", fmt.Errorf("the calling process is not in the group"))
	case len(tag) > MaxStringTag:
		return none.argError(ErrTag, op, ProcNull, -1, int64(len(tag)), MaxStringTag, "bytes", nil)
	}
	return nil
}

// meet makes the members agree on the first of n consecutive context ids, and
// learn of the block that the first of them offers.
func (p *Process) meet(op calls.Name, members wire.Members, n uint32, user context.Context, key []byte, block uint32) (birth, error) {
	var none *Comm
	a := engine.BootArgs{Op: op, Members: members, Key: key, User: user, Block: block}
	gaveUp := user != nil && user.Err() != nil
	if members.At(0) == p.core.Self && !gaveUp {
		a.Context = wire.ContextID{Creator: p.core.Self, Serial: p.core.NewSerials(n)}
	}
	id, f := p.core.Engine.Boot(&a)
	b := birth{id: id, block: a.Block, own: block, giver: members.At(0)}
	switch {
	case gaveUp && f != nil:
		return b, none.argError(ErrCancelled, op, ProcNull, -1, -1, -1, "", context.Cause(user))
	case f != nil:
		return b, none.errorOf(op, ProcNull, -1, f)
	}
	return b, nil
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
		return nil, c.argError(ErrComm, opCreateGroup, ProcNull, tag, -1, -1, "", errFreed)
	}
	if tag < 0 || tag > MaxTag {
		return nil, c.tagError(opCreateGroup, ProcNull, tag)
	}
	if err := c.subgroup(opCreateGroup, g); err != nil {
		return nil, err
	}
	if g.rankOf(c.core.proc) == Undefined {
		return nil, c.argError(ErrRank, opCreateGroup, ProcNull, tag, -1, -1, "", fmt.Errorf("the calling process is not in the group"))
	}
	parent := c.core.Ctx.ID
	key := []byte{bootCreateGroup}
	key = binary.LittleEndian.AppendUint64(key, uint64(parent.Creator.Job))
	key = binary.LittleEndian.AppendUint32(key, parent.Creator.Serial)
	key = binary.LittleEndian.AppendUint32(key, parent.Serial)
	key = binary.LittleEndian.AppendUint64(key, uint64(tag))
	var block uint32
	if g.Rank() == 0 && g.Size() > 1 {
		block = c.core.Engine.Offer(c.core.Ctx)
	}
	b, err := c.core.proc.meet(opCreateGroup, g.members, 1, c.user, key, block)
	if err != nil {
		c.takeBack(&b)
		return nil, err
	}
	return c.child(b, shape{local: g.members}, fmt.Sprintf("%s*%d", c.Name(), tag))
}
