// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/base/group"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
)

// The leaders' handshake (MPI 4.1 section 7.6.2): two groups agree on the context of an
// intercommunicator. The leaders exchange their groups, and each tells its own group the
// outcome.

// The words at the beginning of a leader's message, before its group.
const (
	headSerial = iota // of the context, if the sender's group is the low one
	headBytes         // of the group
	headWords

	// maxGroupBytes bounds what a leader allocates on the other's word.
	maxGroupBytes = 64 << 20
)

// Handshake is the part of a leader of c, who meets rank leader of peer, beside
// all other traffic there. It gives up when user, the context of the call on c, or at, that of
// peer, ends, or when c is revoked. A fault is that of a call on peer, or, if own, on c.
func (c *Comm) Handshake(op fault.Call, user context.Context, peer *Comm, at context.Context, leader, tag int) (a Agreed, g Groups, f *fault.Fault, own bool) {
	if user == nil {
		user = context.Background()
	}
	ctx, cancel := context.WithCancelCause(user)
	if at != nil {
		defer context.AfterFunc(at, func() { cancel(context.Cause(at)) })()
	}
	lost := c.lost(ctx, func() { cancel(nil) }, func(int32, bool) bool { return false })
	a, g, f = c.handshake(op, peer, ctx, leader, tag)
	cancel(nil)
	l := <-lost
	if f == nil || f.Class != fault.Cancelled {
		return a, g, f, false
	}
	switch {
	case user.Err() != nil:
		return a, g, &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(user)}, true
	case l.Class != fault.Cancelled:
		return a, g, &l, true
	}
	return a, g, f, false
}

// handshake is Handshake until user ends.
func (c *Comm) handshake(op fault.Call, peer *Comm, user context.Context, leader, tag int) (Agreed, Groups, *fault.Fault) {
	a, g := Agreed{Op: op, by: c}, Groups{Local: c.Ctx.Members}
	self, other := c.Proc.Self, peer.Ctx.Targets().At(leader)
	g.Low = self.Before(other)
	body := wire.AppendHosts(wire.AppendMembers(nil, g.Local), c.hosts)
	head, theirs := make([]byte, 8*headWords), make([]byte, 8*headWords)
	if g.Low {
		binary.LittleEndian.PutUint64(head, uint64(c.Proc.NewSerials(interSerials)))
	}
	binary.LittleEndian.PutUint64(head[8*headBytes:], uint64(len(body)))
	if f := peer.swap(op, user, head, theirs, leader, tag); f != nil {
		return a, g, f
	}
	n := binary.LittleEndian.Uint64(theirs[8*headBytes:])
	if n > maxGroupBytes || len(body) > maxGroupBytes {
		return a, g, &fault.Fault{Class: fault.Count, Peer: -1, Got: int64(max(n, uint64(len(body)))), Want: maxGroupBytes, Err: errGroupBytes}
	}
	theirGroup := make([]byte, n)
	if f := peer.swap(op, user, body, theirGroup, leader, tag); f != nil {
		return a, g, f
	}
	creator, serial := self, binary.LittleEndian.Uint64(head)
	if !g.Low {
		creator, serial = other, binary.LittleEndian.Uint64(theirs)
	}
	f := c.face(&a, &g, theirGroup)
	if f == nil {
		a.ID, f = contextOf(creator, serial)
	}
	return a, g, f
}

var errGroupBytes = errors.New("the ranges of a group take more than they may")

// swap exchanges messages of known lengths with another leader.
func (c *Comm) swap(op fault.Call, user context.Context, out, in []byte, peer, tag int) *fault.Fault {
	e, ctx := c.Engine, c.Ctx
	r := e.Irecv(ctx, &engine.RecvArgs{Op: op, Buf: buffer.Of(in), Source: int32(peer), Tag: int32(tag), Plane: wire.TrafficCommCreate, User: user})
	f := e.Send(ctx, &engine.SendArgs{Op: op, Buf: buffer.Of(out), Dest: int32(peer), Tag: int32(tag), Plane: wire.TrafficCommCreate, User: user})
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
	return f
}

