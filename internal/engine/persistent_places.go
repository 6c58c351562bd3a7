// SPDX-License-Identifier: Apache-2.0

package engine

// persistentPlaces has the places of a communicator's persistent collectives, in the order
// of their Inits. After all places were used once, a new lap over them begins: it reuses a
// place if all ranks have freed its operation. Free is local, so before a lap goes through
// a section of the places, the ranks exchange which of them are in use. The engine's lock
// guards all fields.
type persistentPlaces struct {
	inits  uint64   // places that take has passed, over all laps
	agreed uint64   // places whose use is known to all ranks, from the second lap on
	used   []uint64 // a bit for each place: its operation is not freed on this rank
	passed []uint64 // a bit for each place of the section: a rank uses it
}

const (
	// MaxPersistent is the largest number of persistent collectives of a communicator at
	// one time. PersistentSections is the number of sections in which their places are
	// agreed on.
	MaxPersistent      = 1 << 20
	PersistentSections = MaxPersistent / placesInSection

	placesInSection = 1 << 16
	sectionWords    = placesInSection / 64
)

func hasBit(words []uint64, i uint64) bool {
	return i/64 < uint64(len(words)) && words[i/64]&(1<<(i%64)) != 0
}

// known reports whether take can return a place.
func (x *persistentPlaces) known() bool { return x.inits < MaxPersistent || x.inits < x.agreed }

// tell returns this rank's used places in the next section, for the exchange, or nil if no
// exchange is due.
func (x *persistentPlaces) tell() []uint64 {
	if x.known() {
		return nil
	}
	words := make([]uint64, sectionWords)
	copy(words, x.used[x.inits%MaxPersistent/64:])
	return words
}

// agree takes the used places of all ranks, one after the other. n places from first on are
// never reused.
func (x *persistentPlaces) agree(words []uint64, first, n int) {
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

// take allocates the next place. again says that it was used before. If ok is false the
// ranks must agree first.
func (x *persistentPlaces) take() (n int, again, ok bool) {
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
func (x *persistentPlaces) uses(n int) bool { return hasBit(x.used, uint64(n)) }

// free returns a place.
func (x *persistentPlaces) free(n int) { x.used[n/64] &^= 1 << (n % 64) }
