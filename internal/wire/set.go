// SPDX-License-Identifier: Apache-2.0

package wire

// Set is a process set: an immutable, ordered, named list of processes that
// the head serves.
type Set struct {
	// URI is its name: "gompi://job/7", or an alias such as "mpi://WORLD".
	URI string
	// Number is unique in the job; the communicator that comes with the set
	// has the context id {head, Number}.
	Number  uint32
	Members Members
	// Hosts says where the members are, or were.
	Hosts Hosts
}

// Context is the id of the communicator that comes with the set. Its creator
// is the head of the job that made the set.
func (s Set) Context(job JobID) ContextID {
	return ContextID{Creator: ProcID{Job: job}, Serial: s.Number}
}
