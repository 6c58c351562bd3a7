// SPDX-License-Identifier: Apache-2.0

package engine

import "gompi/internal/nodecoll"

// Persistent collectives stand in places, in the order of their Inits, and a place is used
// again: by the next lap, of maxPersistent Inits, if its operation was freed on all ranks.
// Free is local, so before a lap goes on in a section of the places the ranks tell each other
// which of them they use there. Those of rings are not used again: see line.go.

// places are those of a communicator. Guarded by the engine.
type places struct {
	inits  uint64   // places that were looked at, over all laps
	agreed uint64   // the first inits for which it is not known which places are in use
	used   []uint64 // a bit for each place: its operation is not freed here
	passed []uint64 // those of the section: some rank uses it
}

const (
	// MaxPersistent is how many persistent collectives of a communicator there are at once, and
	// PersistentSections in how many sections their places are agreed on.
	MaxPersistent      = maxPersistent
	PersistentSections = maxPersistent / placesInSection

	// placesInSection is how many places the ranks tell each other of at once.
	placesInSection = 1 << 16
	sectionWords    = placesInSection / 64
)

func hasBit(words []uint64, i uint64) bool {
	return i/64 < uint64(len(words)) && words[i/64]&(1<<(i%64)) != 0
}

// PersistentPlaces returns the words in which the ranks tell each other, before the next
// NumberPersistent, which places they use. nil: they need not.
func (c *Context) PersistentPlaces() []uint64 {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	x := &c.places
	if x.inits < maxPersistent || x.inits < x.agreed {
		return nil
	}
	words := make([]uint64, sectionWords)
	first := x.inits % maxPersistent / 64
	copy(words, x.used[min(first, uint64(len(x.used))):])
	return words
}

// AgreePlaces takes in what each rank has told in PersistentPlaces, one after the other.
func (c *Context) AgreePlaces(words []uint64) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	x := &c.places
	x.passed = make([]uint64, sectionWords)
	for i, w := range words {
		x.passed[i%sectionWords] |= w
	}
	x.agreed = x.inits + placesInSection
	first := x.inits % maxPersistent
	for i := range uint64(placesInSection) {
		if at := int(first+i) - c.ringFrom; c.ringFrom >= 0 && at >= 0 && at < nodecoll.PersistentRings {
			x.passed[i/64] |= 1 << (i % 64)
		}
	}
}

// takePlace gives the next place to an operation. false: the rest of the section is used.
func (c *Context) takePlace() (n int, ok bool) {
	x := &c.places
	for x.inits < maxPersistent || x.inits < x.agreed {
		at := x.inits % maxPersistent
		again := x.inits >= maxPersistent
		x.inits++
		if again && hasBit(x.passed, at%placesInSection) {
			continue
		}
		if again {
			c.starts[at] = 0
		} else {
			c.starts = append(c.starts, 0)
		}
		if at/64 == uint64(len(x.used)) {
			x.used = append(x.used, 0)
		}
		x.used[at/64] |= 1 << (at % 64)
		return int(at), true
	}
	return 0, false
}

// FreePersistent gives back what NumberPersistent gave, when the operation is freed here.
func (c *Context) FreePersistent(t CollTag) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	n := uint64(t-1) & seqMask >> startBits
	c.places.used[n/64] &^= 1 << (n % 64)
}
