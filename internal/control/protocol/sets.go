// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"gompi/internal/base/wire"
)

// What processes ask of process sets as such.

// Set is the body of what is said of a set by its number: KindDescribe, answered by
// a DescribeBody; KindMain, whose answer is empty; KindUnfollow and KindForsake, one way.
type Set struct {
	Kind   Kind
	Number uint32
}

func (m *Set) kind() Kind { return m.Kind }
func (m *Set) put(e *enc) { e.u32(m.Number) }
func (m *Set) get(d *dec) { m.Number = d.u32() }

// DescribeBody is what is known of a set; also the answer to KindLookup, which
// besides lets who asks hold the set.
type DescribeBody struct {
	Set        wire.Set
	Names      []string // beside its own
	Died, Left wire.Members
	Dynamic    bool   // it came of a change
	Op         uint32 // the operation of which it came, or its members, that is not decided; 0: none
	Had        Had    // by who asks
}

func (*DescribeBody) kind() Kind { return KindReply }

func (m *DescribeBody) put(e *enc) {
	e.set(m.Set)
	e.strs(m.Names)
	e.members(m.Died)
	e.members(m.Left)
	e.flag(m.Dynamic)
	e.u32(m.Op)
	e.had(m.Had)
}

func (m *DescribeBody) get(d *dec) {
	m.Set = d.set()
	m.Names = d.strs(MaxNames, MaxName)
	m.Died, m.Left = d.members(), d.members()
	m.Dynamic, m.Op, m.Had = d.flag(), d.u32(), d.had()
}

// News asks for the sets that have come to be known since a point of the job's
// history: NewsBody.
type News struct{ Since uint64 }

func (*News) kind() Kind   { return KindNews }
func (m *News) put(e *enc) { e.u64(m.Since) }
func (m *News) get(d *dec) { m.Since = d.u64() }

// NewsBody are the sets that there still are, in the order in which they got these
// names; Next is what to ask from. More: there were too many for one answer.
type NewsBody struct {
	Next uint64
	More bool
	Sets []SetName
}

func (*NewsBody) kind() Kind { return KindReply }

func (m *NewsBody) put(e *enc) { e.u64(m.Next); e.flag(m.More); e.setNames(m.Sets) }
func (m *NewsBody) get(d *dec) { m.Next, m.More, m.Sets = d.u64(), d.flag(), d.setNames(MaxNews) }

// Algebra makes a set of others at once: SetsBody, of one set but for a Split.
type Algebra struct {
	Do    SetOp
	In    []uint32
	Sizes []uint32 // Split: of its parts, in order
	Names []string // preferred ones, by position; "": none
}

// SetOp is an operation on sets that needs no agreement.
type SetOp uint8

const (
	Union SetOp = iota + 1
	Difference
	Intersection
	Split
)

func (o SetOp) String() string {
	return [...]string{"", "union", "difference", "intersection", "split"}[o]
}

func (*Algebra) kind() Kind { return KindAlgebra }

func (m *Algebra) put(e *enc) {
	e.u8(uint8(m.Do))
	e.numbers(m.In)
	e.numbers(m.Sizes)
	e.strs(m.Names)
}

func (m *Algebra) get(d *dec) {
	m.Do = SetOp(d.u8())
	if d.err == nil && (m.Do < Union || m.Do > Split) {
		d.fail("unknown operation %d on sets", m.Do)
	}
	m.In, m.Sizes, m.Names = d.numbers(MaxInputs), d.numbers(MaxNames), d.strs(MaxNames, MaxName)
}

// SetsBody are sets that who asked holds from now on.
type SetsBody struct{ Sets []SetName }

func (*SetsBody) kind() Kind   { return KindReply }
func (m *SetsBody) put(e *enc) { e.setNames(m.Sets) }
func (m *SetsBody) get(d *dec) { m.Sets = d.setNames(MaxNames) }

// SetPut stores a value under a key in the store of a set.
type SetPut struct {
	Set uint32
	Put Put
}

func (*SetPut) kind() Kind   { return KindSetPut }
func (m *SetPut) put(e *enc) { e.u32(m.Set); m.Put.put(e) }
func (m *SetPut) get(d *dec) { m.Set = d.u32(); m.Put.get(d) }

// SetGet asks for values of the store of a set: ValuesBody, when all are there if it
// waits. Call, if not 0, counts the calls of each member of Coll, whichever stores they
// ask: those of one number get one answer. Coll 0 is the set itself.
type SetGet struct {
	Set  uint32
	Coll uint32
	Keys []string
	Wait bool
	Call uint64
}

func (*SetGet) kind() Kind { return KindSetGet }

func (m *SetGet) put(e *enc) {
	e.u32(m.Set)
	e.u32(m.Coll)
	e.strs(m.Keys)
	e.flag(m.Wait)
	e.u64(m.Call)
}

func (m *SetGet) get(d *dec) {
	m.Set, m.Coll, m.Keys, m.Wait, m.Call = d.u32(), d.u32(), d.strs(MaxKeys, MaxKey), d.flag(), d.u64()
}

// ValuesBody are the values of keys, in the order of the question.
type ValuesBody struct {
	Values []Value
}

// Value is one of a store; not There: nobody has put one.
type Value struct {
	There bool
	Val   []byte
}

func (*ValuesBody) kind() Kind { return KindReply }

func (m *ValuesBody) put(e *enc) {
	e.u32(uint32(len(m.Values)))
	for _, v := range m.Values {
		e.flag(v.There)
		e.bytes(v.Val)
	}
}

func (m *ValuesBody) get(d *dec) {
	n := d.count(MaxKeys, 5)
	if n == 0 {
		return
	}
	m.Values = make([]Value, n)
	for i := range m.Values {
		m.Values[i] = Value{d.flag(), d.bytes(MaxValue)}
	}
}
