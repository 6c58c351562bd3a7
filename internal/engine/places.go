// SPDX-License-Identifier: Apache-2.0

package engine

// places are where the persistent collectives of a communicator stand, in the order of their
// Inits. A place is used again, by the next lap over all of them, if its operation was freed on
// all ranks: Free is local, so before a lap goes on in a section of the places the ranks tell
// each other which of them they use there. Guarded by the engine.
type places struct {
	inits  uint64   // places that were looked at, over all laps
	agreed uint64   // up to which it is known which places are in use, from the second lap on
	used   []uint64 // a bit for each place: its operation is not freed here
	passed []uint64 // those of the section: some rank uses it
}

const (
	// MaxPersistent is how many persistent collectives of a communicator there are at once, and
	// PersistentSections in how many sections their places are agreed on.
	MaxPersistent      = 1 << 20
	PersistentSections = MaxPersistent / placesInSection

	placesInSection = 1 << 16
	sectionWords    = placesInSection / 64
)

func hasBit(words []uint64, i uint64) bool {
	return i/64 < uint64(len(words)) && words[i/64]&(1<<(i%64)) != 0
}

// known reports whether a place can be taken.
func (x *places) known() bool { return x.inits < MaxPersistent || x.inits < x.agreed }

// tell returns the words in which the ranks tell each other which places of the next section
// they use, nil if that is known.
func (x *places) tell() []uint64 {
	if x.known() {
		return nil
	}
	words := make([]uint64, sectionWords)
	copy(words, x.used[x.inits%MaxPersistent/64:])
	return words
}

// agree takes in what each rank has told, one after the other. n places from first on are
// never used again.
func (x *places) agree(words []uint64, first, n int) {
	x.passed = make([]uint64, sectionWords)
	for i, w := range words {
		x.passed[i%sectionWords] |= w
	}
	for i := range n {
		if at := first + i - int(x.inits%MaxPersistent); at >= 0 && at < placesInSection {
			x.passed[at/64] |= 1 << (at % 64)
		}
	}
	x.agreed = x.inits + placesInSection
}

// take gives out the next place; again: it was used before. false: the ranks have to agree
// first.
func (x *places) take() (n int, again, ok bool) {
	for x.known() {
		at := x.inits % MaxPersistent
		again = x.inits >= MaxPersistent
		x.inits++
		if again && hasBit(x.passed, at%placesInSection) {
			continue
		}
		if at/64 == uint64(len(x.used)) {
			x.used = append(x.used, 0)
		}
		x.used[at/64] |= 1 << (at % 64)
		return int(at), again, true
	}
	return 0, false, false
}

// uses reports whether an operation has a place.
func (x *places) uses(n int) bool { return hasBit(x.used, uint64(n)) }

// free gives a place back.
func (x *places) free(n int) { x.used[n/64] &^= 1 << (n % 64) }
