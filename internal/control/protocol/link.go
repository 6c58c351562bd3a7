// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/change"
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
	OrderWelcome                      // what the head says in a welcome
	OrderLate                         // the like, which may wait for others
	OrderHost                         // a frame for all who are joined, in place of the last such
	OrderContact                      // answers a request: how to reach another process
	OrderOver                         // a process takes part in nothing any more
	OrderAbandon                      // of a place that was given up nobody will say Started
	OrderShut                         // end a process's connection
	OrderEnding                       // nobody joins any more
	OrderReserve                      // question: places for so many; ReportReserved
	OrderCalls                        // question: the roll calls of the host, and what its processes have used; ReportCalls for each, the last of nobody
	OrderTaken                        // the head has taken what a process has said; by weight
	OrderTool                         // a piece of the answer to a tool, the next after ReportMore
	OrderFollow                       // answers a request: the page of a set, which is made if it is not there
	OrderPage                         // something to do on the page of a set
	OrderGive                         // make the memory for shared collectives of a set, for all its members
	OrderUngive                       // nobody may begin to use it any more
)

// Order is what the head tells an agent. Which fields it has depends on its
// kind.
type Order struct {
	Kind    OrderKind
	Serial  uint32        // all but OrderUnbind, OrderHost, OrderEnding; OrderBind: the first
	ID      uint32        // OrderBind, OrderUnbind: reservation; OrderContact: request; OrderReserve and later: question; OrderGive, OrderUngive: set
	Count   uint32        // OrderBind, OrderReserve, OrderTaken
	State   ProcState     // OrderOver: Finalized or Exited
	Late    time.Duration // OrderLate: how long at most
	Frame   []byte        // OrderSend, OrderLate, OrderHost, OrderTool: with its head; OrderWelcome: Welcomed.Welcome; OrderFollow: FollowBody.Rest
	Contact *wire.Contact // OrderContact: without what only the host has
	Text    string        // OrderShut, OrderEnding: why
	Members wire.Members  // OrderFollow, OrderGive: those of the set on this host; their order is that of the lines
	Page    PageOrder     // OrderFollow: Set and Have; OrderPage
}

// PageDo is what an agent is to do on a page.
type PageDo uint8

// Of a change, in the order in which they may come.
const (
	PageBegin    PageDo = iota + 1 // make room for the change, with so many votes
	PageFix                        // let the members agree on the iteration
	PageWithdraw                   // swap open to rolled back, and report what holds
	PageBreak                      // the same from accepted, too
	PageVote                       // one vote: of members that have left, or of a process that has no line
	PageCommit                     // the votes of all
	PageOver                       // nobody is handed the change any more; wake who waits
	PageLook                       // report how far the members are
	PageDrop                       // nobody follows the set any more
	PageAsk                        // of a change that the head decides: who checks waits; report how far all are
	PagePublish                    // then: hand it out, in that iteration and from that call of Query on
	PageHide                       // then, after PageOver: to calls of Query before that one
	PageBegun                      // report that the change has begun, after PageBegin; or that it is over, after PageOver
	PageAccept                     // after PageFix: swap open to accepted, and report
	PageNoVote                     // after PageBegin: members that have no vote
)

// PageOrder is what is to be done on the page of a set.
type PageOrder struct {
	Do      PageDo
	Set     uint32
	Change  uint32  // all but PageDrop
	Votes   uint32  // PageBegin
	Options Options // PageBegin, PageFix
	Have    uint64  // OrderFollow: of who asks
	Agreed  uint64  // PagePublish: the iteration + 1
	Call    uint64  // PagePublish, PageHide: the first call
	Next    uint32  // PageBegin: the set whose page members are handed, which was ordered before; 0: none
	Body    []byte  // PageBegin: the ChangeBody of those who stay
	// Members are those whose votes a PageVote is, none: it is that of a newcomer; and those
	// of a PageNoVote.
	Members wire.Members
}

func (e *enc) page(p *PageOrder) {
	e.u8(uint8(p.Do))
	e.u32(p.Set)
	e.u32(p.Change)
	e.u32(p.Votes)
	e.options(p.Options)
	e.u64(p.Have)
	e.u64(p.Agreed)
	e.u64(p.Call)
	e.u32(p.Next)
	e.bytes(p.Body)
	e.members(p.Members)
}

