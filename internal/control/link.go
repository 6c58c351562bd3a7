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

// orderKind says what the head wants of an agent.
type orderKind uint8

const (
	oBind    orderKind = iota + 1 // the seats of a reservation become processes
	oUnbind                       // a reservation is not needed
	oSend                         // a frame for a process
	oWelcome                      // the like, with the process's own files
	oLate                         // the like, which may wait for others
	oHost                         // a frame for all who are joined, in place of the last such
	oContact                      // answers a request: how to reach another process
	oOver                         // a process takes part in nothing any more
	oAbandon                      // of a seat that was given up nobody will say Started
	oShut                         // end a process's connection
	oEnding                       // nobody joins any more
)

// order is what the head tells an agent. Which fields it has depends on its
// kind.
type order struct {
	kind    orderKind
	serial  uint32        // all but oUnbind, oHost, oEnding; oBind: the first
	id      uint32        // oBind, oUnbind: reservation; oContact: request
	count   uint32        // oBind
	state   ProcState     // oOver: Finalized or Exited
	late    time.Duration // oLate: how long at most
	frame   []byte        // oSend, oWelcome, oLate, oHost: with its head
	contact *wire.Contact // oContact: without what only the host has
	text    string        // oShut, oEnding: why
}

// reportKind says what an agent has seen.
type reportKind uint8

const (
	rHello   reportKind = iota + 1 // a process has shown its token
	rFrame                         // a process says
	rHungUp                        // the connection of a process has ended
	rStarted                       // its child runs
	rExited                        // its child has ended
	rLost                          // what joined is gone, the child runs on
	rFreed                         // nothing of the process is left on the host
)

// report is what an agent tells the head.
type report struct {
	kind   reportKind
	serial uint32
	pid    int    // rStarted: for people
	frame  frame  // rFrame; the body is only lent
	text   string // rExited, rLost: how
	clean  bool   // rExited: with status 0
}

// orderMsg and reportMsg are frames between two machines.
type orderMsg struct{ o order }

func (*orderMsg) kind() kind { return kOrder }

func (m *orderMsg) put(e *enc) {
	o := &m.o
	e.u8(uint8(o.kind))
	e.u32(o.serial)
	switch o.kind {
	case oBind:
		e.u32(o.id)
		e.u32(o.count)
	case oUnbind:
		e.u32(o.id)
	case oLate:
		e.i64(int64(o.late))
		e.bytes(o.frame)
	case oSend, oWelcome, oHost:
		e.bytes(o.frame)
	case oContact:
		e.u32(o.id)
		(&contactBody{*o.contact}).put(e)
	case oOver:
		e.u8(uint8(o.state))
	case oShut, oEnding:
		e.str(clip(o.text, maxText))
	}
}

func (m *orderMsg) get(d *dec) {
	o := &m.o
	o.kind, o.serial = orderKind(d.u8()), d.u32()
	switch o.kind {
	case oBind:
		o.id, o.count = d.u32(), d.u32()
	case oUnbind:
		o.id = d.u32()
	case oLate:
		o.late = time.Duration(d.i64())
		o.frame = d.bytes(frameHead + maxBody)
	case oSend, oWelcome, oHost:
		o.frame = d.bytes(frameHead + maxBody)
	case oContact:
		o.id = d.u32()
		var b contactBody
		b.get(d)
		o.contact = &b.c
	case oOver:
		o.state = ProcState(d.u8())
		if d.err == nil && o.state != Finalized && o.state != Exited {
			d.fail("over with state %d", o.state)
		}
	case oShut, oEnding:
		o.text = d.str(maxText)
	case oAbandon:
	default:
		d.fail("unknown order %d", o.kind)
	}
}

type reportMsg struct{ r report }

func (*reportMsg) kind() kind { return kReport }

func (m *reportMsg) put(e *enc) {
	r := &m.r
	e.u8(uint8(r.kind))
	e.u32(r.serial)
	switch r.kind {
	case rFrame:
		e.u8(uint8(r.frame.kind))
		e.u32(r.frame.id)
		e.bytes(r.frame.body)
	case rStarted:
		e.i64(int64(r.pid))
	case rExited:
		e.str(clip(r.text, maxText))
		e.flag(r.clean)
	case rLost:
		e.str(clip(r.text, maxText))
	}
}

func (m *reportMsg) get(d *dec) {
	r := &m.r
	r.kind, r.serial = reportKind(d.u8()), d.u32()
	switch r.kind {
	case rFrame:
		r.frame = frame{kind: kind(d.u8()), id: d.u32()}
		r.frame.body = d.bytes(r.frame.kind.bodyLimit())
	case rStarted:
		r.pid = d.num(1 << 30)
	case rExited:
		r.text, r.clean = d.str(maxText), d.flag()
	case rLost:
		r.text = d.str(maxText)
	case rHello, rHungUp, rFreed:
	default:
		d.fail("unknown report %d", r.kind)
	}
}
