// SPDX-License-Identifier: Apache-2.0

package protocol

import "gompi/internal/base/wire"

// Messages about process sets that change nothing but who holds them.

// Limits of sets.
const (
	MaxNames = 1 << 10 // sets that an answer names, and names of a set
	MaxNews  = 1 << 12 // sets in one NewsBody
)

// SetName is the number and the name of a process set.
type SetName struct {
	Number uint32
	Name   string
}

func (e *enc) setName(s SetName) {
	e.u32(s.Number)
	e.str(s.Name, MaxName)
}

func (d *dec) setName() SetName { return SetName{Number: d.u32(), Name: d.str(MaxName)} }

func (e *enc) setNames(list []SetName, limit int) {
	e.count(len(list), limit)
	for _, s := range list {
		e.setName(s)
	}
}

func (d *dec) setNames(limit int) []SetName {
	n := d.count(limit, 8)
	if n == 0 {
		return nil
	}
	list := make([]SetName, n)
	for i := range list {
		list[i] = d.setName()
	}
	return list
}

// Set is the message of kinds that name one set by its number:
//
//   - KindDescribe asks for a DescribeBody.
//   - KindMain makes it the main set of the job. The answer is empty.
//   - KindUnsubscribe ends a Subscribe.
//   - KindForsake tells that no communicator comes of the set, which was given to the sender and
//     others together.
type Set struct {
	Kind   Kind
	Number uint32
}

func (m *Set) kind() Kind { return m.Kind }
func (m *Set) put(e *enc) { e.u32(m.Number) }
func (m *Set) get(d *dec) { m.Number = d.u32() }

// SetBody is an answer that is one process set.
type SetBody struct{ S wire.Set }

func (*SetBody) kind() Kind   { return KindReply }
func (m *SetBody) put(e *enc) { e.set(m.S) }
func (m *SetBody) get(d *dec) { m.S = d.set() }

// SetUse counts what a member has made of a set whose members count alike: communicators, and
// collective calls on its store. A process that looks the set up again continues the counts.
type SetUse struct {
	Opened uint32
	Calls  uint64
}

func (e *enc) setUse(u SetUse) {
	e.u32(u.Opened)
	e.u64(u.Calls)
}

func (d *dec) setUse() SetUse { return SetUse{Opened: d.u32(), Calls: d.u64()} }

// Release gives back one hold of a set. Use is what the sender has made of the set, if it holds
// the set in no other way.
type Release struct {
	Number uint32
	Use    SetUse
}

func (*Release) kind() Kind { return KindRelease }

func (m *Release) put(e *enc) {
	e.u32(m.Number)
	e.setUse(m.Use)
}

func (m *Release) get(d *dec) {
	m.Number = d.u32()
	m.Use = d.setUse()
}

// DescribeBody answers KindDescribe, and KindLookup.
type DescribeBody struct {
	Set        wire.Set
	Names      []string // beside its own
	Died, Left wire.Members
	Dynamic    bool   // a change made it
	Op         uint32 // the undecided operation that made it, or its members; 0: none
	Use        SetUse // by the process that asks
}

func (*DescribeBody) kind() Kind { return KindReply }

func (m *DescribeBody) put(e *enc) {
	e.set(m.Set)
	e.strs(m.Names, MaxNames, MaxName)
	e.members(m.Died)
	e.members(m.Left)
	e.flag(m.Dynamic)
	e.u32(m.Op)
	e.setUse(m.Use)
}

func (m *DescribeBody) get(d *dec) {
	m.Set = d.set()
	m.Names = d.strs(MaxNames, MaxName)
	m.Died = d.members()
	m.Left = d.members()
	m.Dynamic = d.flag()
	m.Op = d.u32()
	m.Use = d.setUse()
}

// News asks for the sets that have become known since a point of the job's history. The answer is
// a NewsBody.
type News struct{ Since uint64 }

func (*News) kind() Kind   { return KindNews }
func (m *News) put(e *enc) { e.u64(m.Since) }
func (m *News) get(d *dec) { m.Since = d.u64() }

// NewsBody is the sets that still exist, in the order in which they got these names.
type NewsBody struct {
	Next uint64 // Since of the next News
	More bool   // there are more than fit into one answer
	Sets []SetName
}

func (*NewsBody) kind() Kind { return KindReply }

func (m *NewsBody) put(e *enc) {
	e.u64(m.Next)
	e.flag(m.More)
	e.setNames(m.Sets, MaxNews)
}

func (m *NewsBody) get(d *dec) {
	m.Next = d.u64()
	m.More = d.flag()
	m.Sets = d.setNames(MaxNews)
}

// SetOp is an operation on sets that needs no agreement.
type SetOp uint8

const (
	Union SetOp = iota + 1
	Difference
	Intersection
	Split
)

// String returns the name of the operation.
func (o SetOp) String() string {
	return [...]string{"", "union", "difference", "intersection", "split"}[o]
}

// Algebra makes sets of others at once: one, or as many as a Split says. The answer is a SetsBody.
type Algebra struct {
	Do    SetOp
	In    []uint32
	Sizes []uint32 // Split: sizes of its parts, in order
	Names []string // preferred names of the results, by position; "": none
}

func (*Algebra) kind() Kind { return KindAlgebra }

func (m *Algebra) put(e *enc) {
	e.u8(uint8(m.Do))
	e.numbers(m.In, MaxInputs)
	e.numbers(m.Sizes, MaxNames)
	e.strs(m.Names, MaxNames, MaxName)
}

func (m *Algebra) get(d *dec) {
	m.Do = SetOp(d.u8())
	if d.err == nil && (m.Do < Union || m.Do > Split) {
		d.fail("unknown operation %d on sets", m.Do)
	}
	m.In = d.numbers(MaxInputs)
	m.Sizes = d.numbers(MaxNames)
	m.Names = d.strs(MaxNames, MaxName)
}

// SetsBody is sets that the process that asked holds from now on.
type SetsBody struct{ Sets []SetName }

func (*SetsBody) kind() Kind   { return KindReply }
func (m *SetsBody) put(e *enc) { e.setNames(m.Sets, MaxNames) }
func (m *SetsBody) get(d *dec) { m.Sets = d.setNames(MaxNames) }
