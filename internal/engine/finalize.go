// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/base/fault"
)

var errRetires = errors.New("the process leaves by a change of its set")

// Retire ends what this process has begun with others, before it leaves them. It closes the
// memory that the process has published and waits for accesses that are under way. It
// withdraws receives that have no message; they fail as if their context.Context had ended.
// It waits until everything else has ended and has left the process, or until ctx ends.
//
// undone names the withdrawn operations and, with a fault, the pending ones. Nobody needs
// to Wait for requests any more. The engine goes on until Close, and communicators of other
// processes are not touched.
func (e *Engine) Retire(ctx context.Context) (undone []string, f *fault.Fault) {
	e.unpublish(ctx)
	end := retirement{e: e, given: map[Handle]bool{}}
	switch err := e.drain(ctx, end.withdraw, end.left); {
	case err != nil:
		return append(end.undone, end.pending...), &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(ctx)}
	case !end.over:
		return end.undone, &fault.Fault{Class: fault.Finalized, Peer: -1}
	}
	return end.undone, nil
}

// retirement is a call of Retire that is under way.
type retirement struct {
	e      *Engine
	given  map[Handle]bool // requests that it has withdrawn
	undone []string

	pending []string // operations that have not ended, as far as they have a name
	over    bool
}

// withdraw withdraws all receives that may wait for ever.
func (t *retirement) withdraw() {
	f := &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: errRetires}
	for r := range t.e.started {
		h := Handle{r, r.gen}
		if r.kind == reqSend || r.kind == reqColl || r.kind == reqOther || t.given[h] || r.kind == reqPart && r.coll.partitioned.args.Send {
			continue
		}
		name := r.describe()
		t.e.expire(r, f)
		if r.kind != reqRecv || r.done { // a receive with a message ends by itself
			t.given[h] = true
			t.undone = append(t.undone, name)
		}
	}
}

// left names the operations of the program that have not ended. If there are none, it says
// what has not left the process.
func (t *retirement) left() string {
	t.pending = nil
	for r := range t.e.started {
		t.pending = append(t.pending, r.describe())
	}
	if what := t.e.unsent(); what != "" && len(t.pending) == 0 {
		t.pending = append(t.pending, what)
	}
	if len(t.pending) > 0 {
		return t.pending[0]
	}
	t.over, t.e.retired = true, true
	return ""
}

// describe names an operation for people.
func (r *Request) describe() string {
	s := string(r.op)
	switch r.kind {
	case reqSend, reqRecv:
		way := map[bool]string{true: "to", false: "from"}[r.kind == reqSend]
		s += fmt.Sprintf(" %s rank %s, tag %s", way, orAny(r.rank), orAny(r.tag))
	}
	if r.ctx == nil {
		return s
	}
	if o, ok := r.ctx.Owner.(interface{ Name() string }); ok {
		return s + ", " + o.Name()
	}
	return s + ", " + r.ctx.ID.Label()
}
