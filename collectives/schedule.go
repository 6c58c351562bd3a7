// SPDX-License-Identifier: Apache-2.0

package collectives

import "fmt"

// Op is a collective operation.
type Op uint8

// The operations.
const (
	OpBarrier Op = iota
	OpBcast
	OpReduce
	OpAllreduce
	OpGather
	OpScatter
	OpAllgather
	OpAllgatherv
	OpAlltoall
	numOps
)

var opNames = [numOps]string{"barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "allgatherv", "alltoall"}

// String gives the operation's name in lower case, as ParseOp reads it.
func (o Op) String() string {
	if o < numOps {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// ParseOp returns the operation of that name.
func ParseOp(name string) (Op, error) {
	for o, s := range opNames {
		if s == name {
			return Op(o), nil
		}
	}
	return 0, fmt.Errorf("no collective is called %q", name)
}

// Buffer is one of the three symbolic buffers.
type Buffer uint8

// The buffers of a call.
const (
	// In is what the caller contributes. It is only read.
	In Buffer = iota
	// Out is where the result goes.
	Out
	// Scratch belongs to the call: Algorithm.Scratch elements, undefined at
	// the start.
	Scratch
)

// String gives the buffer's name in lower case.
func (b Buffer) String() string {
	switch b {
	case In:
		return "in"
	case Out:
		return "out"
	case Scratch:
		return "scratch"
	}
	return fmt.Sprintf("buffer(%d)", uint8(b))
}

// Ref is a range of a buffer, in the call's basic elements.
type Ref struct {
	Buf      Buffer
	Off, Len int64
}

// String gives "out[2:5]".
func (r Ref) String() string { return fmt.Sprintf("%v[%d:%d]", r.Buf, r.Off, r.Off+r.Len) }

// Kind is what a step does.
type Kind uint8

// The kinds of step.
const (
	// Send sends A to Peer.
	Send Kind = iota
	// Recv receives A from Peer.
	Recv
	// Reduce combines A and B into B: A op B if Left, else B op A. A and B
	// have the same length.
	Reduce
	// Copy copies A to B, of the same length.
	Copy
)

// Step is one action of a schedule.
type Step struct {
	Kind Kind
	// Left: A is the left operand of Reduce; it comes from lower ranks.
	Left bool
	// Remote: Peer is a rank of the remote group of an intercommunicator.
	Remote bool
	// Peer is a rank of the group, for Send and Recv.
	Peer int32
	A, B Ref
}

// String describes the step for error messages and logs.
func (s Step) String() string {
	group := ""
	if s.Remote {
		group = "remote "
	}
	switch s.Kind {
	case Send:
		return fmt.Sprintf("send %v to %s%d", s.A, group, s.Peer)
	case Recv:
		return fmt.Sprintf("recv %v from %s%d", s.A, group, s.Peer)
	case Reduce:
		if s.Left {
			return fmt.Sprintf("reduce %v = %v op %v", s.B, s.A, s.B)
		}
		return fmt.Sprintf("reduce %v = %v op %v", s.B, s.B, s.A)
	case Copy:
		return fmt.Sprintf("copy %v to %v", s.A, s.B)
	}
	return fmt.Sprintf("step of kind %d", uint8(s.Kind))
}

// Args are the arguments of one call on one rank. All fields but Rank, Displs
// and InPlace are equal on all ranks.
type Args struct {
	Op         Op
	Rank, Size int
	// Root of Bcast, Reduce, Gather and Scatter.
	Root int
	// Count of basic elements: the whole of Bcast, Reduce and Allreduce; one
	// rank's block of Gather, Scatter and Allgather; the block for one pair of
	// Alltoall.
	Count int64
	// Counts and Displs give each rank's block of the v-forms in Out. They
	// have Size entries and belong to the caller; schedules only read them.
	Counts, Displs []int64
	// InPlace: In lies in Out (see the package comment). Ranks may differ.
	InPlace bool
	// Segment is the piece of pipelined algorithms, in elements; 0 means the
	// algorithm's own choice.
	Segment int64
}

// InLen is the length of In on this rank, in elements.
func (a *Args) InLen() int64 {
	switch a.Op {
	case OpReduce, OpAllreduce, OpGather, OpAllgather:
		return a.Count
	case OpAllgatherv:
		return a.Counts[a.Rank]
	case OpScatter:
		if a.Rank == a.Root {
			return a.Count * int64(a.Size)
		}
	case OpAlltoall:
		return a.Count * int64(a.Size)
	}
	return 0
}

// OutLen is the length of Out on this rank, in elements: the end of the last
// block for v-forms.
func (a *Args) OutLen() int64 {
	switch a.Op {
	case OpBcast, OpAllreduce, OpScatter:
		return a.Count
	case OpReduce:
		if a.Rank == a.Root {
			return a.Count
		}
	case OpGather:
		if a.Rank == a.Root {
			return a.Count * int64(a.Size)
		}
	case OpAllgather, OpAlltoall:
		return a.Count * int64(a.Size)
	case OpAllgatherv:
		end := int64(0)
		for i, n := range a.Counts {
			if n > 0 {
				end = max(end, a.Displs[i]+n)
			}
		}
		return end
	}
	return 0
}

// own is the place of In in Out of a rank that is in place.
func (a *Args) own() int64 {
	switch a.Op {
	case OpGather, OpAllgather:
		return a.Count * int64(a.Rank)
	case OpAllgatherv:
		return a.Displs[a.Rank]
	}
	return 0
}
