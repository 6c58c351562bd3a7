// SPDX-License-Identifier: Apache-2.0

package protocol

// Messages about the store of the job, and about the stores of process sets.

// Limits of a store.
const (
	MaxKey   = 1 << 10   // bytes of a key
	MaxValue = 256 << 10 // bytes of a value
	MaxKeys  = 1 << 10   // keys of one SetGet
)

// Put stores a value in the store of the job. The answer is empty.
type Put struct {
	Key string
	Val []byte
}

func (*Put) kind() Kind { return KindPut }

func (m *Put) put(e *enc) {
	e.str(m.Key, MaxKey)
	e.bytes(m.Val, MaxValue)
}

func (m *Put) get(d *dec) {
	m.Key = d.str(MaxKey)
	m.Val = d.bytes(MaxValue)
}

// Get asks for a value of the store of the job. The answer is a ValueBody; with Wait, when there
// is a value.
type Get struct {
	Key  string
	Wait bool
}

func (*Get) kind() Kind { return KindGet }

func (m *Get) put(e *enc) {
	e.str(m.Key, MaxKey)
	e.flag(m.Wait)
}

func (m *Get) get(d *dec) {
	m.Key = d.str(MaxKey)
	m.Wait = d.flag()
}

// ValueBody is an answer that is one value.
type ValueBody struct{ Val []byte }

func (*ValueBody) kind() Kind   { return KindReply }
func (m *ValueBody) put(e *enc) { e.bytes(m.Val, MaxValue) }
func (m *ValueBody) get(d *dec) { m.Val = d.bytes(MaxValue) }

// SetPut stores a value in the store of a set. The answer is empty.
type SetPut struct {
	Set uint32
	Put Put
}

func (*SetPut) kind() Kind { return KindSetPut }

func (m *SetPut) put(e *enc) {
	e.u32(m.Set)
	m.Put.put(e)
}

func (m *SetPut) get(d *dec) {
	m.Set = d.u32()
	m.Put.get(d)
}

// SetGet asks for values of the store of a set. The answer is a ValuesBody; with Wait, when all
// values are there.
type SetGet struct {
	Set  uint32
	Coll uint32 // the set whose members call collectively; 0: Set
	Keys []string
	Wait bool
	// Call is the number of a collective call; 0: the call is not collective. Each member of Coll
	// counts its collective calls, of whichever stores. Calls of one number get one answer.
	Call uint64
}

func (*SetGet) kind() Kind { return KindSetGet }

func (m *SetGet) put(e *enc) {
	e.u32(m.Set)
	e.u32(m.Coll)
	e.strs(m.Keys, MaxKeys, MaxKey)
	e.flag(m.Wait)
	e.u64(m.Call)
}

func (m *SetGet) get(d *dec) {
	m.Set = d.u32()
	m.Coll = d.u32()
	m.Keys = d.strs(MaxKeys, MaxKey)
	m.Wait = d.flag()
	m.Call = d.u64()
}

// ValuesBody answers a SetGet with the values of its keys, in order.
type ValuesBody struct{ Values []Value }

// Value is the value of a key; There is false if there is none.
type Value struct {
	There bool
	Val   []byte
}

func (*ValuesBody) kind() Kind { return KindReply }

func (m *ValuesBody) put(e *enc) {
	e.count(len(m.Values), MaxKeys)
	for _, v := range m.Values {
		e.flag(v.There)
		e.bytes(v.Val, MaxValue)
	}
}

func (m *ValuesBody) get(d *dec) {
	n := d.count(MaxKeys, 5)
	if n == 0 {
		return
	}
	m.Values = make([]Value, n)
	for i := range m.Values {
		m.Values[i] = Value{There: d.flag(), Val: d.bytes(MaxValue)}
	}
}
