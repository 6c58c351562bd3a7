// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gompi/internal/base/wire"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// asked is what a watcher knows of the sets that its queries name.
type asked struct {
	main bool // Watch was called with gompi://main, which stands for all that follow
	// names are what the latest calls have named, for coll and in.
	names   [2]protocol.SetName
	askings map[question]*asking
	// over is what was asked for last among what is not there any more, why and detail
	// the error.
	over   question
	why    mpi.Class
	detail error
}

// Query returns the change of a set that is to be adopted, if there is one, for
// programs that have no iterations to compare: the k-th call of each member of coll
// for in gives the same answer, and waits for no member. A change that is ready is
// returned by all calls from one number on until it is over, the same value each
// time; the first one that returns it accepts it for all. After the commit of a
// change with a Result calls count from 1 again, of that set. A change that others
// have seen and that was rolled back since is returned with nothing but its Input; its
// Commit says so. The set's next change waits until each member that lives and has
// not closed its watch has called as often as those who saw the one before.
//
// coll is a set of which the caller is a member, mostly the watched one. With
// "mpi://SELF" the answer is at once and to the caller alone: others may not have seen
// it yet. in is the watched set, or any of which the caller is no member. Then the
// caller is Beside the change: it has no vote, and Commit waits for what the others
// decide. When it is committed and has a Result, the next call is an error of class
// ErrSetReplaced that names it; "gompi://main" goes on to the Result by itself. While
// a watcher asks for a set, that lives, unless it comes of a change that is rolled back:
// then the next call is ErrSetGone.
//
// The Result of a change that was handed out may be asked for, by its name and with its
// members, before the decision; there is nothing to be seen until then, and such calls
// count like those that follow. So members need not wait for the one that calls
// Complete. When that has, the next call with the Result's name goes on to it by itself.
//
// The error is of class ErrRefused for sets of which the caller is a member and that
// it watches in another way, or not. A call that ends with its context counts. When
// the caller has left by a change the error is ErrLeaving.
func (w *Watcher) Query(ctx context.Context, coll, in string) (*Change, error) {
	const op = "Query"
	if err := w.openHere(op); err != nil {
		return nil, err
	}
	g := w.page
	if strings.EqualFold(coll, protocol.SelfURI) {
		n, err := w.named(ctx, op, 1, in)
		if err == nil {
			err = w.goAhead(ctx, n)
		}
		if r := w.result(n); r != nil && err == nil {
			return r.Query(ctx, coll, in)
		}
		if g = w.page; err != nil || w.ahead(n) != nil {
			return nil, err
		}
		if n == g.set {
			if c := g.lines.Announced(); c != 0 {
				if ok, first := g.lines.Accept(c); ok {
					return w.handedAgain(op, c, first)
				}
			}
			return nil, nil
		}
	}
	n, err := w.named(ctx, op, 0, coll)
	if err != nil {
		return nil, err
	}
	if q := (question{coll: n}); in == protocol.MainURI && w.askings[q] != nil {
		return w.askBeside(ctx, op, q, 0)
	}
	of, err := w.named(ctx, op, 1, in)
	if err == nil && n == of {
		if err = w.goAhead(ctx, n); err == nil && w.result(n) != nil {
			return w.result(n).Query(ctx, coll, in)
		}
		g = w.page
	}
	switch {
	case err != nil:
		return nil, err
	case n == g.set && of == g.set:
		return w.query(ctx, op, g, nil)
	case n == of && w.ahead(n) != nil:
		return w.query(ctx, op, w.ahead(n), nil)
	case of != g.set && in == protocol.MainURI:
		return w.askBeside(ctx, op, question{coll: n}, of)
	}
	return w.askBeside(ctx, op, question{n, of}, of)
}

