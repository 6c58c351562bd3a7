// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// Outcome returns the state of the undecided change of which a set came, or of which the
// sets came that it was made of. It is Done if there is no such change, and after the
// decision. Local, but for one round trip to the head. Errors: ErrSet, ErrSetGone.
func (s *Session) Outcome(set string) (_ State, err error) {
	defer s.raise(&err)
	return s.outcome(s.ctx, "Outcome", set, Queued)
}

// Reached waits until the change has reached the state until, at most Committed, or is
// over, and returns Outcome. Local, but for the head's answer. Errors: those of Outcome;
// mpi.ErrCancelled when ctx ends.
func (s *Session) Reached(ctx context.Context, set string, until State) (_ State, err error) {
	defer s.raise(&err)
	return s.outcome(ctx, "Reached", set, min(until, Committed))
}

func (s *Session) outcome(ctx context.Context, op, set string, until State) (State, error) {
	s.mu.Lock()
	if set = canonical(set); set == protocol.EmptyURI {
		defer s.mu.Unlock()
		return Done, s.open(op)
	}
	h, err := s.find(op, set)
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	ctl := s.process().Control
	var d protocol.DescribeBody
	if err := ctl.Ask(ctx, &protocol.Set{Kind: protocol.KindDescribe, Number: h.set.Number}, &d); err != nil {
		return 0, s.fail(classOf(err), op, detailOf(err))
	}
	if d.Op == 0 {
		return Done, nil
	}
	var b protocol.OpBody
	err = ctl.Ask(ctx, &protocol.Await{Op: d.Op, Until: change.State(until)}, &b)
	if errors.Is(err, protocol.ErrNotFound) {
		return RolledBack, nil // the head has forgotten it, and its newcomers still end
	}
	if err != nil {
		return 0, s.fail(classOf(err), op, detailOf(err))
	}
	return State(b.State), nil
}