func (d *dec) page() PageOrder {
	p := PageOrder{PageDo(d.u8()), d.u32(), d.u32(), d.u32(), d.options(), d.u64(), d.u64(), d.u64(), d.u32(), d.bytes(MaxBody), d.members()}
	if d.err == nil && p.Do > PageNoVote {
		d.fail("unknown deed %d on a page", p.Do)
	}
	return p
}

// ReportKind says what an agent has seen.
type ReportKind uint8

const (
	ReportHello    ReportKind = iota + 1 // a process has shown its token
	ReportFrame                          // a process says
	ReportHungUp                         // the connection of a process has ended
	ReportStarted                        // its child runs
	ReportExited                         // its child has ended
	ReportLost                           // what joined is gone, the child runs on
	ReportFreed                          // nothing of the process is left on the host
	ReportReserved                       // places are reserved, or not
	ReportCalls                          // the roll call of a process, and what it has used
	ReportTool                           // a tool asks
	ReportMore                           // it has read a piece of the answer
	ReportNoMore                         // it has gone
	ReportWord                           // what the word of a change says
	ReportLook                           // how far the members of a set are
)

// Report is what an agent tells the head.
type Report struct {
	Kind   ReportKind
	Serial uint32          // all up to ReportFreed; ReportCalls: 0 ends the answer
	ID     uint32          // ReportReserved and later: question; of a tool, the agent's number for it
	Count  uint32          // ReportReserved: the reservation; 0: none
	PID    int             // ReportStarted: for people
	Frame  Frame           // ReportFrame, ReportTool; the body is only lent
	Text   string          // ReportExited, ReportLost: how; ReportReserved: why not
	Clean  bool            // ReportExited: with status 0
	Calls  []callreg.Entry // ReportCalls
	Used   Used            // ReportCalls
	Set    uint32          // ReportWord, ReportLook
	Change uint32          // ReportWord; ReportLook: that of the order, 0 after PageLook
	Word   change.Verdict  // ReportWord
	// Iteration is that at which all are handed the change, + 1: ReportWord.
	Iteration uint64
	Look      Look // ReportLook
	Late      Late // ReportLook, ReportWord: of the change that is on the page
}

// Late is whom a change waits for on one page.
type Late struct {
	At uint64 // the iteration in which all are handed it, + 1; 0: not known
	// Behind are members that have not come to that iteration, or not begun, Silent those
	// that have and have not voted.
	Behind, Silent Some
}

// Some are so many members, and the first of them, by serial.
type Some struct {
	N     uint32
	First []uint32
}

// MaxSome is how many members a Some names.
const MaxSome = 16

// Add adds one.
func (s *Some) Add(serial uint32) {
	if s.N++; s.N <= MaxSome {
		s.First = append(s.First, serial)
	}
}

func (e *enc) late(l *Late) {
	e.u64(l.At)
	e.some(&l.Behind)
	e.some(&l.Silent)
}

func (e *enc) some(s *Some) {
	e.u32(s.N)
	e.numbers(s.First)
}

func (d *dec) late() Late { return Late{d.u64(), d.some(), d.some()} }

func (d *dec) some() Some { return Some{d.u32(), d.numbers(MaxSome)} }

// Look is how far the members of a set on one host are.
type Look struct {
	Of          PageDo        // the order that it answers; 0: none, a member waits for what PageAsk asks for
	Least, Most uint64        // iterations of those that have begun
	Begun       uint32        // how many have
	Mean        time.Duration // of an iteration, over those that have told
	Bytes       uint64        // that have come of the data that move
	Calls       uint64        // of Query, of who has called most: PageAsk, PageOver
	Reports     uint64        // how often members have said that they work on the change
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
	case OrderUnbind, OrderCalls, OrderUngive:
		e.u32(o.ID)
	case OrderGive:
		e.u32(o.ID)
		e.members(o.Members)
	case OrderReserve:
		e.u32(o.ID)
		e.u32(o.Count)
	case OrderTool:
		e.u32(o.ID)
		e.bytes(o.Frame)
	case OrderTaken:
		e.u32(o.Count)
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
	case OrderFollow:
		e.u32(o.ID)
		e.members(o.Members)
		e.page(&o.Page)
		e.bytes(o.Frame)
	case OrderPage:
		e.page(&o.Page)
	}
}

