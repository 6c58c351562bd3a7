// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"gompi/internal/wire"
)

// What the head and the agent of a host tell each other: orders down, reports
// up. Each is a message, complete in itself: a process is its serial, a
// reservation its number, and descriptors, pids to copy by and tokens never
// leave their host. Both ways are in order, and neither side waits for the
// other: an order may find that what it is about has ended, and a report too.

// OrderKind says what the head wants of an agent.
type OrderKind uint8

const (
	OrderBind    OrderKind = iota + 1 // the places of a reservation become processes
	OrderUnbind                       // a reservation is not needed
	OrderSend                         // a frame for a process
	OrderWelcome                      // the like, with the process's own files
	OrderLate                         // the like, which may wait for others
	OrderHost                         // a frame for all who are joined, in place of the last such
	OrderContact                      // answers a request: how to reach another process
	OrderOver                         // a process takes part in nothing any more
	OrderAbandon                      // of a place that was given up nobody will say Started
	OrderShut                         // end a process's connection
	OrderEnding                       // nobody joins any more
)

// Order is what the head tells an agent. Which fields it has depends on its
// kind.
type Order struct {
	Kind    OrderKind
	Serial  uint32        // all but OrderUnbind, OrderHost, OrderEnding; OrderBind: the first
	ID      uint32        // OrderBind, OrderUnbind: reservation; OrderContact: request
	Count   uint32        // OrderBind
	State   ProcState     // OrderOver: Finalized or Exited
	Late    time.Duration // OrderLate: how long at most
	Frame   []byte        // OrderSend, OrderWelcome, OrderLate, OrderHost: with its head
	Contact *wire.Contact // OrderContact: without what only the host has
	Text    string        // OrderShut, OrderEnding: why
}

// ReportKind says what an agent has seen.
type ReportKind uint8

const (
	ReportHello   ReportKind = iota + 1 // a process has shown its token
	ReportFrame                         // a process says
	ReportHungUp                        // the connection of a process has ended
	ReportStarted                       // its child runs
	ReportExited                        // its child has ended
	ReportLost                          // what joined is gone, the child runs on
	ReportFreed                         // nothing of the process is left on the host
)

// Report is what an agent tells the head.
type Report struct {
	Kind   ReportKind
	Serial uint32
	PID    int    // ReportStarted: for people
	Frame  Frame  // ReportFrame; the body is only lent
	Text   string // ReportExited, ReportLost: how
	Clean  bool   // ReportExited: with status 0
}

// An order and a report are frames between two machines.

func (*Order) kind() Kind { return KindOrder }

func (o *Order) put(e *enc) {
	e.u8(uint8(o.Kind))
	e.u32(o.Serial)
	switch o.Kind {
	case OrderBind:
		e.u32(o.ID)
		e.u32(o.Count)
	case OrderUnbind:
		e.u32(o.ID)
	case OrderLate:
		e.i64(int64(o.Late))
		e.bytes(o.Frame)
	case OrderSend, OrderWelcome, OrderHost:
		e.bytes(o.Frame)
	case OrderContact:
		e.u32(o.ID)
		(&ContactBody{*o.Contact}).put(e)
	case OrderOver:
		e.u8(uint8(o.State))
	case OrderShut, OrderEnding:
		e.str(Clip(o.Text, MaxText))
	}
}

func (o *Order) get(d *dec) {
	o.Kind, o.Serial = OrderKind(d.u8()), d.u32()
	switch o.Kind {
	case OrderBind:
		o.ID, o.Count = d.u32(), d.u32()
	case OrderUnbind:
		o.ID = d.u32()
	case OrderLate:
		o.Late = time.Duration(d.i64())
		o.Frame = d.bytes(FrameHead + MaxBody)
	case OrderSend, OrderWelcome, OrderHost:
		o.Frame = d.bytes(FrameHead + MaxBody)
	case OrderContact:
		o.ID = d.u32()
		var b ContactBody
		b.get(d)
		o.Contact = &b.C
	case OrderOver:
		o.State = ProcState(d.u8())
		if d.err == nil && o.State != Finalized && o.State != Exited {
			d.fail("over with state %d", o.State)
		}
	case OrderShut, OrderEnding:
		o.Text = d.str(MaxText)
	case OrderAbandon:
	default:
		d.fail("unknown order %d", o.Kind)
	}
}

func (*Report) kind() Kind { return KindReport }

func (r *Report) put(e *enc) {
	e.u8(uint8(r.Kind))
	e.u32(r.Serial)
	switch r.Kind {
	case ReportFrame:
		e.u8(uint8(r.Frame.Kind))
		e.u32(r.Frame.ID)
		e.bytes(r.Frame.Body)
	case ReportStarted:
		e.i64(int64(r.PID))
	case ReportExited:
		e.str(Clip(r.Text, MaxText))
		e.flag(r.Clean)
	case ReportLost:
		e.str(Clip(r.Text, MaxText))
	}
}

func (r *Report) get(d *dec) {
	r.Kind, r.Serial = ReportKind(d.u8()), d.u32()
	switch r.Kind {
	case ReportFrame:
		r.Frame = Frame{Kind: Kind(d.u8()), ID: d.u32()}
		r.Frame.Body = d.bytes(r.Frame.Kind.BodyLimit())
	case ReportStarted:
		r.PID = d.num(1 << 30)
	case ReportExited:
		r.Text, r.Clean = d.str(MaxText), d.flag()
	case ReportLost:
		r.Text = d.str(MaxText)
	case ReportHello, ReportHungUp, ReportFreed:
	default:
		d.fail("unknown report %d", r.Kind)
	}
}

// Emptied is a list of what was passed on, to be filled again; it keeps no more
// memory than many steps need.
func Emptied[T any](list []T) []T {
	if cap(list) > 1<<10 {
		return nil
	}
	clear(list)
	return list[:0]
}
