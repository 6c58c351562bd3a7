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

// QueryPSetOp returns the operation that is pending on a set, in, whichever process has
// requested it; PSetOpNull if there is none.
//
// Collective over coll: the k-th call of each of its members for in gives the same answer,
// and waits for no member. coll "mpi://SELF" is the caller alone; others may not have
// seen the operation yet. The calls of one process count in the order in which it made them.
//
// The first call that returns an operation accepts it: it cannot be cancelled any more. Calls
// return it until it is finalized. A member that has called less often than others may get
// it once more afterwards, so that calls of one number agree: a program knows the changes
// that it has had. Then calls return PSetOpNull, or the next operation on the same set,
// which lives on beside the operation's Result. Members of the Result may query that before
// the operation is finalized.
//
// From its first QueryPSetOp or PSetOp on, until Close or Release, a process follows the
// sets that it names and is a member of. A set takes changes, one after the other, when all
// its members follow it; so does its Result. A process that is not a member of in follows
// coll. A session releases the inputs, and the sets of newcomers and leavers, of an operation
// that were not named during the four operations after it. Such a set is gone then, unless
// others hold it.
//
// Errors:
//   - ErrRolledBack: an operation that others have got does not happen, as a process has
//     died. Nothing has changed.
//   - ErrSetReplaced: in was replaced before, and its members follow its changes by Watch,
//     not by these calls.
//   - ErrLeaving: the caller has left.
//   - mpi.ErrRank: the caller is in neither set.
//
// MPI_Session_dyn_v2a_query_psetop of the DPP prototype.
func (s *Session) QueryPSetOp(ctx context.Context, coll, in string) (_ PSetOperation, err error) {
	defer s.raise(&err)
	defer s.dpp.enter()()
	return s.queryPSetOp(ctx, coll, in)
}

// IQueryPSetOp starts a QueryPSetOp, which counts from the start. Collective over coll. The
// answer may be read when the request is complete.
func (s *Session) IQueryPSetOp(ctx context.Context, coll, in string) (*PSetOperation, mpi.Request) {
	x := new(PSetOperation)
	turn := s.dpp.enqueue()
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
	w, err := s.watcherFor(ctx, op, coll, in)
	if err != nil {
		return PSetOperation{}, err
	}
	c, err := w.Query(ctx, coll, in)
	err = errors.Join(err, s.takeOver(w))
	if c == nil || err != nil {
		return PSetOperation{}, err
	}
	if c.isOver() || c.rolledBackOnPage() {
		if _, err := c.Commit(ctx); err != nil {
			return PSetOperation{}, err
		}
	}
	return c.psetOperation(), nil // all calls of this number return it
}

// watcherFor returns the watcher that queries in with the members of coll.
func (s *Session) watcherFor(ctx context.Context, op, coll, in string) (*Watcher, error) {
	for _, name := range []string{in, coll} {
		h, err := s.setNamed(op, name)
		if err != nil {
			return nil, err
		}
		if h.set.Members.Index(s.process().Self) >= 0 {
			return s.follow(ctx, op, h)
		}
	}
	return nil, s.fail(mpi.ErrRank, op, fmt.Errorf("the calling process is not in %s", coll))
}

// psetOperation returns the change as an operation of DPP.
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

// FinalizePSetOp completes a pending operation for all its processes. set is any of the
// operation's sets.
//
// One process calls it that got the operation from QueryPSetOp, or was started for it. The
// other members and the newcomers need not call anything; newcomers may still be starting.
// On return the sets have changed, and the processes that leave may end. QueryPSetOp
// returns the operation no more, except to members that have called it less often than
// others.
//
// Errors:
//   - ErrRolledBack: the operation does not happen. Each call returns this until the
//     process gets the next operation on the same set.
//   - mpi.ErrArg: the process got no such operation, or another call has completed it.
//   - ErrSet, ErrSetGone, ErrSession.
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
	c := s.dpp.deliveredChange(func(x wire.Set) bool { return x.URI == name })
	if c == nil {
		h, err := s.setNamed(op, set)
		if err != nil {
			return err
		}
		c = s.dpp.deliveredChange(func(x wire.Set) bool { return x.Number == h.set.Number })
	}
	switch {
	case c == nil:
		return s.fail(mpi.ErrArg, op, fmt.Errorf("this process has got no pending operation on %s", set))
	case c.isOver():
		return c.rolledBack(op)
	case c == s.dpp.joined:
		s.dpp.joined = nil
	}
	return c.finalize(ctx, op)
}

// deliveredChange returns the change with a wanted set that the process got, or was
// started for: one that is not over, else one that was rolled back. nil: none.
func (f *dppState) deliveredChange(wanted func(wire.Set) bool) (undone *Change) {
	list := []*Change{f.joined}
	for _, w := range f.watchers {
		list = append(list, w.pending, w.undone)
		for _, a := range w.cross {
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

// finalize is Complete without the communicator. It waits until calls of QueryPSetOp do
// not return the change any more. A process that leaves does so later.
func (c *Change) finalize(ctx context.Context, op string) error {
	g := c.page
	if g == nil { // a newcomer: the head answers when no later call sees the change
		return c.complete(ctx, op)
	}
	if c.Role == Beside {
		if err := c.complete(ctx, op); err != nil {
			return err
		}
		_, err := c.await(ctx, op, change.Committed) // the head answers when no later call sees it
		if errors.Is(err, protocol.ErrNotFound) {
			err = nil // it is over, and the head has forgotten it
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
	if err := c.vote(op, true); err != nil {
		return err
	}
	if committed, err := c.decision(ctx, op); err != nil || committed {
		return err
	}
	return c.rolledBack(op)
}

// Barrier waits until all processes of these sets have called it. Collective over the union
// of the sets; all processes name the same sets in the same order. It needs no communicator,
// and works over sets of an operation that is not finalized. Errors: mpi.ErrRank if the
// caller is in no set; mpi.ErrCancelled if ctx ends first; mpi.ErrRevoked if that of another
// process does.
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
		return s.raised(mpi.ErrRank, op, fmt.Errorf("the calling process is not in the sets %q", sets))
	}
	c, err := mpi.CommFromGroup(all.WithContext(ctx), protocol.SelfURI+"/barrier")
	if err != nil {
		return err
	}
	return errors.Join(c.WithContext(ctx).Barrier(), c.Free())
}
