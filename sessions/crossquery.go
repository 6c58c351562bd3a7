// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"fmt"
	"runtime"

	"gompi/internal/base/wire"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// queryKey names a cross-set query: the set whose members call, and the set whose
// changes they query. in is 0 for gompi://main, whichever set that is at a call.
type queryKey struct{ coll, in uint32 }

// crossQuery is a query across sets: the page on which the head answers it.
type crossQuery struct {
	queryKey
	page    *page
	of      uint32  // in, or the set that gompi://main was
	watched bool    // in is the set that the watcher follows
	known   *Change // the last change of another set
}

// queryOther is a Query whose coll or in is not the watched set. of is the number of in,
// for the first call.
func (w *Watcher) queryOther(ctx context.Context, op string, q queryKey, of uint32) (*Change, error) {
	a := w.cross[q]
	if a != nil && a.known != nil && a.known.replaces(q.in == 0) {
		of = a.known.body.Result.Number
		w.endCrossQuery(q, a)
		if q.in != 0 {
			w.gone, w.goneClass = q, ErrSetReplaced
			w.goneErr = fmt.Errorf("its successor is %s", protocol.SetURI(w.proc.Core().Process().Self.Job, of))
		}
		a = nil
	}
	if q == w.gone && q != (queryKey{}) {
		return nil, newError(w.goneClass, op, w.goneErr)
	}
	if a == nil {
		var err error
		if a, err = w.openCrossQuery(ctx, op, q, of); err != nil {
			return nil, err
		}
		if w.cross == nil {
			w.cross = map[queryKey]*crossQuery{}
		}
		w.cross[q] = a
	}
	return w.query(ctx, op, a.page, a)
}

// openCrossQuery subscribes to a set at the head and opens the page of the answers.
func (w *Watcher) openCrossQuery(ctx context.Context, op string, q queryKey, of uint32) (*crossQuery, error) {
	c := w.proc.Core().Process()
	for {
		uri := protocol.SetURI(c.Self.Job, of)
		ref, err := registryOf(c).hold(ctx, uri)
		if err != nil {
			return nil, controlError(ctx, op, err)
		}
		var b protocol.PageBody
		var ask protocol.QueryBody
		fds := [protocol.FrameFDs]int{-1, -1}
		if member := ref.set.Members.Index(c.Self) >= 0; member && of != w.page.set {
			err = newError(ErrRefused, op, fmt.Errorf("this process is in %s, which the watch does not follow", uri))
		} else if fds, err = c.Control.AskFiles(ctx, &protocol.Subscribe{Set: q.coll, In: of, Options: w.opts}, &b); err != nil {
			err = controlError(ctx, op, err)
		} else if err = protocol.Decode(&ask, b.Rest); err != nil {
			err = newError(mpi.ErrUnreachable, op, err)
		}
		ref.drop()
		switch {
		case err != nil:
			protocol.CloseFiles(fds[:]...)
			return nil, err
		case ask.Successor != 0 && q.in == 0:
			of = ask.Successor
			continue
		case ask.Successor != 0:
			return nil, newError(ErrSetReplaced, op, fmt.Errorf("%s: its successor is %s", uri, protocol.SetURI(c.Self.Job, ask.Successor)))
		}
		g, err := openPage(c, ask.Page, b, fds, w.opts)
		if err != nil {
			_ = c.Control.Tell(&protocol.Set{Kind: protocol.KindUnsubscribe, Number: ask.Page})
			return nil, newError(mpi.ErrUnreachable, op, err)
		}
		return &crossQuery{queryKey: q, page: g, of: of, watched: of == w.page.set}, nil
	}
}

// otherChange returns change n of a set of which the caller is not a member. over: it was
// rolled back.
func (w *Watcher) otherChange(ctx context.Context, op string, a *crossQuery, n changepage.Change, over bool) (*Change, error) {
	if x := a.known; x != nil && x.number == n {
		return x, nil
	}
	c := w.proc.Core().Process()
	var x *Change
	if !over {
		var b protocol.PageBody
		var body protocol.ChangeBody
		_, err := c.Control.AskFiles(ctx, &protocol.GetChange{Set: a.page.set, Change: uint32(n)}, &b)
		if err == nil {
			err = protocol.Decode(&body, b.Rest)
		}
		if s, ok := a.page.lines.Decision(n); err != nil && ok && s != changepage.RolledBack {
			return nil, controlError(ctx, op, err)
		}
		if over = err != nil; !over {
			x = w.newChange(a.page, n, body)
			x.name()
			runtime.AddCleanup(x, (*changePages).release, x.pages)
		}
	}
	if over {
		x = &Change{Role: Beside, proc: w.proc, page: a.page, number: n, turn: make(chan struct{}, 1), over: true}
		x.err = x.rolledBack("Commit")
		x.body.Inputs = []wire.Set{{URI: protocol.SetURI(c.Self.Job, a.of), Number: a.of}}
	}
	x.Input, x.delivered = protocol.SetURI(c.Self.Job, a.of), true
	a.known = x
	return x, nil
}

// replaces reports whether the change was committed as far as this process knows, and its
// Result has taken the place of its input (main false) or of the main set (true).
func (c *Change) replaces(main bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over && c.err == nil && c.body.Result.Number != 0 && (main || !c.body.Options.Stay)
}

// endCrossQueries ends the cross-set queries of a set; 0: of all sets.
func (w *Watcher) endCrossQueries(in uint32) {
	for q, a := range w.cross {
		if in == 0 || a.of == in {
			w.endCrossQuery(q, a)
		}
	}
}

func (w *Watcher) endCrossQuery(q queryKey, a *crossQuery) {
	delete(w.cross, q)
	// A lost connection ends the subscription as well.
	_ = a.page.proc.Control.Tell(&protocol.Set{Kind: protocol.KindUnsubscribe, Number: a.page.set})
	a.page.release()
}
