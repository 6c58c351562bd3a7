// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"gompi/internal/base/wire"
	"gompi/transport"
)

var _ transport.Checker = (*Transport)(nil)

// Check implements transport.Checker. If a slot was damaged before it was read, its reader
// waits for ever. A later message shows the damage; Check sends one if there was none.
func (t *Transport) Check() {
	for _, c := range t.conns {
		if c == nil || c.state != connUp {
			continue
		}
		if r := c.in; r != nil {
			if r.damaged() {
				t.offend(c)
				continue
			}
			if !r.dirty {
				r.publish(r.seq - 1) // the word may have been damaged
			}
		}
		if o := &c.out; o.pos != o.checked && c.controls.len() == 0 && o.room(0) {
			o.put(kindCheck, &wire.Header{}, nil)
			o.checked = o.pos
		}
	}
}

// damaged reports whether the next message can never be read: its slot shows neither an
// older lap's word nor 0, or a later message is already there. The next message is written
// before a later one, so its slot is checked once more.
func (r *inRing) damaged() bool {
	if r.comes() {
		return false
	}
	n := uint32(len(r.slots))
	// A message in the duplex line has left its slot unchanged.
	if w := uint32(r.next.Load() >> 32); w != 0 && w != r.seq && (int32(w-r.seq) > 0 || (r.seq-w)%n != 0) {
		return true
	}
	for k := uint32(1); k < n; k++ {
		if uint32(r.slots[(r.seq-1+k)&(n-1)].word.Load()>>32) == r.seq+k {
			return !r.comes()
		}
	}
	return false
}
