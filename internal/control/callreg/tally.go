// SPDX-License-Identifier: Apache-2.0

package callreg

// Tally is what a process has sent and received since it began, in its segment beside
// the roll call. Its owner counts by plain additions, under a lock of its own, as an
// atomic one takes 5 ns; who reads it in another process sees each number whole, and
// one behind another.
type Counters struct {
	// Messages between processes: of point-to-point operations, and steps of
	// collectives that go by messages. Bytes are those of the data.
	Sent, SentBytes         uint64
	Received, ReceivedBytes uint64
	// Collectives are calls, however they go.
	Collectives uint64
}

// Tally is where the owner counts.
func (b *Registry) Counters() *Counters { return countersOf(b.words) }

// ReadTally reads that in mem, which is that of another process: see Read. Anything that
// is no book has counted nothing.
func ReadCounters(mem []byte) (t Counters) {
	w := registryIn(mem)
	if w == nil {
		return Counters{}
	}
	for i, n := range t.Numbers() {
		*n = w[offCounters/8+i].Load()
	}
	return t
}

// Numbers are those of t in the order of the layout.
func (t *Counters) Numbers() [5]*uint64 {
	return [...]*uint64{&t.Sent, &t.SentBytes, &t.Received, &t.ReceivedBytes, &t.Collectives}
}
