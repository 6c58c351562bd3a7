// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"fmt"
	"strings"
)

// Program is what P ranks do: one global sequence of events. Every rank
// executes its part of the events in this order and completes what it started
// nonblocking no later than the event that is named as due. That order is why
// no program can deadlock: whoever waits at an event waits for somebody who is
// at an earlier one.
type Program struct {
	Seed   uint64
	Ranks  int
	Events []Event
}

// The communicators that exist from the start. Dup events make others, which
// are numbered by the event's ID.
const (
	World = 0
	// Wild is a duplicate of World that carries nothing but messages which are
	// received with both wildcards.
	Wild = 1
	// FirstEvent is the smallest ID of an event.
	FirstEvent = 2
)

// Never is due when the program ends.
const Never = 1 << 30

// Kind is what an event is.
type Kind uint8

// The kinds of events.
const (
	// Message: one message from From to To, received by exact source.
	Message Kind = iota + 1
	// Group: the messages of Parts to To, received from any source, in the
	// communicator Wild with any tag.
	Group
	// Exchange: every rank of Ring sends to the next and receives from the one
	// before, with Sendrecv.
	Exchange
	// Collective: of all ranks.
	Collective
	// Dup makes the communicator ID out of Comm. Of all ranks.
	Dup
	// Withdraw: To posts a receive that nothing matches and takes it back.
	Withdraw
)

var kindNames = [...]string{
	Message: "message", Group: "group", Exchange: "exchange", Collective: "collective", Dup: "dup", Withdraw: "withdraw",
}

// String is the kind's name.
func (k Kind) String() string { return kindNames[k] }

// SendHow is how a message is sent.
type SendHow uint8

// The ways to send.
const (
	Send SendHow = iota
	Isend
	Ssend
	Issend
	Bsend
	SendPersistent
	// SendRetry cancels the send, and repeats it if that succeeded.
	SendRetry
	numSends
)

var sendNames = [...]string{
	Send: "Send", Isend: "Isend", Ssend: "Ssend", Issend: "Issend", Bsend: "Bsend",
	SendPersistent: "SendInit", SendRetry: "Isend+Cancel",
}

// String is the name of the call.
func (h SendHow) String() string { return sendNames[h] }

// RecvHow is how a message is received.
type RecvHow uint8

// The ways to receive.
const (
	Recv RecvHow = iota
	Irecv
	ProbeRecv
	IprobeRecv
	MprobeMrecv
	ImprobeImrecv
	RecvNew
	RecvPersistent
	// RecvRetry cancels the receive, and repeats it if that succeeded.
	RecvRetry
	// RecvGiveUp receives with a context that ends at once, and repeats it
	// without one if nothing was received.
	RecvGiveUp
	numRecvs
)

var recvNames = [...]string{
	Recv: "Recv", Irecv: "Irecv", ProbeRecv: "Probe+Recv", IprobeRecv: "Iprobe+Recv", MprobeMrecv: "Mprobe+Mrecv",
	ImprobeImrecv: "Improbe+Imrecv", RecvNew: "RecvNew", RecvPersistent: "RecvInit", RecvRetry: "Irecv+Cancel", RecvGiveUp: "Recv+ctx",
}

// String is the name of the call.
func (h RecvHow) String() string { return recvNames[h] }

// CollOp is a collective operation, with the type that it works on.
type CollOp uint8

// The collectives.
const (
	Barrier        CollOp = iota
	Bcast                 // of int64
	Allgather             // of int64
	Allgatherv            // of int64; rank r contributes Count * (r % 3)
	AllreduceSum          // of int64
	AllreduceFloat        // sum of float64 that are whole numbers: exact
	AllreduceXor          // of uint32
	AllreduceUser         // composition of affine maps: not commutative
	numColls
)

var collNames = [...]string{
	Barrier: "Barrier", Bcast: "Bcast", Allgather: "Allgather", Allgatherv: "Allgatherv", AllreduceSum: "Allreduce(int64 sum)",
	AllreduceFloat: "Allreduce(float64 sum)", AllreduceXor: "Allreduce(uint32 xor)", AllreduceUser: "Allreduce(user)",
}

// String is the collective's name.
func (o CollOp) String() string { return collNames[o] }

// Part is one message of a group.
type Part struct {
	From, Bytes int
	Send        SendHow
	Due         int
}

// Event is one entry of a program. Fields that its kind does not mention are
// zero.
type Event struct {
	ID   int // ascending in a program; never changed by Reduce
	Kind Kind
	Comm int // World, Wild or the ID of a Dup

	From, To int
	Tag      int
	Bytes    int // of the message; in a Group each Part has its own
	Short    int // the receive buffer is shorter by so many bytes: truncation
	Room     int // the receive buffer is longer by so many bytes
	AnyTag   bool
	Send     SendHow
	Recv     RecvHow
	SendDue  int // ID of the event before which the sender completes the send
	RecvDue  int // likewise the receiver, and every rank of a collective
	Parts    []Part
	Ring     []int

	Coll     CollOp
	Count    int // elements
	Root     int
	Nonblock bool
	InPlace  bool
}

// Participates reports whether a rank has a part in the event.
func (e *Event) Participates(rank int) bool {
	switch e.Kind {
	case Message:
		return rank == e.From || rank == e.To
	case Group:
		for _, p := range e.Parts {
			if p.From == rank {
				return true
			}
		}
		return rank == e.To
	case Exchange:
		for _, r := range e.Ring {
			if r == rank {
				return true
			}
		}
		return false
	case Withdraw:
		return rank == e.To
	}
	return true
}

// String is one line.
func (e *Event) String() string {
	s := fmt.Sprintf("%4d comm %d %v", e.ID, e.Comm, e.Kind)
	switch e.Kind {
	case Message:
		s += fmt.Sprintf(" %d->%d tag %d, %d bytes, %v (due %d), %v (due %d)", e.From, e.To, e.Tag, e.Bytes, e.Send, e.SendDue, e.Recv, e.RecvDue)
		if e.AnyTag {
			s += " any tag"
		}
		if e.Short > 0 {
			s += fmt.Sprintf(", %d bytes too short", e.Short)
		}
	case Group:
		s += fmt.Sprintf(" to %d tag %d, %v (due %d):", e.To, e.Tag, e.Recv, e.RecvDue)
		for _, p := range e.Parts {
			s += fmt.Sprintf(" [%d: %d bytes, %v (due %d)]", p.From, p.Bytes, p.Send, p.Due)
		}
	case Exchange:
		s += fmt.Sprintf(" ring %v tag %d, %d bytes", e.Ring, e.Tag, e.Bytes)
	case Collective:
		s += fmt.Sprintf(" %v of %d, root %d", e.Coll, e.Count, e.Root)
		if e.Nonblock {
			s += fmt.Sprintf(", nonblocking (due %d)", e.RecvDue)
		}
		if e.InPlace {
			s += ", in place"
		}
	case Withdraw:
		s += fmt.Sprintf(" at %d from %d tag %d", e.To, e.From, e.Tag)
	}
	return s
}

// String lists the program.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d ranks, %d events\n", p.Seed, p.Ranks, len(p.Events))
	for i := range p.Events {
		fmt.Fprintln(&b, &p.Events[i])
	}
	return b.String()
}
