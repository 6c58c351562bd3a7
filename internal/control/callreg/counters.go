// SPDX-License-Identifier: Apache-2.0

package callreg

// Counters count what a process has sent and received since its start. They are in its segment,
// next to the registry. The owner counts by plain additions under a lock of its own, because an
// atomic addition costs 5 ns. A reader in another process sees each number whole, but the
// numbers may be of different moments.
type Counters struct {
	// Messages between processes: of point-to-point operations, and the steps of collectives that
	// use messages. Bytes count the data.
	Sent, SentBytes         uint64
	Received, ReceivedBytes uint64
	// Collectives counts calls, whether or not they use messages.
	Collectives uint64
}

// Counters returns the counters for the owner to increment.
func (b *Registry) Counters() *Counters { return countersOf(b.words) }

// ReadCounters reads the counters in mem, the memory of another process; see Read. They are
// zero if mem is not a registry.
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

// Numbers returns the counters in the order of the layout.
func (t *Counters) Numbers() [5]*uint64 {
	return [...]*uint64{&t.Sent, &t.SentBytes, &t.Received, &t.ReceivedBytes, &t.Collectives}
}
