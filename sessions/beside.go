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

// question is a set whose members ask for the changes of another; in is 0 for
// gompi://main, whichever it is by then.
type question struct{ coll, in uint32 }

// asking is the page on which one is answered.
type asking struct {
	question
	page    *page
	of      uint32  // in, or what gompi://main was
	watched bool    // in is the set that the watcher follows
	known   *Change // the last of another set
}

// askBeside is a Query of which coll or in is not the watched set. of is in where it is
// asked for the first time.
func (w *Watcher) askBeside(ctx context.Context, op string, q question, of uint32) (*Change, error) {
	a := w.askings[q]
	if a != nil && a.known != nil && a.known.adopted(q.in == 0) {
		of = a.known.body.Result.Number
		w.endAsking(q, a)
		if q.in != 0 {
			w.over, w.why = q, ErrSetReplaced
			w.detail = fmt.Errorf("its successor is %s", protocol.SetURI(w.proc.Core().Process().Self.Job, of))
		}
		a = nil
	}
	if q == w.over && q != (question{}) {
		return nil, newError(w.why, op, w.detail)
	}
	if a == nil {
		var err error
		if a, err = w.askPage(ctx, op, q, of); err != nil {
			return nil, err
		}
		if w.askings == nil {
			w.askings = map[question]*asking{}
		}
		w.askings[q] = a
	}
	return w.query(ctx, op, a.page, a)
}

// askPage gets the page of a question.
func (w *Watcher) askPage(ctx context.Context, op string, q question, of uint32) (*asking, error) {
	c := w.proc.Core().Process()
	for {
		uri := protocol.SetURI(c.Self.Job, of)
		h, err := registryOf(c).hold(ctx, uri)
		if err != nil {
			return nil, controlError(ctx, op, err)
		}
		var b protocol.PageBody
		var ask protocol.QueryBody
		fds := [protocol.FrameFDs]int{-1, -1}
		if member := h.set.Members.Index(c.Self) >= 0; member && of != w.page.set {
			err = newError(ErrRefused, op, fmt.Errorf("this process is in %s, which the watch does not follow", uri))
		} else if fds, err = c.Control.AskFiles(ctx, &protocol.Subscribe{Set: q.coll, In: of, Options: w.opts}, &b); err != nil {
			err = controlError(ctx, op, err)
		} else if err = protocol.Decode(&ask, b.Rest); err != nil {
			err = newError(mpi.ErrUnreachable, op, err)
		}
		h.drop()
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
		return &asking{question: q, page: g, of: of, watched: of == w.page.set}, nil
	}
}

// beside is a change of a set of which the caller is no member.
func (w *Watcher) beside(ctx context.Context, op string, a *asking, n changepage.Change, over bool) (*Change, error) {
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
			runtime.AddCleanup(x, (*kept).release, x.kept)
		}
	}
	if over {
		x = &Change{Role: Beside, proc: w.proc, page: a.page, number: n, turn: make(chan struct{}, 1), over: true}
		x.err = x.rolledBack("Commit")
		x.body.Inputs = []wire.Set{{URI: protocol.SetURI(c.Self.Job, a.of), Number: a.of}}
	}
	x.Input, x.handed = protocol.SetURI(c.Self.Job, a.of), true
	a.known = x
	return x, nil
}

// adopted reports whether the change was committed as far as this process knows, and
// another set is in the place of its input, or of the main set.
func (c *Change) adopted(main bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over && c.err == nil && c.body.Result.Number != 0 && (main || !c.body.Options.Stay)
}

// endAskings ends what is asked of a set; 0: of all.
func (w *Watcher) endAskings(in uint32) {
	for q, a := range w.askings {
		if in == 0 || a.of == in {
			w.endAsking(q, a)
		}
	}
}

func (w *Watcher) endAsking(q question, a *asking) {
	delete(w.askings, q)
	// Who has no connection any more asks for nothing.
	_ = a.page.proc.Control.Tell(&protocol.Set{Kind: protocol.KindUnsubscribe, Number: a.page.set})
	a.page.release()
}
