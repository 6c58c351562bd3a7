// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"gompi/internal/base/wire"
	"gompi/internal/control/change"
)

// NextEvent asks for the next event of a subscription. The answer is a SetEvent, when there is one.
// The first NextEvent of a subscription names its sets. One without On ends the subscription, and
// the answer is empty.
type NextEvent struct {
	Number uint32 // of the subscription, as the process counts them
	On     bool
	Sets   []uint32 // 0: the main set, whichever that is
}

func (*NextEvent) kind() Kind { return KindNextEvent }

func (m *NextEvent) put(e *enc) {
	e.u32(m.Number)
	e.flag(m.On)
	e.numbers(m.Sets, MaxNames)
}

func (m *NextEvent) get(d *dec) {
	m.Number = d.u32()
	m.On = d.flag()
	m.Sets = d.numbers(MaxNames)
}

// SetEventKind says what a SetEvent tells.
type SetEventKind uint8

const (
	SetEventEnd       SetEventKind = iota // no more events come
	SetEventOp                            // an operation over the set has reached another state
	SetEventGone                          // no process holds the set any more
	SetEventDied                          // a member ended without finalizing
	SetEventFinalized                     // a member finalized
)

// SetEvent is an event of a set.
type SetEvent struct {
	What   SetEventKind
	Set    uint32
	Op     OpBody      // SetEventOp: the latest state
	Kind   change.Kind // SetEventOp
	Proc   wire.ProcID // SetEventDied, SetEventFinalized
	Rank   uint32      // of Proc in the set
	Missed uint32      // events that are not told, since too many came before anybody asked
}

func (*SetEvent) kind() Kind { return KindReply }

func (m *SetEvent) put(e *enc) {
	e.u8(uint8(m.What))
	e.u32(m.Set)
	if m.What == SetEventOp {
		m.Op.put(e)
		e.u8(uint8(m.Kind))
	}
	e.proc(m.Proc)
	e.u32(m.Rank)
	e.u32(m.Missed)
}

func (m *SetEvent) get(d *dec) {
	if m.What = SetEventKind(d.u8()); m.What > SetEventFinalized {
		d.fail("unknown event %d of a set", m.What)
	}
	m.Set = d.u32()
	if m.What == SetEventOp {
		m.Op.get(d)
		m.Kind = change.Kind(d.u8())
	}
	m.Proc = d.proc()
	m.Rank = d.u32()
	m.Missed = d.u32()
}
