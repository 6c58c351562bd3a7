// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"gompi/internal/engine/shmcoll"
)

// Collective calls of a communicator are numbered. The number is the tag of
// their messages:
//
//	bit 30 clear   bits 0..29: the position among the collective calls
//	bit 30 set     bits 10..29: the place of a persistent collective, mostly the
//	               position of its Init among the Inits; bits 0..9: its starts
//
// So ranks may Start persistent collectives in different orders. Starts may
// wrap: messages of one tag and pair of ranks are matched in order. A place is
// used again after all ranks have freed its operation.
const (
	persistBit = 1 << 30
	startBits  = 10
	startMask  = 1<<startBits - 1
	seqMask    = persistBit - 1
)

// CollTag is the number of a collective call that was numbered before its start. Zero means
// that the start numbers it.
type CollTag uint32

// numbered reports whether NumberColl made t.
func (t CollTag) numbered() bool { return t != 0 && (t-1)&persistBit == 0 }

// NextColl returns the number of the next collective call of this process.
func (c *Context) NextColl() int64 {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return int64(c.collSeq)
}

// NumberColl numbers a call that will be started later, and once. It may be called after
// the context was freed, if another operation is pending until then.
func (c *Context) NumberColl() CollTag {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	tag := c.nextColl()
	if len(c.numbered) == maxEarly {
		// Calls that the ranks did not agree on never start.
		if t := c.faults; t != nil {
			t.takeEarly(c.numbered[0])
		}
		c.numbered = slices.Delete(c.numbered, 0, 1)
	}
	c.numbered = append(c.numbered, tag)
	return CollTag(tag) + 1
}

// NumberPersistent numbers a persistent collective at its Init; every start is counted from
// here. It returns 0 if the ranks must first agree on places: see PersistentPlaces.
func (c *Context) NumberPersistent() CollTag {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	n, again, ok := c.places.take()
	switch {
	case !ok:
		return 0
	case again:
		c.starts[n] = 0
	default:
		c.starts = append(c.starts, 0)
	}
	if c.ringFrom < 0 && !again && int64(c.collSeq) >= int64(c.shareFrom) {
		c.ringFrom = n
	}
	return CollTag(persistBit|n<<startBits) + 1
}

// PersistentPlaces returns the words that the ranks exchange before the next
// NumberPersistent: which places each of them uses. Nil means that no exchange is needed.
func (c *Context) PersistentPlaces() []uint64 {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.places.tell()
}

// AgreePlaces takes the PersistentPlaces of all ranks, one after the other. Places that
// have a slot ring are never used again: see coll_queue.go.
func (c *Context) AgreePlaces(words []uint64) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	rings := shmcoll.PersistentRings
	if c.ringFrom < 0 {
		rings = 0
	}
	c.places.agree(words, c.ringFrom, rings)
}

// FreePersistent returns the place of NumberPersistent when this rank frees the operation.
func (c *Context) FreePersistent(t CollTag) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.places.free(int((t - 1) & seqMask >> startBits))
}

func (c *Context) nextColl() int32 {
	tag := int32(c.collSeq & seqMask)
	if c.collSeq++; c.collSeq%shmcoll.RenewEvery == 0 {
		c.renewArea()
		c.renewNode()
	}
	return tag
}

// renewArea keeps the area in step with the numbers of calls: it sees only some of the
// calls.
func (c *Context) renewArea() {
	b := c.area
	if b == nil {
		b = c.voted
	}
	if b == nil {
		return
	}
	last := uint32(0)
	if c.blocking == nil && len(c.numbered) == 0 {
		last = uint32((c.collSeq - 1) & seqMask) // the number before the one of this call
	}
	b.Renew(last)
}

// collTag returns the tag of a call that starts now.
func (c *Context) collTag(t CollTag) int32 {
	if t == 0 {
		return c.nextColl()
	}
	tag := int32(t - 1)
	if tag&persistBit == 0 {
		if i := slices.Index(c.numbered, tag); i >= 0 {
			c.numbered = slices.Delete(c.numbered, i, i+1)
		}
		return tag
	}
	n := tag & seqMask >> startBits
	tag |= int32(c.starts[n] & startMask)
	c.starts[n]++
	return tag
}

// ahead reports whether this rank may still start a call with that tag.
func (c *Context) ahead(tag int32) bool {
	switch {
	case slices.Contains(c.numbered, tag):
		return true
	case c.faults != nil && c.faults.freed:
		return false
	case tag&persistBit == 0:
		return (uint64(tag)-c.collSeq)&seqMask <= seqMask/2
	}
	n := int(tag & seqMask >> startBits)
	return n >= len(c.starts) || !c.places.uses(n) || (uint64(tag)-c.starts[n])&startMask < startMask/2
}

// The tags have room for all places.
const _ = uint(persistBit>>startBits - MaxPersistent)

// Every tag of a call has a number in an area.
const _ = uint(shmcoll.SeqMask - seqMask)
