// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// QueryPSetOp tells of the operation that is pending on a set, in, whoever has asked for
// it: PSetOpNull if there is none. Those in coll ask together: the k-th call of each of
// them for in gives the same answer, and waits for no other; coll "mpi://SELF" is the
// caller alone, whom others may be behind. The first call that tells of an operation
// accepts it: it cannot be cancelled from then on. It is told of again and again until
// it is finalized, and by a member that has called less often than others perhaps once
// more, so that calls of one number agree: clients know the delta that they have had. Then
// it is PSetOpNull, or the next operation on the same set, which lives on beside what was
// made of it. The members of what it makes of the set may query that before. A session lets
// go of a set that was the input of an operation, or of processes that came or left by one,
// when it was not named during the four operations after: it is gone then, unless others
// hold it.
//
// A process follows the sets that it names, of which it is a member, from its first
// QueryPSetOp or PSetOp of them, until Close or Release: a set takes changes when all members do,
// one after the other, and so does what becomes of it. Who is no member of in follows coll.
// The calls of one process are in the order in which they were made.
//
// ErrRolledBack: an operation of which others were told, by calls like this one, does
// not happen, as a process has died; nothing has changed. ErrSetReplaced: in was
// replaced before, and its members follow its changes by Watch, not by these calls. The
// error is ErrLeaving when the caller has left.
//
// MPI_Session_dyn_v2a_query_psetop of the DPP prototype.
func (s *Session) QueryPSetOp(ctx context.Context, coll, in string) (_ PSetOperation, err error) {
	defer s.raise(&err)
	defer s.dpp.enter()()
	return s.queryPSetOp(ctx, coll, in)
}

// IQueryPSetOp starts a QueryPSetOp: its answer is there when the request is complete.
func (s *Session) IQueryPSetOp(ctx context.Context, coll, in string) (*PSetOperation, mpi.Request) {
	x := new(PSetOperation)
	turn := s.dpp.ticket()
	return x, s.start("IQueryPSetOp", func() (err error) {
		defer s.raise(&err)
		defer turn()()
		*x, err = s.queryPSetOp(ctx, coll, in)
		return err
	})
}

func (s *Session) queryPSetOp(ctx context.Context, coll, in string) (PSetOperation, error) {
	const op = "QueryPSetOp"
	if err := s.settle(ctx, op); err != nil {
		return PSetOperation{}, err
	}
	w, err := s.asks(ctx, op, coll, in)
	if err != nil {
		return PSetOperation{}, err
	}
	c, err := w.Query(ctx, coll, in)
	err = errors.Join(err, s.takeOver(w))
	if c == nil || err != nil {
		return PSetOperation{}, err
	}
	if c.isOver() || c.undone() {
		if _, err := c.Commit(ctx); err != nil {
			return PSetOperation{}, err
		}
	}
	return c.psetOperation(), nil // all calls of this number tell of it
}

// asks is who asks for the changes of a set with the members of coll.
func (s *Session) asks(ctx context.Context, op, coll, in string) (*Watcher, error) {
	for _, name := range []string{in, coll} {
		h, err := s.named(op, name)
		if err != nil {
			return nil, err
		}
		if h.set.Members.Index(s.process().Self) >= 0 {
			return s.follow(ctx, op, h)
		}
	}
	return nil, s.fail(mpi.ErrRank, op, fmt.Errorf("the calling process is not in %s", coll))
}

// psetOperation is the change as DPP has it.
func (c *Change) psetOperation() PSetOperation {
	x := PSetOperation{Op: PSetOpMulti}
	for op, k := range kinds {
		if k == c.Kind() && op != PSetOpMalleable {
			x.Op = op
		}
	}
	x.Out = outputs(x.Op, c.Joining, c.Leaving, c.Result)
	return x
}

