// SPDX-License-Identifier: Apache-2.0

package match

import (
	"slices"

	"gompi/internal/base/wire"
)

// slow is the table's dumb twin: two slices and linear scans. Receives and
// messages are the caller's numbers.
type slow struct {
	posted, arrived []slowEntry
}

type slowEntry struct {
	id int
	slowKey
}

// slowKey has a field for each part, so that it does not share Key's packing.
type slowKey struct {
	context     wire.ContextID
	plane       wire.TrafficClass
	source, tag int32
}

func (k slowKey) key() Key { return NewKey(k.context, k.plane, k.source, k.tag) }

// fits reports whether a receive with key k may have message m.
func (k slowKey) fits(m slowKey) bool {
	return k.context == m.context && k.plane == m.plane &&
		(k.source == Any || k.source == m.source) && (k.tag == Any || k.tag == m.tag)
}

// none is the answer "nothing matched".
const none = -1

func (t *slow) post(id int, k slowKey) int {
	m := t.peek(k)
	if m == none {
		t.posted = append(t.posted, slowEntry{id, k})
	} else {
		t.take(m)
	}
	return m
}

// arrive answers like Arrive, and keeps the message if nothing fits.
func (t *slow) arrive(id int, k slowKey) int {
	i := slices.IndexFunc(t.posted, func(e slowEntry) bool { return e.fits(k) })
	if i < 0 {
		t.arrived = append(t.arrived, slowEntry{id, k})
		return none
	}
	p := t.posted[i].id
	t.posted = slices.Delete(t.posted, i, i+1)
	return p
}

func (t *slow) peek(k slowKey) int {
	for _, e := range t.arrived {
		if k.fits(e.slowKey) {
			return e.id
		}
	}
	return none
}

func (t *slow) take(id int) {
	t.arrived = slices.DeleteFunc(t.arrived, func(e slowEntry) bool { return e.id == id })
}

func (t *slow) withdraw(id int) bool {
	n := len(t.posted)
	t.posted = slices.DeleteFunc(t.posted, func(e slowEntry) bool { return e.id == id })
	return len(t.posted) < n
}

// drop removes the messages of a context, plane by plane.
func (t *slow) drop(c wire.ContextID) []int {
	var out []int
	for pl := range wire.TrafficClass(wire.NumTraffic) {
		for _, e := range t.arrived {
			if e.context == c && e.plane == pl {
				out = append(out, e.id)
			}
		}
	}
	t.arrived = slices.DeleteFunc(t.arrived, func(e slowEntry) bool { return e.context == c })
	return out
}

func ids(es []slowEntry) []int {
	out := make([]int, len(es))
	for i, e := range es {
		out[i] = e.id
	}
	return out
}
