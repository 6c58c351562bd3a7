// SPDX-License-Identifier: Apache-2.0

package head

import (
	"fmt"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// wait is a request that cannot be answered yet.
type wait struct {
	proc *proc // who asks
	id   uint32
	size int // bytes that it keeps, about

	target *proc  // KindContact
	key    string // KindGet
	set    *set   // KindSetGet
	coll   *set   // whose members call, where they do so together
	keys   []string
	call   uint64
	fence  *fence // KindFence

	interest *interest // KindHappen
	behind   *behind   // what waits for the decision of a change
	short    *spawn    // that waits for slots
	spawn    *spawn    // that is under way
	meeting  *meeting  // KindMeet
	name     string    // KindService: of one that is awaited
	ends     *proc     // KindEnd
	attach   *attach   // KindAttach
	kin      bool      // KindKin

	op    *op // KindAwait, KindWithdraw
	until change.State
}

// park keeps a request for later.
func (h *Head) park(w *wait, f *protocol.Frame) error {
	w.size = protocol.FrameHead + len(f.Body)
	if f.Kind == protocol.KindSpawn {
		w.size += spawnSize
	}
	switch p := w.proc; {
	case len(p.reqs) >= maxParked:
		return fmt.Errorf("more than %d unanswered requests", maxParked)
	case p.waiting+w.size > maxWaiting:
		return fmt.Errorf("more than %d bytes of unanswered requests", maxWaiting)
	default:
		p.reqs[w.id] = w
		p.waiting += w.size
		return nil
	}
}

// What bounds the requests of one process that wait for something: how many they
// are, and their bytes. A Spawn is a goroutine and places, however short it is.
const (
	maxParked  = 1 << 16
	maxWaiting = 16 << 20
	spawnSize  = 64 << 10
)

// unpark forgets a request wherever it waits.
func (h *Head) unpark(w *wait) {
	if w.proc.reqs[w.id] != w {
		return
	}
	delete(w.proc.reqs, w.id)
	w.proc.waiting -= w.size
	switch {
	case w.target != nil:
		delete(w.target.awaited, w)
	case w.fence != nil:
		h.leaveFence(w)
	case w.set != nil:
		delete(w.set.store.waits, w)
		h.waitsNoMore(w)
	case w.interest != nil:
		w.interest.wait = nil
	case w.behind != nil:
		h.stopWaiting(w.behind)
	case w.short != nil:
		h.stopShort(w.short)
	case w.meeting != nil:
		h.stopMeeting(w.meeting)
	case w.spawn != nil:
		h.forsakeSpawn(w.spawn)
	case w.name != "":
		delete(h.nameless[w.name], w)
		if len(h.nameless[w.name]) == 0 {
			delete(h.nameless, w.name)
		}
	case w.ends != nil:
		delete(w.ends.enders, w)
	case w.attach != nil:
		h.stopAttach(w.attach)
	case w.op != nil:
		delete(w.op.waits, w)
		h.forgetOp(w.op)
	case w.key != "":
		delete(h.gets[w.key], w)
		if len(h.gets[w.key]) == 0 {
			delete(h.gets, w.key)
		}
	}
}

// cancel: who has asked gives a request up that waits. It is answered in any case: refused,
// or, where another job has it in hand, as that says.
func (h *Head) cancel(w *wait) {
	if t := w.meeting; t != nil && t.out != nil && t.out.up {
		h.recall(t)
		return
	}
	h.unparkWith(w, errGivenUp)
}

var errGivenUp = protocol.Refused("cancelled")

// unparkWith ends a waiting request with an error.
func (h *Head) unparkWith(w *wait, err error) {
	h.unpark(w)
	h.refuse(w.proc, w.id, err)
}
