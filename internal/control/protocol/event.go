// SPDX-License-Identifier: Apache-2.0

package protocol

import "gompi/internal/base/wire"

// EventKind says what an Event tells.
type EventKind uint8

const (
	// EvDied: Proc ended without finalizing; Text says how. This process watches it, or has a
	// Contact with it. The answer is a KindDead, as soon as nothing of this process touches the
	// memory of Proc any more.
	EvDied EventKind = iota + 1
	// EvGone: Proc finalized (Text is LeftInOrder) or never joined (Text says how). The event may
	// come later than it could. The answer is as to EvDied.
	EvGone
	// EvStacks: the process has to send a Stacks with this ID.
	EvStacks
	// EvHost: LocalProcs and MaxProcs have changed.
	EvHost
	// EvAbort: the job is ending; Text says why.
	EvAbort
	// EvDisconnected: Proc, which lives, cannot communicate with this process; Text says why.
	EvDisconnected
	// EvPing: Proc, which cannot reach this process, asks whether it takes part in the job. The
	// answer is a KindPong with the same ID, unless this process has finalized.
	EvPing
	// EvPong: Proc took part in the job when the KindPing with this ID came. The events of all
	// deaths that the head knew of then came before.
	EvPong
	// EvNone: Proc, which this process watches, never was a process of the job.
	EvNone
	// EvStdin: the descriptor that comes with the event is the standard input of the process from
	// now on. The client makes it so, and does not pass the event on.
	EvStdin
	// EvCommitted: the operation ID, of which this process has sent an Undecided, is committed.
	EvCommitted
	// EvUndone: that operation was rolled back. The ends of its joining processes come later.
	EvUndone
	// EvJobOver: no events of processes of the job ID come any more, of which this process has
	// asked for the secret. The events of all their ends came before.
	EvJobOver
)

// LeftInOrder is the Text of an EvGone of a process that has finalized.
const LeftInOrder = "left in order"

// Event is what the head tells a process unasked.
type Event struct {
	Kind       EventKind
	Proc       wire.ProcID
	Text       string
	ID         uint64
	LocalProcs int // as in Welcome
	MaxProcs   int
}

func (*Event) kind() Kind { return KindEvent }

func (ev *Event) put(e *enc) {
	e.u8(uint8(ev.Kind))
	e.proc(ev.Proc)
	e.text(ev.Text)
	e.u64(ev.ID)
	e.num(ev.LocalProcs, MaxMembers)
	e.num(ev.MaxProcs, MaxMembers)
}

func (ev *Event) get(d *dec) {
	ev.Kind = EventKind(d.u8())
	if d.err == nil && (ev.Kind < EvDied || ev.Kind > EvJobOver) {
		d.fail("unknown event %d", ev.Kind)
	}
	ev.Proc = d.proc()
	ev.Text = d.text()
	ev.ID = d.u64()
	ev.LocalProcs = d.num(MaxMembers)
	ev.MaxProcs = d.num(MaxMembers)
}
