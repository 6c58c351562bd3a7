// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"time"

	"gompi/internal/control/change"
)

// Requests of gompictl. An answer comes in pieces, each of which is a KindPart; a Reply ends it.
// KindList, KindUsed, KindOps and KindSets have no body, and KindBreak has an Op.

// Tool is the first frame of gompictl.
type Tool struct{ Version string } // of gompi

func (*Tool) kind() Kind   { return KindTool }
func (m *Tool) put(e *enc) { e.str(Clip(m.Version, MaxVersion), MaxVersion) }
func (m *Tool) get(d *dec) { m.Version = d.str(MaxVersion) }

// Collect asks for a StackReport of each process.
type Collect struct{ Wait time.Duration } // how long processes may take

// MaxCollect is the longest Wait of a Collect.
const MaxCollect = time.Minute

func (*Collect) kind() Kind   { return KindCollect }
func (m *Collect) put(e *enc) { e.num(int(m.Wait), int(MaxCollect)) }
func (m *Collect) get(d *dec) { m.Wait = time.Duration(d.num(int(MaxCollect))) }

// Resize asks for another size of a set. The answer is an OpReport of each state that the change
// reaches, the last one of how it ended.
type Resize struct {
	Set    string // name of the set; "": the main set
	By     int    // processes to add, or to remove if it is negative
	To     int    // the new size, in place of By
	Detach bool   // the answer is one OpReport: whether the operation is taken
}

func (*Resize) kind() Kind { return KindResize }

func (m *Resize) put(e *enc) {
	e.str(m.Set, MaxName)
	e.i64(int64(m.By))
	e.num(m.To, MaxMembers)
	e.flag(m.Detach)
}

func (m *Resize) get(d *dec) {
	m.Set = d.str(MaxName)
	m.By = int(d.i64())
	m.To = d.num(MaxMembers)
	m.Detach = d.flag()
	if d.err == nil && (m.By < -MaxMembers || m.By > MaxMembers || (m.By == 0) == (m.To == 0)) {
		d.fail("resize by %d to %d", m.By, m.To)
	}
}

// OpReport is an operation that is under way, or one of the latest that are over.
type OpReport struct {
	Op     OpBody
	Kind   change.Kind
	Inputs []SetName
	Before int // processes of all inputs
	After  int // processes of all results; 0: the operation was not granted
	Joins  int
	Leaves int
	COL    int           // bytes for the resource manager
	Waits  string        // what it waits for, for people
	For    time.Duration // how long it has been in its state
}

// Waiting returns one line on what the operation waits for; "" if it is over.
func (m *OpReport) Waiting() string {
	if m.Op.State.Over() {
		return ""
	}
	return fmt.Sprintf("operation %d (%v), %v for %.1f s, waits for %s\n", m.Op.Op, m.Kind, m.Op.State, m.For.Seconds(), m.Waits)
}

// maxOpSize bounds the numbers of processes in an OpReport.
const maxOpSize = MaxMembers * MaxInputs

func (*OpReport) kind() Kind { return KindPart }

func (m *OpReport) put(e *enc) {
	m.Op.put(e)
	e.u8(uint8(m.Kind))
	e.setNames(m.Inputs, MaxInputs*MaxParts)
	for _, n := range []int{m.Before, m.After, m.Joins, m.Leaves, m.COL} {
		e.num(n, maxOpSize)
	}
	e.text(m.Waits)
	e.duration(m.For)
}

// get takes states, kinds and reasons that only a newer head knows.
func (m *OpReport) get(d *dec) {
	m.Op.any(d)
	m.Kind = change.Kind(d.u8())
	m.Inputs = d.setNames(MaxInputs * MaxParts)
	for _, n := range []*int{&m.Before, &m.After, &m.Joins, &m.Leaves, &m.COL} {
		*n = d.num(maxOpSize)
	}
	m.Waits = d.text()
	m.For = d.duration()
}

// SetReport is a process set that some process holds.
type SetReport struct {
	Set     SetName
	Names   []string // beside that one
	Size    int      // members
	Living  int      // members that have neither died nor finalized
	Watched int      // processes that are subscribed to its changes
	Main    bool
	Op      uint32   // the operation that made it; 0: none did
	Made    string   // what the operation does; "union" and the like have no number
	Of      []uint32 // the sets that it was made of, which may be gone
	Pending bool     // Op is not decided
}

func (*SetReport) kind() Kind { return KindPart }

func (m *SetReport) put(e *enc) {
	e.setName(m.Set)
	e.strs(m.Names, MaxNames, MaxName)
	for _, n := range []int{m.Size, m.Living, m.Watched} {
		e.num(n, MaxMembers)
	}
	e.flag(m.Main)
	e.u32(m.Op)
	e.str(m.Made, MaxName)
	e.numbers(m.Of, MaxInputs)
	e.flag(m.Pending)
}

func (m *SetReport) get(d *dec) {
	m.Set = d.setName()
	m.Names = d.strs(MaxNames, MaxName)
	for _, n := range []*int{&m.Size, &m.Living, &m.Watched} {
		*n = d.num(MaxMembers)
	}
	m.Main = d.flag()
	m.Op = d.u32()
	m.Made = d.str(MaxName)
	m.Of = d.numbers(MaxInputs)
	m.Pending = d.flag()
}
