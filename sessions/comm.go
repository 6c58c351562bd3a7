// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/mpi"
)

// Group returns the processes of a set, those that have ended too. Local. Errors:
// ErrSet, ErrSetGone, ErrSession.
// MPI 4.1 section 11.3.2.
func (s *Session) Group(name string) (_ mpi.Group, err error) {
	defer s.raise(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	var m wire.Members
	var over []*core.Output
	if name = canonical(name); name == protocol.EmptyURI {
		if err := s.open("Group"); err != nil {
			return mpi.Group{}, err
		}
	} else if h, err := s.find("Group", name); err != nil {
		return mpi.Group{}, err
	} else {
		m, over = h.set.Members, h.over
	}
	return s.proc.Core().Group(m, over, s.CallErrorHandler).(mpi.Group).WithSendBuffer(s.space), nil
}

// Comm makes a communicator of the processes of a set.
//
// Collective over the set. The k-th call of each member for one set, over all its
// sessions, gives the same communicator, so members make these calls in the same order.
// Where several goroutines make communicators, use mpi.CommFromGroup with tags. The
// first 8 calls return without a message on all members (7 for a world and for a change's
// Result, which come with one). A further call returns at once on the first member, and on
// the others when the first member has called.
//
// The empty set gives nil. gompi://main is the main set at the time of each member's
// call; Main returns a name that is the same for all. A communicator over an output of an
// undecided change, or over a set made of such outputs, is revoked when the change is rolled
// back (ErrRevoked and ErrRolledBack). Close ends the communicator, if Free or Disconnect
// has not.
//
// Errors: mpi.ErrRank if the caller is not in the set; ErrSet, ErrSetGone, ErrSession. A
// member that has failed is found by the first use of the communicator, not by Comm.
// MPI 4.1 section 11.3.
func (s *Session) Comm(name string) (_ *mpi.Comm, err error) {
	defer s.raise(&err)
	const op = "Comm"
	name = canonical(name)
	s.mu.Lock()
	if name == protocol.EmptyURI {
		defer s.mu.Unlock()
		return nil, s.open(op)
	}
	h, err := s.find(op, name)
	if err == nil {
		h.retain()
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer h.drop()
	c, err := s.make(op, h, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	closed := s.open(op)
	if closed == nil {
		s.keep(c)
	}
	s.mu.Unlock()
	if closed != nil {
		c.Free()
		return nil, closed
	}
	return c, nil
}

// make makes the next communicator of a set. The caller holds h.
func (s *Session) make(op fault.Call, h *setRef, name string) (*mpi.Comm, error) {
	p := s.process()
	if h.set.Members.Index(p.Self) < 0 {
		return nil, s.fail(mpi.ErrRank, string(op), errors.New("the calling process is not in the set"))
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	var a core.Agreed
	var g core.Groups
	f := p.During(s.ctx, h.over, func(ctx context.Context) (f *fault.Fault) {
		a, g, f = p.OfSet(op, ctx, h.set, h.had.Opened)
		return f
	})
	h.had.Opened++
	if f != nil {
		return nil, s.fail(mpi.Class(f.Class), string(op), f.Err)
	}
	made, err := s.proc.Core().Make(a, g, name)
	if err != nil {
		return nil, err
	}
	c := made.(*mpi.Comm)
	s.space.Serve(c)
	c.Core().Comm().Over(h.over)
	return c, nil
}

// keep notes a communicator for Close; mu is held. When the list has grown to twice the
// communicators that lived last time, it drops the freed ones.
func (s *Session) keep(c *mpi.Comm) {
	if len(s.comms) == cap(s.comms) {
		var rest []*mpi.Comm
		for _, d := range s.comms {
			if live(d) {
				rest = append(rest, d)
			}
		}
		s.comms = append(make([]*mpi.Comm, 0, 2*len(rest)+4), rest...)
	}
	s.comms = append(s.comms, c)
}

// live reports whether a communicator was not freed.
func live(c *mpi.Comm) bool { return !c.Core().Comm().Ctx.Freed() }
