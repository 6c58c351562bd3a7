// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"

	"gompi/internal/calls"
	"gompi/internal/engine"
	"gompi/internal/fault"
)

// replyWait is a wait for answers of another process. It is recycled, so that
// waiting allocates nothing.
type replyWait struct {
	engine.Await
	peer   *peer
	number uint64 // until that request is done; 0: until there is room for one
	next   *replyWait
}

func (w *replyWait) ready() (bool, *fault.Fault) {
	o := &w.peer.out
	switch {
	case w.peer.down != nil:
		return true, w.peer.down
	case w.number != 0:
		return o.done >= w.number, nil
	}
	return !o.full(), nil
}

// wait waits until a request is done, or for 0 until there is room for one. The
// lock is held, and given away meanwhile.
func (t *Target) wait(op calls.Name, number uint64, user context.Context) *fault.Fault {
	s := t.s
	w := s.waits
	if w == nil {
		w = &replyWait{}
		w.Ready = w.ready
	} else {
		s.waits = w.next
	}
	w.Op, w.Ctx, w.Rank, w.User = op, t.ctx, t.rank, user
	w.peer, w.number = t.peer, number
	over, f := w.ready()
	if !over {
		s.e.Unlock()
		f = s.e.Await(&w.Await)
		s.e.Lock()
	}
	w.Ctx, w.User, w.peer = nil, nil, nil
	w.next, s.waits = s.waits, w
	return f
}
