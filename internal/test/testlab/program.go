// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"fmt"
	"slices"
	"strings"
)

// Program is what P ranks do: one global sequence of events. Every rank
// executes its part of the events in this order and completes what it started
// nonblocking no later than the event that is named as due. That order is why
// no program can deadlock: a rank that waits at an event waits for a rank at an
// earlier one.
type Program struct {
	Seed   uint64
	Ranks  int
	Events []Event
}

// The communicators that exist from the start. Make events make others, which
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
	// Collective: of all members of Comm, or only its Init if Form is
	// Persistent.
	Collective
	// Starts starts the persistent collectives Of, each rank in its own order.
	Starts
	// Make makes the communicator ID out of Comm, by How.
	Make
	// Free frees Comm.
	Free
	// Withdraw: To posts a receive that nothing matches and takes it back.
	Withdraw
)

var kindNames = [...]string{
	Message: "message", Group: "group", Exchange: "exchange", Collective: "collective", Starts: "start",
	Make: "make", Free: "free", Withdraw: "withdraw",
}

// String is the kind's name.
func (k Kind) String() string { return kindNames[k] }

// Part is one message of a group.
type Part struct {
	From, Bytes int
	Send        SendHow
	Due         int
}

// Event is one entry of a program. Fields that its kind does not mention are
// zero.
type Event struct {
	ID   int // ascending in a program; never changed by Shrink
	Kind Kind
	Comm int // World, Wild or the ID of a Make

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

	// Of a collective. In each part of Comm the root is the rank Root modulo
	// the part's size; RootSide is the group that has it in an
	// intercommunicator.
	Coll     CollOp
	Form     Form
	Elem     Elem
	Count    int // elements of a block
	Root     int
	RootSide int
	InPlace  bool
	Gaps     bool // irregular blocks lie in another order, with gaps
	Derived  bool // buffers are of derived types, here and there
	Of       []int

	How    Maker
	Groups [][]int // of the communicator that is made, see Layout
	// Of a Grid and of a Graph; edges lead from one rank to another of Comm.
	Dims    []int
	Periods []bool
	Edges   [][2]int
}

// Participates reports whether a rank has a part in the event.
func (p *Program) Participates(e *Event, rank int) bool {
	switch e.Kind {
	case Message:
		return rank == e.From || rank == e.To
	case Group:
		return rank == e.To || slices.ContainsFunc(e.Parts, func(part Part) bool { return part.From == rank })
	case Exchange:
		return slices.Contains(e.Ring, rank)
	case Withdraw:
		return rank == e.To
	case Starts:
		return slices.ContainsFunc(e.Of, func(id int) bool { return p.Layout(p.event(id).Comm).has(rank) })
	case Make:
		return e.makes(p.Layout(e.Comm), rank)
	}
	return p.Layout(e.Comm).has(rank)
}

// event finds an event by its ID.
func (p *Program) event(id int) *Event {
	i, _ := slices.BinarySearchFunc(p.Events, id, func(e Event, id int) int { return e.ID - id })
	return &p.Events[i]
}

// Call is the persistent collective that entry k of the Starts e starts.
func (p *Program) Call(e *Event, k int) *Event { return p.event(e.Of[k]) }

// String is one line.
func (e *Event) String() string {
	s := fmt.Sprintf("%4d comm %d %v", e.ID, e.Comm, e.Kind)
	switch e.Kind {
	case Message:
		s += fmt.Sprintf(" %d->%d tag %d, %d bytes, %v (due %d), %v (due %d)", e.From, e.To, e.Tag, e.Bytes, e.Send, e.SendDue, e.Recv, e.RecvDue)
		s += said(e.AnyTag, " any tag")
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
		s += fmt.Sprintf(" %v of %d %v, root %d", e.Coll, e.Count, e.Elem, e.Root)
		s += said(e.RootSide > 0, " of the other group") + said(e.InPlace, ", in place") + said(e.Gaps, ", gaps") + said(e.Derived, ", derived types")
		s += fmt.Sprintf(", %v", e.Form) + said(e.Form == Nonblocking, fmt.Sprintf(" (due %d)", e.RecvDue))
	case Starts:
		s += fmt.Sprintf(" %v (due %d)", e.Of, e.RecvDue)
	case Make:
		s += fmt.Sprintf(" %v %v", e.How, e.Groups)
		s += said(e.How == Grid, fmt.Sprintf(" %v rings %v", e.Dims, e.Periods)) + said(e.How == Graph, fmt.Sprintf(" %v", e.Edges))
	case Withdraw:
		s += fmt.Sprintf(" at %d from %d tag %d", e.To, e.From, e.Tag)
	}
	return s
}

func said(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
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
