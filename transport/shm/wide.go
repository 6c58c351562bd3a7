// SPDX-License-Identifier: Apache-2.0

package shm

import "gompi/internal/host/cachedist"

// A ring is wide when more of it is in use than a processor's own cache holds. Then the
// lines that the sender is about to write, which the peer has read a lap before, and those
// that the peer reads come from the cache that the processors share: from another one's
// own cache they come at a third of that rate. docs/design/037-shm-policies.md.

const (
	// A ring is made wide after wideAfter messages of wideLeast and more.
	wideLeast = 1 << 10
	wideAfter = 64
	// mostWide is how many rings of a process are.
	mostWide = 8
	// wideHot is hotBytes of a wide ring.
	wideHot = 1 << 10
	// narrowStream is from where on payloads of a stream go past the cache in one that is
	// not wide, or not used so, also to a near processor.
	narrowStream = 8 << 10
	// A wide ring is cold if coldLooks more looks found it so than twice those that did not.
	// It is used as a whole again after retryFirst payloads, and after twice as many, up to
	// retryMost, each time that it is found so before manyLaps.
	coldLooks  = 12
	manyLaps   = 16
	retryFirst = 8 << 10
	retryMost  = 1 << 20
)

// warmth is whether a wide ring stays in the cache that the processors share. Where the
// application's own data drives it out before it is gone around, each lap is fetched from
// memory (4 KiB: 0.9 us one way, against 0.5 at the beginning of the ring), and the sender
// goes back to the beginning as it does in one that is not wide.
type warmth struct {
	meter  cachedist.Meter
	cold   bool
	score  int // looks that found it so, less twice the others
	walked int // bytes since it is used as a whole
	wait   int // payloads until it is again
	rest   int // what wait begins with the next time
}

// wideRing is how long a data ring is that can be wide on this machine.
func wideRing() int64 { return min(max(2*cachedist.PrivateCacheBytes(), 2*streamBytes), 4<<20) }

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
	o.stretched, o.wide, o.choices = true, true, new(choices)
	o.spread()
	t.wide++
}

// spread uses a wide ring as a whole.
func (o *outRing) spread() {
	w := &o.warmth
	w.cold, w.score, w.walked, w.meter = false, 0, 0, cachedist.Meter{}
	o.turn, o.hot = o.span, wideHot
}

// feel finds out now and then whether the ring is cold where n bytes are about to be
// written, from its second lap on.
func (o *outRing) feel(to []byte, n int) {
	w := &o.warmth
	if w.cold {
		if w.wait--; w.wait <= 0 || o.distance.Far() {
			o.spread()
		}
		return
	}
	size := len(o.data)
	w.walked += max(n, int(grain(n, uint32(size))))
	if w.walked < size || !o.distance.Near() { // from a far one it takes long, cold or not
		return
	}
	// Processors fetch the first lines ahead when they are at the page before.
	if w.meter.Probe(to[n/2:]) && w.found(w.meter.LastFar(), w.walked/size) {
		o.chill()
	}
}

// chill uses a wide ring as one that is not.
func (o *outRing) chill() { o.turn, o.hot = min(o.span, firstData), hotBytes }

// found takes in what a look in some lap has found. It reports whether the ring is cold.
func (w *warmth) found(cold bool, lap int) bool {
	if lap >= manyLaps {
		w.rest = 0
	}
	if !cold {
		w.score = max(0, w.score-2)
		return false
	}
	if w.score++; w.score < coldLooks {
		return false
	}
	w.rest = min(max(2*w.rest, retryFirst), retryMost)
	w.cold, w.wait = true, w.rest
	return true
}
