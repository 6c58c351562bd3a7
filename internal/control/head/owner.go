// SPDX-License-Identifier: Apache-2.0

package head

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// owner is what the book of operations knows of sets and processes: the head. It is
// called in the midst of a step of the book's and does not call it.
type owner struct{ h *Head }

func (o owner) Members(set uint32) ([]wire.ProcID, bool) {
	t := o.h.sets[set]
	if t == nil {
		return nil, false
	}
	return slices.Collect(seconds(t.members.All())), true
}

func (o owner) Main() uint32 { return o.h.main }

// Came is the world of a newcomer, which is of a change until that is committed.
func (o owner) Came(id wire.ProcID) uint32 {
	p := o.h.proc(id)
	if p == nil {
		return 0
	}
	t := o.h.sets[p.world]
	if t == nil || t.origin == nil || t.origin.op == 0 || o.h.turnedDown(p) {
		return 0
	}
	return p.world
}

func (o owner) Lives(p wire.ProcID) bool { return o.h.takesPart(p) }

func (o owner) Most() int { return cmp.Or(o.h.cfg.Slots, math.MaxInt32) }

func (o owner) Room() int {
	most := o.Most()
	if o.h.leased() {
		most = min(most, o.h.lease)
	}
	return most - o.h.places
}

// RoomOn is without a bound where hosts take more than their slots.
func (o owner) RoomOn(on []uint32) (free, ever int) {
	if !o.h.cfg.Strict {
		return math.MaxInt32, math.MaxInt32
	}
	for i := range o.h.hosts {
		if at := uint32(i); !o.h.hosts[i].lost && (on == nil || slices.Contains(on, at)) {
			n := o.h.slots(at)
			free, ever = free+max(0, n-o.h.hosts[i].taken()), ever+n
		}
	}
	return free, ever
}

// Reserve names processes. They have no places on a host before Bind.
func (o owner) Reserve(wants []change.Want) ([]wire.ProcID, error) {
	if err := o.Starts(wants); err != nil {
		return nil, err
	}
	h := o.h
	var places []Place
	for _, w := range wants {
		more, err := h.placeOn(w.N, w.On, w.Place)
		if err != nil {
			h.Unplace(places)
			return nil, err
		}
		places = append(places, more...)
	}
	return h.reserve(places), nil
}

// Host is where a process is.
func (o owner) Host(p wire.ProcID) uint32 {
	if q := o.h.proc(p); q != nil {
		return q.host
	}
	return wire.NoHost
}

func (o owner) Define(members []wire.ProcID) uint32 {
	number := o.h.newSet(wire.MembersOf(members...)).Number
	o.h.hold(number)
	return number
}

func (o owner) Hold(set uint32) { o.h.hold(set) }

func (o owner) Replace(set, result uint32) {
	h := o.h
	h.moveFollow(set, result)
	if set == h.main {
		h.setMain(result)
	}
}

// Stays reports whether the followers of the set have asked that it lives on beside results.
func (o owner) Stays(set uint32) bool {
	f := o.h.follows[set]
	return f != nil && f.options.Stay
}

func (o owner) Successor(set uint32) uint32 {
	if t := o.h.sets[set]; t != nil {
		return t.successor
	}
	return 0
}

// Fits holds the main set to its bounds.
func (o owner) Fits(set uint32, size int) error {
	least, most := o.h.cfg.Min, o.h.cfg.Max
	switch {
	case set != o.h.main || size >= least && (most == 0 || size <= most):
		return nil
	case most == 0:
		return protocol.Refused("the main set would have %d processes: at least %d are allowed (--min)", size, least)
	}
	return protocol.Refused("the main set would have %d processes: %d to %d are allowed (--min, --max)", size, least, most)
}

func (o owner) Starts(wants []change.Want) error {
	h, n := o.h, 0
	for _, w := range wants {
		n += w.N
	}
	switch {
	case !h.cfg.Launches:
		return errNoStarts
	case n > protocol.MaxSpawn:
		return fmt.Errorf("cannot start %d processes at once, only 1 to %d", n, protocol.MaxSpawn)
	case !h.roomFor(n):
		return h.noRoom(n)
	}
	for _, w := range wants {
		if err := h.neverOn(w.N, h.left(w.On)); err != nil && w.N > 0 {
			return err
		}
	}
	return nil
}

var errNoStarts = protocol.Refused("this launcher starts no further processes")

// Terms are those of who follows the sets, or the job's.
func (o owner) Terms(sets []uint32) change.Terms {
	t := change.Terms{}
	for _, s := range sets {
		if f := o.h.follows[s]; f != nil {
			t.Prepare = t.Prepare || f.options.Prepare
			t.ToReady = max(t.ToReady, f.options.ToReady)
			t.ToAccept = max(t.ToAccept, f.options.ToAccept)
			t.ToCommit = max(t.ToCommit, f.options.ToCommit)
		}
	}
	t.ToReady = cmp.Or(t.ToReady, deadline(o.h.cfg.ToReady))
	t.ToAccept = cmp.Or(t.ToAccept, deadline(o.h.cfg.ToAccept))
	t.ToCommit = cmp.Or(t.ToCommit, deadline(o.h.cfg.ToCommit))
	return t
}

// longest is how long a change takes at most, as the job has it: from the grant to the
// decision, if nothing of it moves and nobody reports; 0: there is no such bound.
func (h *Head) longest() time.Duration {
	ready, accept, commit := deadline(h.cfg.ToReady), deadline(h.cfg.ToAccept), deadline(h.cfg.ToCommit)
	if ready == 0 || accept == 0 || commit == 0 {
		return 0
	}
	return ready + accept + commit
}

// deadline is a configured one; 0: there is none.
func deadline(d time.Duration) time.Duration {
	return max(0, cmp.Or(d, time.Minute))
}

// seconds are the second values of a sequence.
func seconds[K, V any](seq iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range seq {
			if !yield(v) {
				return
			}
		}
	}
}