func (o *Order) get(d *dec) {
	o.Kind, o.Serial = OrderKind(d.u8()), d.u32()
	switch o.Kind {
	case OrderBind:
		o.ID, o.Count = d.u32(), d.u32()
	case OrderUnbind, OrderCalls, OrderUngive:
		o.ID = d.u32()
	case OrderGive:
		o.ID, o.Members = d.u32(), d.members()
	case OrderReserve:
		o.ID, o.Count = d.u32(), d.u32()
		if o.Count < 1 || o.Count > MaxSpawn {
			d.fail("%d places", o.Count)
		}
	case OrderTaken:
		if o.Count = d.u32(); o.Count > MaxBody+FrameHead {
			d.fail("%d bytes of a frame", o.Count)
		}
	case OrderTool:
		o.ID = d.u32()
		o.Frame = d.bytes(FrameHead + MaxBody)
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
	case OrderFollow:
		o.ID, o.Members, o.Page = d.u32(), d.members(), d.page()
		o.Frame = d.bytes(MaxBody)
	case OrderPage:
		o.Page = d.page()
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
	case ReportFrame, ReportTool:
		if r.Kind == ReportTool {
			e.u32(r.ID)
		}
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
	case ReportReserved:
		e.u32(r.ID)
		e.u32(r.Count)
		e.str(Clip(r.Text, MaxText))
	case ReportCalls:
		e.u32(r.ID)
		e.used(&r.Used)
		putCalls(e, r.Calls)
	case ReportMore, ReportNoMore:
		e.u32(r.ID)
	case ReportWord:
		e.u32(r.Set)
		e.u32(r.Change)
		e.u8(uint8(r.Word))
		e.u64(r.Iteration)
		e.late(&r.Late)
	case ReportLook:
		e.u32(r.Set)
		e.u32(r.Change)
		e.u8(uint8(r.Look.Of))
		e.u64(r.Look.Least)
		e.u64(r.Look.Most)
		e.u32(r.Look.Begun)
		e.i64(int64(r.Look.Mean))
		e.u64(r.Look.Bytes)
		e.u64(r.Look.Calls)
		e.u64(r.Look.Reports)
		e.late(&r.Late)
	}
}

func (r *Report) get(d *dec) {
	r.Kind, r.Serial = ReportKind(d.u8()), d.u32()
	switch r.Kind {
	case ReportFrame, ReportTool:
		if r.Kind == ReportTool {
			r.ID = d.u32()
		}
		r.Frame = Frame{Kind: Kind(d.u8()), ID: d.u32()}
		r.Frame.Body = d.bytes(r.Frame.Kind.BodyLimit())
	case ReportStarted:
		r.PID = d.num(1 << 30)
	case ReportExited:
		r.Text, r.Clean = d.str(MaxText), d.flag()
	case ReportLost:
		r.Text = d.str(MaxText)
	case ReportReserved:
		r.ID, r.Count, r.Text = d.u32(), d.u32(), d.str(MaxText)
	case ReportCalls:
		r.ID, r.Used, r.Calls = d.u32(), d.used(), getCalls(d)
	case ReportMore, ReportNoMore:
		r.ID = d.u32()
	case ReportWord:
		r.Set, r.Change, r.Word, r.Iteration = d.u32(), d.u32(), change.Verdict(d.u8()), d.u64()
		r.Late = d.late()
		if d.err == nil && r.Word > change.IsRolledBack {
			d.fail("unknown word %d", r.Word)
		}
	case ReportLook:
		r.Set, r.Change = d.u32(), d.u32()
		if r.Look.Of = PageDo(d.u8()); d.err == nil && r.Look.Of > PageAccept {
			d.fail("unknown deed %d on a page", r.Look.Of)
		}
		r.Look = Look{r.Look.Of, d.u64(), d.u64(), d.u32(), d.duration(), d.u64(), d.u64(), d.u64()}
		r.Late = d.late()
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
