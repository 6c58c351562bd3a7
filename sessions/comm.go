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

// Group is the processes of a set, also those that have ended. Local.
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

// Comm makes a communicator of the processes of a set: the k-th call of each member
// for one set, over all its sessions, gives the same one. Members make these
// calls in the same order; where several goroutines make communicators, use
// mpi.CommFromGroup with tags. Collective over the set: the first 8 return
// without a message on all members (7 of a world and of a change's Result, which come
// with one), the others on the first member at once, and elsewhere when that has
// called. A member that has failed, or fails, is left to the
// first use of the communicator. The empty set gives nil. gompi://main is the main
// set as it is when the member calls, Main names one that is the same for all.
//
// A communicator over an output of a change that is not decided, or over a set made of
// such, is revoked when the change is rolled back (ErrRevoked and ErrRolledBack).
//
// Close ends the communicator, if Free or Disconnect has not. MPI 4.1 section 11.3.
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
		h.again()
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

// make makes the next communicator of a set.
func (s *Session) make(op fault.Call, h *held, name string) (*mpi.Comm, error) {
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

// keep notes a communicator for Close; mu is held. Those that were freed are forgotten
// when there are twice as many as there were living ones.
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
