// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"time"

	"gompi/internal/control/change"
)

// What a tool asks about process sets and their changes. Answers come in pieces of
// KindPart; a Reply ends them.

// Resize asks for another size of a set: an OpReport of each state that the change
// comes to, the last one of how it ended.
type Resize struct {
	Set    string // its name; "": the main set
	By     int    // that many more, or fewer
	To     int    // so many, in place of By
	Detach bool   // one OpReport: it is taken, or not
}

func (*Resize) kind() Kind { return KindResize }

func (m *Resize) put(e *enc) {
	e.str(m.Set)
	e.i64(int64(m.By))
	e.i64(int64(m.To))
	e.flag(m.Detach)
}

func (m *Resize) get(d *dec) {
	m.Set = d.str(MaxName)
	m.By, m.To, m.Detach = int(d.i64()), d.num(MaxMembers), d.flag()
	if d.err == nil && (m.By < -MaxMembers || m.By > MaxMembers || (m.By == 0) == (m.To == 0)) {
		d.fail("resize by %d to %d", m.By, m.To)
	}
}

// OpReport is an operation as a tool shows it: of one that is under way, or of the
// latest ones that are over.
type OpReport struct {
	Op     OpBody
	Kind   change.Kind
	Inputs []SetName
	// Before and After are how many processes the inputs and the results have
	// together; of an operation that was not granted After is 0.
	Before, After int
	Joins, Leaves int
	COL           int           // bytes of what is said for the resource manager
	Waits         string        // for what, for people
	For           time.Duration // it is in its state
}

// Waiting says for what it waits, in one line for a report of what hangs; "": it is over.
func (m *OpReport) Waiting() string {
	if m.Op.State.Over() {
		return ""
	}
	return fmt.Sprintf("operation %d (%v), %v for %.1f s, waits for %s\n", m.Op.Op, m.Kind, m.Op.State, m.For.Seconds(), m.Waits)
}

func (*OpReport) kind() Kind { return KindPart }

func (m *OpReport) put(e *enc) {
	m.Op.put(e)
	e.u8(uint8(m.Kind))
	e.setNames(m.Inputs)
	for _, n := range []int{m.Before, m.After, m.Joins, m.Leaves, m.COL} {
		e.i64(int64(n))
	}
	e.str(Clip(m.Waits, MaxText))
	e.i64(int64(m.For))
}

// get takes states, kinds and reasons that only a newer head knows.
func (m *OpReport) get(d *dec) {
	m.Op.any(d)
	m.Kind = change.Kind(d.u8())
	m.Inputs = d.setNames(MaxInputs * MaxParts)
	for _, n := range []*int{&m.Before, &m.After, &m.Joins, &m.Leaves, &m.COL} {
		*n = d.num(MaxMembers * MaxInputs)
	}
	m.Waits, m.For = d.str(MaxText), d.duration()
}

// SetReport is a process set as a tool shows it.
type SetReport struct {
	Set     SetName
	Names   []string // beside that one
	Size    int      // members; Living: those that have neither died nor left
	Living  int
	Watched int // who follows its changes
	Main    bool
	// Op is the operation that made it, if one did; Of the sets that it was made of,
	// also those that are gone; Pending: it is not decided.
	Op      uint32
	Made    string // what the operation does; "union" and the like have no number
	Of      []uint32
	Pending bool
}

func (*SetReport) kind() Kind { return KindPart }

func (m *SetReport) put(e *enc) {
	e.setName(m.Set)
	e.strs(m.Names)
	for _, n := range []int{m.Size, m.Living, m.Watched} {
		e.i64(int64(n))
	}
	e.flag(m.Main)
	e.u32(m.Op)
	e.str(m.Made)
	e.numbers(m.Of)
	e.flag(m.Pending)
}

func (m *SetReport) get(d *dec) {
	m.Set = d.setName()
	m.Names = d.strs(MaxNames, MaxName)
	for _, n := range []*int{&m.Size, &m.Living, &m.Watched} {
		*n = d.num(MaxMembers)
	}
	m.Main = d.flag()
	m.Op, m.Made, m.Of, m.Pending = d.u32(), d.str(MaxName), d.numbers(MaxInputs), d.flag()
}
