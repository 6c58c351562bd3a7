// SPDX-License-Identifier: Apache-2.0

package wire

// Set is a process set: an immutable, ordered, named list of processes that
// the head serves.
type Set struct {
	// URI is its name: "gompi://job/7", or an alias such as "mpi://WORLD".
	URI string
	// Number is unique in the job; see Context.
	Number  uint32
	Members Members
	// Hosts says where the members are, or were.
	Hosts Hosts
}

// Of each set so many communicators have ids that its members need not agree on, and
// so numbers of sets end at MaxSet.
const (
	setBits    = 3
	SetSerials = 1 << setBits
	MaxSet     = MaxSerial >> setBits
)

// Context is the id of the k-th communicator of the set, 0 <= k < SetSerials. Its
// creator is the head of the job that made the set.
func (s Set) Context(job JobID, k uint32) ContextID {
	return ContextID{Creator: ProcID{Job: job}, Serial: s.Number<<setBits | k}
}
