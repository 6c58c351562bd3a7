// SPDX-License-Identifier: Apache-2.0

package wire

// Set is a process set: an immutable, ordered list of processes with a name. The head
// of the job serves it.
type Set struct {
	// URI is the name of the set: "gompi://job/7", or an alias such as "mpi://WORLD".
	URI string
	// Number is unique in the job; Context uses it.
	Number  uint32
	Members Members
	// Hosts lists the hosts of the members, also of members that have ended.
	Hosts Hosts
}

// A set has SetSerials context ids of its own, on which its members need not agree
// first. So the low bits of a serial are free, and MaxSet bounds the numbers of sets.
const (
	setBits    = 3
	SetSerials = 1 << setBits
	MaxSet     = MaxSerial >> setBits
)

// Context returns the id of communicator k of the set, 0 <= k < SetSerials. Its
// creator is the head of the job that made the set.
func (s Set) Context(job JobID, k uint32) ContextID {
	return ContextID{Creator: ProcID{Job: job}, Serial: s.Number<<setBits | k}
}
