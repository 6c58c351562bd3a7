// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/internal/buffer"
	"gompi/internal/engine"
	"gompi/internal/fault"
	"gompi/internal/group"
	"gompi/internal/wire"
)

// treaty is what the leaders of two groups agree on, for their groups.
type treaty struct {
	remote wire.Members
	id     wire.ContextID
	low    bool // the local group is the low one
}

// What leaders send each other, and then their groups: a head of words and a
// body, the encoding of a group or the text of an error.
const (
	headSerial = iota // of the context, if the sender's group is the low one
	headBytes         // of the body
	headWords

	// maxGroupBytes bounds what a leader allocates on the other's word.
	maxGroupBytes = 64 << 20
)

// negotiate is the leaders' part: they exchange their groups, and the serial
// of a context that the low one's leader creates.
func (c *Comm) negotiate(peer *Comm, remoteLeader, tag int) (treaty, error) {
	var t treaty
	switch {
	case peer == nil || peer.core.proc != c.core.proc:
		return t, c.argError(ErrComm, opInterCreate, ProcNull, -1, -1, -1, "", fmt.Errorf("the leaders have no communicator in common"))
	case remoteLeader < 0 || remoteLeader >= peer.core.Targets:
		return t, peer.rankError(opInterCreate, remoteLeader, tag)
	case tag < 0 || tag > MaxTag:
		return t, peer.tagError(opInterCreate, remoteLeader, tag)
	}
	self, other := c.core.Proc.Self, peer.core.Ctx.Targets().At(remoteLeader)
	t.low = before(self, other)
	body := wire.AppendMembers(nil, c.core.Ctx.Members)
	head := make([]byte, 8*headWords)
	if t.low {
		binary.LittleEndian.PutUint64(head, uint64(c.core.Proc.NewSerials(interSerials)))
	}
	binary.LittleEndian.PutUint64(head[8*headBytes:], uint64(len(body)))
	theirs := make([]byte, 8*headWords)
	if err := peer.swap(head, theirs, remoteLeader, tag); err != nil {
		return t, err
	}
	n := binary.LittleEndian.Uint64(theirs[8*headBytes:])
	if n > maxGroupBytes || len(body) > maxGroupBytes {
		return t, peer.argError(ErrCount, opInterCreate, remoteLeader, tag, int64(max(n, uint64(len(body)))), maxGroupBytes, "bytes of a group", nil)
	}
	theirGroup := make([]byte, n)
	if err := peer.swap(body, theirGroup, remoteLeader, tag); err != nil {
		return t, err
	}
	creator, serial := self, binary.LittleEndian.Uint64(head)
	if !t.low {
		creator, serial = other, binary.LittleEndian.Uint64(theirs)
	}
	var err error
	if t.remote, err = facing(theirGroup, c.core.Ctx.Members); err == nil {
		t.id, err = contextFrom(creator, serial)
	}
	if err != nil {
		return t, peer.argError(ErrArg, opInterCreate, remoteLeader, tag, -1, -1, "", err)
	}
	return t, nil
}

// swap exchanges messages of known lengths with another leader, beside all
// other traffic.
func (c *Comm) swap(out, in []byte, peer, tag int) error {
	e, ctx := c.core.Engine, c.core.Ctx
	r := e.Irecv(ctx, &engine.RecvArgs{Op: opInterCreate, Buf: buffer.Of(in), Source: int32(peer), Tag: int32(tag), Plane: wire.PlaneBoot, User: c.user})
	f := e.Send(ctx, &engine.SendArgs{Op: opInterCreate, Buf: buffer.Of(out), Dest: int32(peer), Tag: int32(tag), Plane: wire.PlaneBoot, User: c.user})
	if f != nil {
		e.Cancel(r)
	}
	o := e.Wait(r)
	if f == nil {
		f = o.Status.Fault
	}
	if f == nil && o.Status.Bytes != int64(len(in)) {
		f = &fault.Fault{Class: fault.Mismatch, Got: o.Status.Bytes, Want: int64(len(in)), Peer: int32(peer)}
	}
	if f != nil {
		return c.errorOf(opInterCreate, int32(peer), int32(tag), f)
	}
	return nil
}

// facing decodes the other group, which has nobody of the local one.
func facing(b []byte, local wire.Members) (wire.Members, error) {
	m, rest, err := wire.ReadMembers(b, maxGroupBytes)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	if err == nil && m.Len() == 0 {
		err = fmt.Errorf("it is empty")
	}
	if err != nil {
		return wire.Members{}, fmt.Errorf("remote group: %w", err)
	}
	if both := group.Intersection(local, m); both.Len() > 0 {
		return wire.Members{}, overlapping(both)
	}
	return m, nil
}

// proclaim tells the local group what its leader has agreed on, or why not.
func (c *Comm) proclaim(t *treaty, leader int, failed error) (wire.Members, error) {
	const class, job, creator, serial, low, bytes, words = 0, 1, 2, 3, 4, 5, 6
	head := make([]uint64, words)
	var body []byte
	if c.core.Rank == leader {
		if failed != nil {
			head[class] = uint64(ErrArg)
			var e *Error
			if errors.As(failed, &e) {
				head[class] = uint64(e.Class)
			}
			body = []byte(failed.Error())
		} else {
			body = wire.AppendMembers(nil, t.remote)
			head[job], head[creator], head[serial] = uint64(t.id.Creator.Job), uint64(t.id.Creator.Serial), uint64(t.id.Serial)
			if t.low {
				head[low] = 1
			}
		}
		head[bytes] = uint64(len(body))
	}
	if err := new(call).bcast(c, BufOf(head), leader).as(opInterCreate).run(); err != nil {
		return wire.Members{}, err
	}
	if c.core.Rank != leader {
		body = make([]byte, min(head[bytes], maxGroupBytes))
	}
	if err := new(call).bcast(c, BufOf(body), leader).as(opInterCreate).run(); err != nil {
		return wire.Members{}, err
	}
	if failed != nil {
		return wire.Members{}, failed
	}
	if head[class] != 0 {
		return wire.Members{}, c.argError(Class(head[class]), opInterCreate, leader, -1, -1, -1, "", fmt.Errorf("the leader, rank %d: %s", leader, body))
	}
	if c.core.Rank == leader {
		return t.remote, nil
	}
	var err error
	if t.id, err = contextFrom(wire.ProcID{Job: wire.JobID(head[job]), Serial: uint32(head[creator])}, head[serial]); err != nil {
		return wire.Members{}, c.argError(ErrArg, opInterCreate, leader, -1, -1, -1, "", err)
	}
	t.low = head[low] == 1
	m, err := facing(body, c.core.Ctx.Members)
	if err != nil {
		return wire.Members{}, c.argError(ErrArg, opInterCreate, leader, -1, -1, -1, "", err)
	}
	return m, nil
}
