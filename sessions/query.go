// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"fmt"
	"strings"

	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// queries are the queries of a watcher, and the sets that they name.
type queries struct {
	main bool // Watch was called with gompi://main, which stands for all Results that follow
	// names are the sets that the latest calls named, for coll and in.
	names [2]protocol.SetName
	cross map[queryKey]*crossQuery
	// gone is the key that was queried last of those whose set is gone or replaced,
	// goneClass and goneErr the error.
	gone      queryKey
	goneClass mpi.Class
	goneErr   error
}

// Query returns the change of the set in that is due, nil if there is none. It is for
// programs that have no iterations to compare.
//
// Collective over coll, which has the caller as a member: mostly the watched set. The k-th
// call of each member for in gives the same answer, and waits for no member. With coll
// "mpi://SELF" the answer comes at once and is the caller's alone: others may not have seen
// the change yet.
//
// Outcomes:
//   - All calls from one number on return a change that is ready, the same value each
//     time, until it is over. The first call that returns it accepts it for all.
//   - After the commit of a change with a Result calls count from 1 again, for the Result.
//   - A change that others have seen, and that was rolled back since, has nothing but its
//     Input; its Commit returns the error.
//   - The set's next change waits until each living member with an open watch has called
//     as often as those that saw the one before.
//
// in is the watched set, or any set of which the caller is not a member. Then the caller
// is Beside the change: it has no vote, and Commit waits for the decision of the others.
// When the change is committed and has a Result, the next call returns ErrSetReplaced,
// which names the Result; "gompi://main" goes on to the Result by itself. While a watcher
// queries a set, the set lives, unless it comes of a change that is rolled back: then the
// next call returns ErrSetGone.
//
// A member may also query the Result of a delivered change before the decision, by its
// name and with its members. Such calls return nothing until the decision, and count with
// the calls after it. So members need not wait for the one that calls Complete: after
// that, the next call with the Result's name goes on to the Result by itself.
//
// A call that ends with its context counts.
//
// Errors:
//   - ErrRefused: the caller is a member of in, and watches in another way or not at all.
//   - ErrSetReplaced, ErrSetGone: see above.
//   - ErrLeaving: the caller has left by a change.
func (w *Watcher) Query(ctx context.Context, coll, in string) (*Change, error) {
	const op = "Query"
	if err := w.usable(op); err != nil {
		return nil, err
	}
	g := w.page
	if strings.EqualFold(coll, protocol.SelfURI) {
		n, err := w.setNumber(ctx, op, 1, in)
		if err == nil {
			err = w.advanceTo(ctx, n)
		}
		if r := w.resultWatcher(n); r != nil && err == nil {
			return r.Query(ctx, coll, in)
		}
		if g = w.page; err != nil || w.resultPage(n) != nil {
			return nil, err
		}
		if n == g.set {
			if c := g.lines.Announced(); c != 0 {
				if ok, first := g.lines.Accept(c); ok {
					return w.deliver(op, c, first)
				}
			}
			return nil, nil
		}
	}
	n, err := w.setNumber(ctx, op, 0, coll)
	if err != nil {
		return nil, err
	}
	if k := (queryKey{coll: n}); in == protocol.MainURI && w.cross[k] != nil {
		return w.queryOther(ctx, op, k, 0)
	}
	of, err := w.setNumber(ctx, op, 1, in)
	if err == nil && n == of {
		if err = w.advanceTo(ctx, n); err == nil && w.resultWatcher(n) != nil {
			return w.resultWatcher(n).Query(ctx, coll, in)
		}
		g = w.page
	}
	switch {
	case err != nil:
		return nil, err
	case n == g.set && of == g.set:
		return w.query(ctx, op, g, nil)
	case n == of && w.resultPage(n) != nil:
		return w.query(ctx, op, w.resultPage(n), nil)
	case of != g.set && in == protocol.MainURI:
		return w.queryOther(ctx, op, queryKey{coll: n}, of)
	}
	return w.queryOther(ctx, op, queryKey{n, of}, of)
}