// face decodes the other group and its hosts. The groups must be disjoint.
func (c *Comm) face(a *Agreed, g *Groups, b []byte) *fault.Fault {
	m, rest, err := wire.ReadMembers(b, maxGroupBytes)
	var theirs wire.Hosts
	if err == nil {
		theirs, rest, err = wire.ReadHosts(rest, m.Len(), maxGroupBytes)
	}
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	if err == nil && m.Len() == 0 {
		err = fmt.Errorf("it is empty")
	}
	if err != nil {
		return wrong(fault.Arg, "remote group: %w", err)
	}
	if both := group.Intersection(g.Local, m); both.Len() > 0 {
		return wrong(fault.Arg, "process %v is in both groups", both.At(0))
	}
	g.Remote = m
	a.members = g.together()
	if a.hosts = c.hosts.Concat(theirs); !g.Low {
		a.hosts = theirs.Concat(c.hosts)
	}
	return nil
}

// The words at the beginning of a leader's message to its group. The body after them is the
// remote group, or the text of an error.
const (
	toldClass = iota // of the error
	toldJob          // of the creator of the context
	toldCreator
	toldSerial // of the context; of an error the change whose roll-back is why, 0: none is
	toldLow    // 1: the local group is the low one
	toldBytes
	toldWords
)

// ShareHandshake tells all ranks of c the outcome of its leader's Handshake: a and g, or the
// text of failed.Err. Collective over c; a, g and failed count on the leader.
func (c *Comm) ShareHandshake(op fault.Call, user context.Context, leader int, a Agreed, g Groups, failed *fault.Fault) (Agreed, Groups, *fault.Fault) {
	head := make([]uint64, toldWords)
	var body []byte
	switch {
	case c.Rank != leader:
	case failed != nil:
		var undone fault.Rollback
		errors.As(failed.Err, &undone)
		head[toldClass], head[toldSerial] = uint64(failed.Class), uint64(undone)
		body = []byte(cause(failed.Err, failed).Error())
	default:
		head[toldJob], head[toldCreator], head[toldSerial] = uint64(a.ID.Creator.Job), uint64(a.ID.Creator.Serial), uint64(a.ID.Serial)
		if g.Low {
			head[toldLow] = 1
		}
		body = wire.AppendHosts(wire.AppendMembers(nil, g.Remote), a.hosts.Subset(a.members, g.Remote))
	}
	head[toldBytes] = uint64(len(body))
	told := c.telling(op, user, leader, buffer.Words(head))
	if f := c.Run(&told); f != nil {
		return a, g, f
	}
	if c.Rank != leader {
		body = make([]byte, min(head[toldBytes], maxGroupBytes))
	}
	told = c.telling(op, user, leader, buffer.Of(body))
	if f := c.runOn(&told); f != nil || failed != nil {
		return a, g, cmp.Or(f, failed)
	}
	if c.Rank == leader {
		return a, g, nil
	}
	a, g = Agreed{Op: op, by: c}, Groups{Local: c.Ctx.Members, Low: head[toldLow] == 1}
	var f *fault.Fault
	if class := head[toldClass]; class != 0 {
		if class >= uint64(fault.Reported) {
			class = uint64(fault.Arg)
		}
		f = wrong(fault.Class(class), "the leader, rank %d: %s", leader, body)
		if undone := fault.Rollback(head[toldSerial]); undone != 0 {
			f.Err = fmt.Errorf("the leader, rank %d: %w", leader, undone)
		}
	} else {
		a.ID, f = contextOf(wire.ProcID{Job: wire.JobID(head[toldJob]), Serial: uint32(head[toldCreator])}, head[toldSerial])
	}
	if f == nil {
		f = c.face(&a, &g, body)
	}
	if f != nil {
		f.Peer = int32(leader)
	}
	return a, g, f
}
