// SPDX-License-Identifier: Apache-2.0

package shm

import "gompi/internal/host/cachedist"

// A ring is streaming when more of it is in use than a processor's own cache holds. Then
// the lines that the sender is about to write, which the peer has read a lap before, come
// from the cache that the processors share, and so do the lines that the peer reads. From
// another processor's own cache they come at a third of that rate.
// docs/design/037-shm-policies.md.

const (
	// A ring becomes streaming after streamingAfter messages of at least streamingMinLen.
	streamingMinLen = 1 << 10
	streamingAfter  = 64
	// maxStreaming is the largest number of streaming rings of a process.
	maxStreaming = 8
	// streamingReuse takes the place of residentBytes in a streaming ring.
	streamingReuse = 1 << 10
	// nonTemporalMin is the length from which payloads of a stream are written with
	// non-temporal stores, also to a near processor, in a ring that is not streaming or is
	// evicted.
	nonTemporalMin = 8 << 10
	// A streaming ring counts as evicted when evictedProbes more probes have missed the
	// shared cache than twice those that have hit it. It is used as a whole again after
	// retryFirst payloads. If it is evicted again before manyLaps, the wait doubles, up to
	// retryMost.
	evictedProbes = 12
	manyLaps      = 16
	retryFirst    = 8 << 10
	retryMost     = 1 << 20
)

// residency says whether a streaming ring stays in the cache that the processors share. If
// the application's own data evict it within a lap, each lap comes from memory (4 KiB: 0.9
// us one way instead of 0.5 at the beginning of the ring). Then the sender reuses the
// beginning, as in a ring that is not streaming.
type residency struct {
	meter        cachedist.Meter
	evicted      bool
	score        int // probes that missed the cache, less twice those that hit it
	written      int // bytes written since the ring is used as a whole
	waitPayloads int // payloads until it is used as a whole again
	nextWait     int // the next value of waitPayloads
}

// streamingRingBytes returns the length of a data ring that can stream on this machine.
func streamingRingBytes() int64 {
	return min(max(2*cachedist.PrivateCacheBytes(), 2*streamBytes), 4<<20)
}

// countLong counts messages that would be faster in a streaming ring.
func (t *Transport) countLong(c *conn) {
	if c.longs++; c.longs >= streamingAfter {
		t.makeStreaming(&c.out)
	}
}

// makeStreaming makes a ring streaming if it is long enough, there is memory for it, and
// this process has few of them. Where processes share processors it does not: their caches
// then hold other processes' data.
func (t *Transport) makeStreaming(o *outRing) {
	o.streamingDecided = true
	if o.box == nil || t.streamingRings >= maxStreaming || t.oversubscribed.Load() || !t.extend(o, uint32(len(o.data))) {
		return
	}
	o.stretched, o.streaming, o.choices = true, true, new(pathChoices)
	o.useWhole()
	t.streamingRings++
}

// useWhole uses all of a streaming ring.
func (o *outRing) useWhole() {
	w := &o.residency
	w.evicted, w.score, w.written, w.meter = false, 0, 0, cachedist.Meter{}
	o.wrapAt, o.reuseMax = o.span, streamingReuse
}

// probeResidency measures now and then, from the second lap on, whether the place where n
// bytes are about to be written is in the cache.
func (o *outRing) probeResidency(to []byte, n int) {
	w := &o.residency
	if w.evicted {
		if w.waitPayloads--; w.waitPayloads <= 0 || o.distance.Far() {
			o.useWhole()
		}
		return
	}
	size := len(o.data)
	w.written += max(n, int(grain(n, uint32(size))))
	if w.written < size || !o.distance.Near() { // a far processor takes long in any case
		return
	}
	// Processors prefetch the first lines when they work on the page before.
	if w.meter.Probe(to[n/2:]) && w.observe(w.meter.LastFar(), w.written/size) {
		o.useStart()
	}
}

// useStart uses only the beginning of a streaming ring.
func (o *outRing) useStart() { o.wrapAt, o.reuseMax = min(o.span, firstData), residentBytes }

// observe records the result of a probe in some lap. It reports whether the ring is
// evicted.
func (w *residency) observe(cold bool, lap int) bool {
	if lap >= manyLaps {
		w.nextWait = 0
	}
	if !cold {
		w.score = max(0, w.score-2)
		return false
	}
	if w.score++; w.score < evictedProbes {
		return false
	}
	w.nextWait = min(max(2*w.nextWait, retryFirst), retryMost)
	w.evicted, w.waitPayloads = true, w.nextWait
	return true
}
