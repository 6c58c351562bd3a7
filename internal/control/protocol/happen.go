// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"gompi/internal/base/wire"
	"gompi/internal/control/change"
)

// Happen asks for the next thing that happens to sets: HappenBody, when there is one.
// Who asks first under a number names the sets; without On it is the end of that,
// and the answer is empty.
type Happen struct {
	Number uint32 // as the process counts its interests
	On     bool
	Sets   []uint32 // 0: the main set, whichever it is
}

func (*Happen) kind() Kind   { return KindHappen }
func (m *Happen) put(e *enc) { e.u32(m.Number); e.flag(m.On); e.numbers(m.Sets) }
func (m *Happen) get(d *dec) { m.Number, m.On, m.Sets = d.u32(), d.flag(), d.numbers(MaxNames) }

// Happening says what has happened.
type Happening uint8

const (
	HappenNothing Happening = iota // nothing more will
	HappenOp                       // an operation over the set has come to another state
	HappenGone                     // nobody holds the set any more
	HappenDied                     // a member has ended, not in order
	HappenLeft                     // a member has left in order
)

// HappenBody is one thing that has happened to a set.
type HappenBody struct {
	What   Happening
	Set    uint32
	Op     OpBody      // HappenOp: its latest state
	Kind   change.Kind // HappenOp
	Proc   wire.ProcID // HappenDied, HappenLeft
	Rank   uint32      // its rank in the set
	Missed uint32      // operations that were over before anybody asked, and ends, that are not told
}

func (*HappenBody) kind() Kind { return KindReply }

func (m *HappenBody) put(e *enc) {
	e.u8(uint8(m.What))
	e.u32(m.Set)
	if m.What == HappenOp {
		m.Op.put(e)
		e.u8(uint8(m.Kind))
	}
	e.proc(m.Proc)
	e.u32(m.Rank)
	e.u32(m.Missed)
}

func (m *HappenBody) get(d *dec) {
	if m.What = Happening(d.u8()); m.What > HappenLeft {
		d.fail("unknown happening %d", m.What)
	}
	m.Set = d.u32()
	if m.What == HappenOp {
		m.Op.get(d)
		m.Kind = change.Kind(d.u8())
	}
	m.Proc, m.Rank, m.Missed = d.proc(), d.u32(), d.u32()
}
