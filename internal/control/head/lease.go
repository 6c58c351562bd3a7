// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// Where somebody else decides how many processes the job has, it has slots on lease.
// Nothing waits for who decides: what has no slots waits for these, as it does without a
// lease.

// Use is how a job uses its slots.
type Use struct {
	// Has is how many are taken: by processes of which something is left, or is to come.
	Has int
	// Wants is how many would be with the oldest change or spawn that waits for slots,
	// Least how many will do for it; 0: none waits.
	Wants, Least int
	// Follows: the main set takes changes that nobody in the job has asked for.
	Follows bool
}

func (h *Head) leased() bool { return h.cfg.Lease > 0 }

// Lease: the job may take so many slots from now on, but no fewer than it has. It returns
// how they are used then.
func (h *Head) Lease(slots int) Use {
	more := slots > h.lease
	if h.lease = max(slots, h.places); more {
		h.book.RoomGrew(h.now())
		h.settle()
		h.fitShort()
	}
	return h.use()
}

// Slots: the job may ever have so many processes at a time from now on; 0: any number.
func (h *Head) Slots(most int) {
	h.cfg.Slots = most
	h.book.RoomGrew(h.now())
	h.settle()
	h.fitShort()
}

// LeaseMain is Lease, with a change of the main set by which the job takes all of them, or
// gives back what it has beyond.
func (h *Head) LeaseMain(slots int) *Ticket {
	by := slots - h.places
	for _, p := range h.procs {
		if p.leaves != nil && !p.freed {
			by++ // gives its slot back anyway
		}
	}
	h.lease = max(slots, h.places)
	if n := len(h.Crowd()); n > 0 {
		h.lease = max(h.lease, h.places+by+n) // they come before the others are gone
	} else if by == 0 {
		return &Ticket{o: &op{body: protocol.OpBody{State: change.Done}}, done: make(chan struct{})}
	}
	// Another change may be before it, and take its slots.
	return h.resize(&protocol.Resize{By: by}, 0, 2*h.longest())
}

// use is how the slots are used just now.
func (h *Head) use() Use {
	u := Use{Has: h.places, Follows: h.ending == "" && h.main != 0 && h.book.Follows(h.main)}
	if u.Wants, u.Least = h.book.Shortage(); u.Wants == 0 && len(h.shorts) > 0 {
		for i := range h.shorts[0].parts {
			part := &h.shorts[0].parts[i]
			u.Wants, u.Least = u.Wants+part.N, u.Least+part.Least()
		}
	}
	if u.Wants > 0 {
		u.Wants, u.Least = u.Has+u.Wants, u.Has+max(1, u.Least)
	}
	return u
}

// noteUse tells how the slots are used, if that has changed.
func (h *Head) noteUse() {
	f := h.cfg.Used
	if f == nil || !h.leased() {
		return
	}
	if u := h.use(); u != h.uses {
		h.uses = u
		h.out = append(h.out, Effect{Call: func() { f(u) }})
	}
}

// said passes on what a process says of its scaling.
func (h *Head) said(col []byte) {
	if f := h.cfg.Said; f != nil && len(col) > 0 {
		col = bytes.Clone(col)
		h.out = append(h.out, Effect{Call: func() { f(col) }})
	}
}