// FinalizePSetOp completes the operation that any of its sets names, for all: who has
// been told of it, and the newcomers, need not say anything. On return it holds, the
// processes that leave by it may end, and QueryPSetOp does not tell of it any more, but for
// members that have called it less often than others. It
// is called by one process that was told of it, or has come by it; newcomers may be on
// their way to their first call still. ErrRolledBack: the process was told of it, and it
// does not happen; so does each call until the process is told of the next operation on
// the same set. ErrArg: the process was told of no such operation, or another call has
// completed it.
//
// MPI_Session_dyn_finalize_psetop of the DPP prototype; in its paper it is called
// complete.
func (s *Session) FinalizePSetOp(ctx context.Context, set string) (err error) {
	const op = "FinalizePSetOp"
	defer s.raise(&err)
	defer s.dpp.enter()()
	if err := s.settle(ctx, op); err != nil {
		return err
	}
	name := canonical(set)
	// By name first: the sets of a change that was rolled back are gone.
	c := s.dpp.known(func(x wire.Set) bool { return x.URI == name })
	if c == nil {
		h, err := s.named(op, set)
		if err != nil {
			return err
		}
		c = s.dpp.known(func(x wire.Set) bool { return x.Number == h.set.Number })
	}
	switch {
	case c == nil:
		return s.fail(mpi.ErrArg, op, fmt.Errorf("this process was told of no operation that is pending on %s", set))
	case c.isOver():
		return c.rolledBack(op)
	case c == s.dpp.joined:
		s.dpp.joined = nil
	}
	return c.finalize(ctx, op)
}

// known is the change that the process was told of, or has come by, and of which one set
// is the wanted one: one that is not over, else the last of its input if that was rolled
// back. nil: there is none.
func (f *following) known(wanted func(wire.Set) bool) (undone *Change) {
	list := []*Change{f.joined}
	for _, w := range f.list {
		list = append(list, w.pending, w.undone)
		for _, a := range w.askings {
			list = append(list, a.known)
		}
	}
	for _, c := range list {
		switch {
		case c == nil || !c.hasSet(wanted):
		case !c.isOver():
			return c
		case c.endedRolledBack():
			undone = c
		}
	}
	return undone
}

// hasSet reports whether one of the sets of the change is wanted.
func (c *Change) hasSet(wanted func(wire.Set) bool) bool {
	return wanted(c.body.Result) || wanted(c.body.Leaving) || slices.ContainsFunc(c.body.Joining, wanted) || slices.ContainsFunc(c.body.Inputs, wanted)
}

// finalize is Complete of a change whose communicator nobody wants, and waits until calls of
// QueryPSetOp tell of it no more. Who leaves takes leave later.
func (c *Change) finalize(ctx context.Context, op string) error {
	g := c.page
	if g == nil { // a newcomer: the head tells it so when no later call sees the change
		return c.complete(ctx, op)
	}
	if c.Role == Beside {
		if err := c.complete(ctx, op); err != nil {
			return err
		}
		_, err := c.await(ctx, op, change.Committed) // likewise
		if errors.Is(err, protocol.ErrNotFound) {
			err = nil // it is over, and forgotten
		}
		return err
	}
	g.retain()
	defer g.release()
	if err := c.complete(ctx, op); err != nil {
		return err
	}
	ctx, cancel := whileJob(ctx, c.proc)
	defer cancel()
	if f := g.await(ctx, op, func() bool { return g.lines.CallsDecided(c.number) }); f != nil {
		return faultError(op, f)
	}
	return nil
}

func (c *Change) complete(ctx context.Context, op string) error {
	if c.Role != Leaving {
		comm, err := c.Complete(ctx)
		if comm != nil {
			err = errors.Join(err, comm.Free())
		}
		return err
	}
	if err := c.vote(op, false, true); err != nil {
		return err
	}
	if committed, err := c.decision(ctx, op); err != nil || committed {
		return err
	}
	return c.rolledBack(op)
}

// Barrier waits until all processes of these sets have called it, with the same sets in
// the same order. Collective over their union. It needs no communicator, and may be
// called over sets of a change that is not finalized.
//
// MPI_Session_pset_barrier of the DPP prototype.
func (s *Session) Barrier(ctx context.Context, sets ...string) (err error) {
	const op = "Barrier"
	var all mpi.Group
	for i, name := range sets {
		g, err := s.Group(name)
		if err != nil {
			return err
		}
		if all = all.Union(g); i == 0 {
			all = g
		}
	}
	if len(sets) == 0 || all.Rank() == mpi.Undefined {
		return s.raised(mpi.ErrRank, op, fmt.Errorf("the calling process is in none of the sets %q", sets))
	}
	c, err := mpi.CommFromGroup(all.WithContext(ctx), protocol.SelfURI+"/barrier")
	if err != nil {
		return err
	}
	return errors.Join(c.Barrier(), c.Free())
}