// query is one call that counts, on the page of the watched set or on one that is
// asked for.
func (w *Watcher) query(ctx context.Context, op string, g *page, a *asking) (*Change, error) {
	m := g.member
	k := m.BeginCall()
	var n changepage.Change
	var first, over bool // over: it was rolled back
	look := func() (ok bool) {
		dropped := g.lines.Dropped() // then nothing is found out any more
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
		err = w.findsOut(ctx, op, g, look)
	}
	// A set goes for good, so who finds it gone found no change before.
	if a != nil && err == nil && n == 0 && g.lines.Dropped() {
		w.endAsking(a.question, a)
		w.over, w.why = a.question, ErrSetGone
		w.detail = fmt.Errorf("%s, or the set with whose members it was asked for", protocol.SetURI(g.proc.Self.Job, a.of))
		return nil, newError(w.why, op, w.detail)
	}
	var x *Change
	switch {
	case err != nil || n == 0:
	case a != nil && !a.watched:
		x, err = w.beside(ctx, op, a, n, over)
	case a == nil && g != w.page: // it was decided meanwhile, and there is a change already
		if err = w.goAhead(ctx, g.set); err == nil && !over {
			now := w
			if r := w.result(g.set); r != nil {
				now = r
			}
			x, err = now.handedAgain(op, n, first)
		}
	case !over:
		x, err = w.handedAgain(op, n, first && a == nil)
	}
	if err == nil && n != 0 && x == nil {
		x = w.rolledBack(w.page, n)
	}
	if c := m.EndCall(k); c != 0 {
		// A connection that is lost ends the job.
		_ = g.proc.Control.Tell(&protocol.StatusWord{Set: g.set, Change: uint32(c)})
	}
	return x, err
}

// ahead is the page of a set, if that is the Result of a change that was handed out and
// is not decided; else nil.
func (w *Watcher) ahead(set uint32) *page {
	x := w.pending
	if x == nil || x.page != w.page || x.body.Result.Number != set {
		return nil
	}
	return x.kept.ahead()
}

// result is who follows a set that came of the watched one, of those not taken over; nil:
// nobody.
func (w *Watcher) result(set uint32) *Watcher {
	for _, r := range w.results {
		if r.set == set {
			return r
		}
	}
	return nil
}

// goAhead goes on to a set, if that is ahead and others have committed the change. Commit
// of the program then returns at once.
func (w *Watcher) goAhead(ctx context.Context, set uint32) error {
	if w.ahead(set) == nil {
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

// findsOut waits for what the agent is finding out, or the head.
func (w *Watcher) findsOut(ctx context.Context, op string, g *page, look func() bool) error {
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

// handedAgain is a change that may have been returned before.
func (w *Watcher) handedAgain(op string, n changepage.Change, first bool) (*Change, error) {
	if x := w.pending; x != nil && x.page == w.page && x.number == n {
		return x, nil
	}
	return w.handed(op, n, first)
}

// rolledBack is a change that others were handed before it was rolled back.
func (w *Watcher) rolledBack(g *page, n changepage.Change) *Change {
	w.asking.Lock()
	defer w.asking.Unlock()
	if x := w.known; x != nil && x.page == g && x.number == n {
		x.handed = true
		w.undone = x
		return x
	}
	x := &Change{
		Input: protocol.SetURI(g.proc.Self.Job, g.set), Role: Staying,
		proc: w.proc, page: g, number: n, options: w.opts, handed: true, turn: make(chan struct{}, 1), over: true, kept: new(kept),
	}
	x.err = x.rolledBack("Commit")
	x.body.Inputs = []wire.Set{{URI: x.Input, Number: g.set}}
	w.undone = x
	w.replaceKnown(x)
	return x
}

// openHere reports why the watch has no page, and goes on to that of the Result.
func (w *Watcher) openHere(op string) error {
	if !w.open {
		return newError(ErrSession, op, errors.New("the watch was closed"))
	}
	if w.pending != nil {
		w.settle()
	}
	if w.ended != nil {
		return w.ended
	}
	if ctx := w.proc.Context(); ctx.Err() != nil {
		return newError(mpi.ErrFinalized, op, context.Cause(ctx))
	}
	return nil
}

// named is the number of a set that a call names.
func (w *Watcher) named(ctx context.Context, op string, which int, name string) (uint32, error) {
	if w.main && name == protocol.MainURI {
		return w.page.set, nil
	}
	last := &w.names[which]
	if last.Name != name || name == protocol.MainURI {
		h, err := registryOf(w.proc.Core().Process()).hold(ctx, name)
		if err != nil {
			return 0, controlError(ctx, op, err)
		}
		*last = protocol.SetName{Name: name, Number: h.set.Number}
		h.drop()
	}
	return last.Number, nil
}