// query is one call that counts: on the page of the watched set, on that of the Result of
// a delivered change, or on that of the cross-set query a.
func (w *Watcher) query(ctx context.Context, op string, g *page, a *crossQuery) (*Change, error) {
	m := g.member
	k := m.BeginCall()
	var n changepage.Change
	var first, over bool // over: the change was rolled back
	look := func() (ok bool) {
		dropped := g.lines.Dropped() // then the head writes no answer any more
		if n, ok = m.Visible(k); !ok && dropped {
			n = 0
			return true
		}
		if !ok || n == 0 || over {
			return ok
		}
		if ok, first = g.lines.Accept(n); ok {
			return true
		}
		over = true
		n, ok = m.Visible(k)
		return ok
	}
	var err error
	if !look() {
		err = w.awaitAnswer(ctx, op, g, look)
	}
	// A set goes for good: a caller that finds it gone found no change before.
	if a != nil && err == nil && n == 0 && g.lines.Dropped() {
		w.endCrossQuery(a.queryKey, a)
		w.gone, w.goneClass = a.queryKey, ErrSetGone
		w.goneErr = fmt.Errorf("%s, or the set whose members query it", protocol.SetURI(g.proc.Self.Job, a.of))
		return nil, newError(w.goneClass, op, w.goneErr)
	}
	var x *Change
	switch {
	case err != nil || n == 0:
	case a != nil && !a.watched:
		x, err = w.otherChange(ctx, op, a, n, over)
	case a == nil && g != w.page: // the Result's page: the decision fell meanwhile, and there is a change already
		if err = w.advanceTo(ctx, g.set); err == nil && !over {
			now := w
			if r := w.resultWatcher(g.set); r != nil {
				now = r
			}
			x, err = now.deliver(op, n, first)
		}
	case !over:
		x, err = w.deliver(op, n, first && a == nil)
	}
	if err == nil && n != 0 && x == nil {
		x = w.rolledBackChange(w.page, n)
	}
	if c := m.EndCall(k); c != 0 {
		// A connection that is lost ends the job.
		_ = g.proc.Control.Tell(&protocol.StatusWord{Set: g.set, Change: uint32(c)})
	}
	return x, err
}

// resultPage returns the page of a set that is the Result of a delivered change before
// the decision; else nil.
func (w *Watcher) resultPage(set uint32) *page {
	x := w.pending
	if x == nil || x.page != w.page || x.body.Result.Number != set {
		return nil
	}
	return x.pages.result()
}

// resultWatcher returns the watcher of a set that came of the watched one, if the session
// has not taken it over; else nil.
func (w *Watcher) resultWatcher(set uint32) *Watcher {
	for _, r := range w.results {
		if r.set == set {
			return r
		}
	}
	return nil
}

// advanceTo goes on to a set, if that is the Result of the delivered change and others
// have committed this. A later Commit of the program returns at once.
func (w *Watcher) advanceTo(ctx context.Context, set uint32) error {
	if w.resultPage(set) == nil {
		return nil
	}
	x := w.pending
	if s, _ := x.page.lines.Decision(x.number); s != changepage.Committed {
		return nil
	}
	if _, err := x.Commit(ctx); err != nil {
		return err
	}
	w.settle()
	return nil
}

// awaitAnswer waits until the agent, or the head, has written the answer on the page.
func (w *Watcher) awaitAnswer(ctx context.Context, op string, g *page, look func() bool) error {
	ctx, cancel := whileJob(ctx, w.proc)
	defer cancel()
	if c := g.lines.PausedChange(); c != 0 {
		g.tell(c)
	}
	if f := g.await(ctx, op, look); f != nil {
		return faultError(op, f)
	}
	return nil
}

// setNumber returns the number of the set that a call names. which: 0 is coll, 1 is in.
func (w *Watcher) setNumber(ctx context.Context, op string, which int, name string) (uint32, error) {
	if w.main && name == protocol.MainURI {
		return w.page.set, nil
	}
	last := &w.names[which]
	if last.Name != name || name == protocol.MainURI {
		ref, err := registryOf(w.proc.Core().Process()).hold(ctx, name)
		if err != nil {
			return 0, controlError(ctx, op, err)
		}
		*last = protocol.SetName{Name: name, Number: ref.set.Number}
		ref.drop()
	}
	return last.Number, nil
}
