// SPDX-License-Identifier: Apache-2.0

package shm

import "gompi/internal/distance"

// A ring is wide when more of it is in use than a processor's own cache holds. Then the
// lines that the sender is about to write, which the peer has read a lap before, and those
// that the peer reads come from the cache that the processors share: from another one's
// own cache they come at a third of that rate. docs/design/031-near-and-far.md.

const (
	// A ring is made wide after wideAfter messages of wideLeast and more.
	wideLeast = 1 << 10
	wideAfter = 64
	// mostWide is how many rings of a process are.
	mostWide = 8
	// wideHot is hotBytes of a wide ring.
	wideHot = 1 << 10
	// narrowStream is from where on payloads of a stream go past the cache in one that is
	// not wide, also to a near processor.
	narrowStream = 8 << 10
)

// wideRing is how long a data ring is that can be wide on this machine.
func wideRing() int64 { return min(max(2*distance.OwnCache(), 2*streamBytes), 4<<20) }

// long counts what would be faster in a wide ring.
func (t *Transport) long(c *conn) {
	if c.longs++; c.longs >= wideAfter {
		t.widen(&c.out)
	}
}

// widen makes a ring wide if it is long enough, there is memory for it, not too many of this
// process's are, and processes do not take turns on processors, whose caches hold what
// others need then.
func (t *Transport) widen(o *outRing) {
	o.widened = true
	if o.box == nil || t.wide >= mostWide || t.crowded.Load() || !t.extend(o, uint32(len(o.data))) {
		return
	}
	o.stretched, o.wide, o.hot = true, true, wideHot
	t.wide++
}
