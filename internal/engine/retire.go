// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/internal/fault"
	"gompi/internal/wait"
)

var errRetires = errors.New("the process leaves by a change of its set")

// Retire ends what this process has begun with others, of whom it is about to take
// leave: its published memory is closed and accesses of others that are under way are
// waited for; receives that have no message are withdrawn, and fail as if their
// context had ended; for the end of all else it waits, and until it has left, or until
// ctx ends. undone names what was withdrawn and, with a fault, what is pending. Nobody
// need Wait for requests any more. The engine goes on until Close; nobody else's
// communicators are touched.
func (e *Engine) Retire(ctx context.Context) (undone []string, f *fault.Fault) {
	e.mu.Lock()
	server := e.remote
	e.mu.Unlock()
	if server != nil && ctx.Err() == nil {
		server.Leave(ctx)
	}
	end := retirement{e: e, given: map[Handle]bool{}}
	for b := (wait.Backoff{}); ; {
		e.mu.Lock()
		if e.closed {
			e.mu.Unlock()
			return end.undone, &fault.Fault{Class: fault.Finalized, Peer: -1}
		}
		end.withdraw()
		for n := 0; n < departTurns && e.progress() > 0; n++ {
		}
		pending, left := end.pending(), e.unsent()
		pol := e.prog.Policy
		if len(pending) == 0 && left == "" {
			e.retired = true
			e.mu.Unlock()
			return end.undone, nil
		}
		e.mu.Unlock()
		if ctx.Err() != nil {
			if left != "" && len(pending) == 0 {
				pending = append(pending, left)
			}
			return append(end.undone, pending...), &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(ctx)}
		}
		if b.MayYield(pol.Spin + pol.Yield) {
			b.Yielded(pol.Turn(b.Yields), 0)
		} else {
			time.Sleep(drainPause)
		}
	}
}

// retirement is a Retire under way.
type retirement struct {
	e      *Engine
	given  map[Handle]bool // what was withdrawn
	undone []string
}

// withdraw gives up all receives that may wait for ever.
func (t *retirement) withdraw() {
	f := &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: errRetires}
	for r := range t.e.started {
		h := Handle{r, r.gen}
		if r.kind == reqSend || r.kind == reqColl || r.kind == reqOther || t.given[h] || r.kind == reqPart && r.coll.part.args.Send {
			continue
		}
		name := r.describe()
		t.e.expire(r, f)
		if r.kind != reqRecv || r.done { // else it has its message
			t.given[h] = true
			t.undone = append(t.undone, name)
		}
	}
}

// pending names the operations of the program that have not ended.
func (t *retirement) pending() (names []string) {
	for r := range t.e.started {
		names = append(names, r.describe())
	}
	return names
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
