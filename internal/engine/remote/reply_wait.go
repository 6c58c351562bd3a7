// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"

	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

// replyWait is a wait for the end of operations on another process. It is recycled, so that
// waiting allocates nothing.
type replyWait struct {
	engine.Await
	peer   *peer
	line   *opQueue // to it
	number uint64   // until that operation is done; 0: until there is room for one
	to     level
	next   *replyWait
}

func (w *replyWait) ready() (bool, *fault.Fault) {
	switch {
	case w.peer.down != nil:
		return true, w.peer.down
	case w.number != 0:
		return w.line.done[w.to] >= w.number, nil
	}
	return !w.line.carrier.full(), nil
}

// wait waits until an operation of a queue is done or, with 0, until there is room for one.
// The caller holds the lock, which is released meanwhile.
func (t *Target) wait(op fault.Call, l *opQueue, to level, number uint64, user context.Context) *fault.Fault {
	s := t.s
	w := s.waits
	if w == nil {
		w = &replyWait{}
		w.Ready = w.ready
	} else {
		s.waits = w.next
	}
	w.Op, w.Ctx, w.Rank, w.User = op, t.ctx, t.rank, user
	w.peer, w.line, w.number, w.to = t.peer, l, number, to
	over, f := w.ready()
	if !over {
		s.e.Unlock()
		f = s.e.Await(&w.Await)
		s.e.Lock()
	}
	w.Ctx, w.User, w.peer, w.line = nil, nil, nil, nil
	w.next, s.waits = s.waits, w
	return f
}
