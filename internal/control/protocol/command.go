// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/control/change"
)

// The head sends commands to the agent of a host, and the agent sends reports. On one host they
// are values that one passes to the other; between hosts they are frames.
//
// Each is complete in itself: it names a process by its serial and a reservation by its number.
// Descriptors, tokens, and pids to copy memory by never leave their host. Both directions are in
// order. No end waits for the other, so that a command or a report may come after the end of what
// it is about.

// CommandKind says what the head wants of an agent.
type CommandKind uint8

const (
	CmdBind        CommandKind = iota + 1 // make processes of the slots of a reservation
	CmdUnbind                             // a reservation is not needed
	CmdSend                               // send a frame to a process
	CmdWelcome                            // welcome a process
	CmdSendLater                          // send a frame to a process, with others if some come soon
	CmdHost                               // send a frame to all that have joined, in place of the last such
	CmdContact                            // answer a request: how to reach another process
	CmdOver                               // a process takes part in nothing any more
	CmdAbandon                            // a slot was given up, and will not be started
	CmdShut                               // end the connection of a process
	CmdEnding                             // no process may join any more
	CmdReserve                            // question: reserve slots; ReportReserved
	CmdCalls                              // question: blocking calls and use of all processes; a ReportCalls of each, and one of serial 0
	CmdTaken                              // the head has taken frames of a process, of this weight
	CmdTool                               // a piece of the answer to a tool; the next after ReportMore
	CmdSubscribe                          // answer a request with the page of a set, which is made if there is none
	CmdPage                               // an action on the page of a set
	CmdPreallocate                        // preallocate memory for the shared collectives of a set
	CmdRetract                            // no process may begin to use that memory any more
)

// Command is what the head tells an agent. Its kind decides which fields it has.
type Command struct {
	Kind    CommandKind
	Serial  uint32        // of a process; CmdBind: of the first
	ID      uint32        // CmdBind, CmdUnbind: reservation; CmdContact, CmdSubscribe: request; CmdPreallocate, CmdRetract: set; CmdReserve, CmdCalls, CmdTool: question
	Count   uint32        // CmdBind, CmdReserve: slots; CmdTaken: weight
	State   ProcState     // CmdOver: Finalized or Exited
	Delay   time.Duration // CmdSendLater: at most
	Frame   []byte        // CmdSend, CmdSendLater, CmdHost, CmdTool: a frame; CmdWelcome: Welcomed.Welcome; CmdSubscribe: PageBody.Rest
	Contact *wire.Contact // CmdContact: without what only the host has
	Text    string        // CmdShut, CmdEnding: why
	Members wire.Members  // CmdSubscribe, CmdPreallocate: members of the set on this host, in the order of their lines
	Page    PageCommand   // CmdPage; CmdSubscribe: Set and Have
}

// PageDo says what an agent does on a page.
type PageDo uint8

// The actions for a change, in the order in which they may come.
const (
	PageBegin    PageDo = iota + 1 // make room for the change, with so many votes
	PageFix                        // let the members agree on the iteration
	PageWithdraw                   // swap the status word from open to rolled back, and report it
	PageBreak                      // the same, also from accepted
	PageVote                       // add votes: of members that have left, or of a process without a line
	PageCommit                     // add all votes
	PageOver                       // deliver the change to nobody any more; wake the members that wait
	PagePoll                       // report the progress of the members
	PageDrop                       // nobody is subscribed to the set any more
	PageAsk                        // of a change that the head decides: members that check wait; report the progress of all
	PagePublish                    // then: deliver it, in this iteration and from this call of Query on
	PageHide                       // then, after PageOver: only to calls of Query before this one
	PageBegun                      // report that the change has begun, after PageBegin; or that it is over, after PageOver
	PageAccept                     // after PageFix: swap the status word from open to accepted, and report it
	PageNoVote                     // after PageBegin: members that have no vote
)

// PageCommand is an action on the page of a set.
type PageCommand struct {
	Do      PageDo
	Set     uint32
	Change  uint32  // all but PageDrop
	Votes   uint32  // PageBegin
	Options Options // PageBegin, PageFix
	Have    uint64  // CmdSubscribe: arenas of which the process needs no descriptor, as bits
	Agreed  uint64  // PagePublish: the iteration + 1
	Call    uint64  // PagePublish, PageHide: the first call
	Next    uint32  // PageBegin: the set whose page, ordered before, the members get with the change; 0: none
	Body    []byte  // PageBegin: the ChangeBody of members that stay
	// Members are those whose votes a PageVote adds, or none for the vote of a joining process;
	// and those of a PageNoVote.
	Members wire.Members
}

func (e *enc) page(p *PageCommand) {
	e.u8(uint8(p.Do))
	e.u32(p.Set)
	e.u32(p.Change)
	e.u32(p.Votes)
	e.options(p.Options)
	e.u64(p.Have)
	e.u64(p.Agreed)
	e.u64(p.Call)
	e.u32(p.Next)
	e.bytes(p.Body, MaxBody)
	e.members(p.Members)
}

func (d *dec) page() PageCommand {
	p := PageCommand{
		Do:      PageDo(d.u8()),
		Set:     d.u32(),
		Change:  d.u32(),
		Votes:   d.u32(),
		Options: d.options(),
		Have:    d.u64(),
		Agreed:  d.u64(),
		Call:    d.u64(),
		Next:    d.u32(),
		Body:    d.bytes(MaxBody),
		Members: d.members(),
	}
	if d.err == nil && p.Do > PageNoVote {
		d.fail("unknown action %d on a page", p.Do)
	}
	return p
}

// maxFrame bounds a frame inside a command, in bytes.
const maxFrame = FrameHead + MaxBody

func (*Command) kind() Kind { return KindCommand }

func (c *Command) put(e *enc) {
	e.u8(uint8(c.Kind))
	e.u32(c.Serial)
	switch c.Kind {
	case CmdBind, CmdReserve:
		e.u32(c.ID)
		e.u32(c.Count)
	case CmdUnbind, CmdCalls, CmdRetract:
		e.u32(c.ID)
	case CmdPreallocate:
		e.u32(c.ID)
		e.members(c.Members)
	case CmdTool:
		e.u32(c.ID)
		e.bytes(c.Frame, maxFrame)
	case CmdTaken:
		e.u32(c.Count)
	case CmdSendLater:
		e.i64(int64(c.Delay))
		e.bytes(c.Frame, maxFrame)
	case CmdSend, CmdWelcome, CmdHost:
		e.bytes(c.Frame, maxFrame)
	case CmdContact:
		e.u32(c.ID)
		(&ContactBody{*c.Contact}).put(e)
	case CmdOver:
		e.u8(uint8(c.State))
	case CmdShut, CmdEnding:
		e.text(c.Text)
	case CmdSubscribe:
		e.u32(c.ID)
		e.members(c.Members)
		e.page(&c.Page)
		e.bytes(c.Frame, MaxBody)
	case CmdPage:
		e.page(&c.Page)
	}
}

func (c *Command) get(d *dec) {
	c.Kind = CommandKind(d.u8())
	c.Serial = d.u32()
	switch c.Kind {
	case CmdBind:
		c.ID = d.u32()
		c.Count = d.u32()
	case CmdReserve:
		c.ID = d.u32()
		c.Count = d.u32()
		if c.Count < 1 || c.Count > MaxSpawn {
			d.fail("%d slots", c.Count)
		}
	case CmdUnbind, CmdCalls, CmdRetract:
		c.ID = d.u32()
	case CmdPreallocate:
		c.ID = d.u32()
		c.Members = d.members()
	case CmdTaken:
		if c.Count = d.u32(); c.Count > maxFrame {
			d.fail("%d bytes of a frame", c.Count)
		}
	case CmdTool:
		c.ID = d.u32()
		c.Frame = d.bytes(maxFrame)
	case CmdSendLater:
		c.Delay = time.Duration(d.i64())
		c.Frame = d.bytes(maxFrame)
	case CmdSend, CmdWelcome, CmdHost:
		c.Frame = d.bytes(maxFrame)
	case CmdContact:
		c.ID = d.u32()
		var b ContactBody
		b.get(d)
		c.Contact = &b.C
	case CmdOver:
		c.State = ProcState(d.u8())
		if d.err == nil && c.State != Finalized && c.State != Exited {
			d.fail("over with state %d", c.State)
		}
	case CmdShut, CmdEnding:
		c.Text = d.text()
	case CmdSubscribe:
		c.ID = d.u32()
		c.Members = d.members()
		c.Page = d.page()
		c.Frame = d.bytes(MaxBody)
	case CmdPage:
		c.Page = d.page()
	case CmdAbandon:
	default:
		d.fail("unknown command %d", c.Kind)
	}
}

// ReportKind says what an agent has seen.
type ReportKind uint8

const (
	ReportHello      ReportKind = iota + 1 // a process has shown its token
	ReportFrame                            // a process has sent a frame
	ReportHungUp                           // the connection of a process has ended
	ReportStarted                          // the child of a process runs
	ReportExited                           // the child of a process has ended
	ReportLost                             // the program that joined is gone, and the child runs on
	ReportFreed                            // nothing of a process is left on the host
	ReportReserved                         // slots are reserved, or not
	ReportCalls                            // blocking calls of a process, and what it has used
	ReportTool                             // a tool has sent a frame
	ReportMore                             // a tool has read a piece of its answer
	ReportNoMore                           // a tool has gone
	ReportStatusWord                       // the status word of a change
	ReportProgress                         // the progress of the members of a set
)

// Report is what an agent tells the head. Its kind decides which fields it has.
type Report struct {
	Kind   ReportKind
	Serial uint32          // all up to ReportFreed; ReportCalls: 0 ends the answer
	ID     uint32          // ReportReserved, ReportCalls: question; of a tool, the agent's number for it
	Count  uint32          // ReportReserved: the reservation; 0: there is none
	PID    int             // ReportStarted: for people
	Frame  Frame           // ReportFrame, ReportTool; the body is valid only during the call
	Text   string          // ReportExited, ReportLost: how; ReportReserved: why not
	Clean  bool            // ReportExited: with status 0
	Calls  []callreg.Entry // ReportCalls
	Used   Used            // ReportCalls
	Set    uint32          // ReportStatusWord, ReportProgress
	Change uint32          // ReportStatusWord; ReportProgress: that of the command, 0 after PagePoll
	Word   change.Decision // ReportStatusWord
	// Iteration is that in which all members adopt the change, + 1: ReportStatusWord.
	Iteration uint64
	Progress  Progress // ReportProgress
	Stuck     Stuck    // ReportProgress, ReportStatusWord: of the change on the page
}

// Stuck is the members that a change waits for on one page.
type Stuck struct {
	At     uint64     // the iteration in which all members adopt it, + 1; 0: it is not known
	Behind Stragglers // members that have not reached that iteration, or have not begun
	Silent Stragglers // members that have reached it, and have not voted
}

// Stragglers is a number of members, and the first of them.
type Stragglers struct {
	N     uint32
	First []uint32 // serials
}

// MaxStragglers is how many members a Stragglers names.
const MaxStragglers = 16

// Add adds a member.
func (s *Stragglers) Add(serial uint32) {
	if s.N++; s.N <= MaxStragglers {
		s.First = append(s.First, serial)
	}
}

func (e *enc) stuck(s *Stuck) {
	e.u64(s.At)
	e.stragglers(&s.Behind)
	e.stragglers(&s.Silent)
}

func (d *dec) stuck() Stuck {
	return Stuck{At: d.u64(), Behind: d.stragglers(), Silent: d.stragglers()}
}

func (e *enc) stragglers(s *Stragglers) {
	e.u32(s.N)
	e.numbers(s.First, MaxStragglers)
}

func (d *dec) stragglers() Stragglers {
	return Stragglers{N: d.u32(), First: d.numbers(MaxStragglers)}
}

// Progress is how far the members of a set on one host have come.
type Progress struct {
	Of          PageDo        // the command that it answers; 0: none, a member waits for what PageAsk asks for
	Least, Most uint64        // iterations of members that have begun
	Begun       uint32        // members that have begun
	Mean        time.Duration // of an iteration, over members that have told theirs
	Bytes       uint64        // that have arrived of data that moves
	Calls       uint64        // calls of Query, of the member with most: PageAsk, PageOver
	Reports     uint64        // how often members have said that they work on the change
}

func (e *enc) progress(p *Progress) {
	e.u8(uint8(p.Of))
	e.u64(p.Least)
	e.u64(p.Most)
	e.u32(p.Begun)
	e.duration(p.Mean)
	e.u64(p.Bytes)
	e.u64(p.Calls)
	e.u64(p.Reports)
}

func (d *dec) progress() Progress {
	p := Progress{
		Of:      PageDo(d.u8()),
		Least:   d.u64(),
		Most:    d.u64(),
		Begun:   d.u32(),
		Mean:    d.duration(),
		Bytes:   d.u64(),
		Calls:   d.u64(),
		Reports: d.u64(),
	}
	if d.err == nil && p.Of > PageAccept {
		d.fail("unknown action %d on a page", p.Of)
	}
	return p
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
		e.bytes(r.Frame.Body, r.Frame.Kind.BodyLimit())
	case ReportStarted:
		e.num(r.PID, maxPID)
	case ReportExited:
		e.text(r.Text)
		e.flag(r.Clean)
	case ReportLost:
		e.text(r.Text)
	case ReportReserved:
		e.u32(r.ID)
		e.u32(r.Count)
		e.text(r.Text)
	case ReportCalls:
		e.u32(r.ID)
		e.used(&r.Used)
		e.calls(r.Calls)
	case ReportMore, ReportNoMore:
		e.u32(r.ID)
	case ReportStatusWord:
		e.u32(r.Set)
		e.u32(r.Change)
		e.u8(uint8(r.Word))
		e.u64(r.Iteration)
		e.stuck(&r.Stuck)
	case ReportProgress:
		e.u32(r.Set)
		e.u32(r.Change)
		e.progress(&r.Progress)
		e.stuck(&r.Stuck)
	}
}

func (r *Report) get(d *dec) {
	r.Kind = ReportKind(d.u8())
	r.Serial = d.u32()
	switch r.Kind {
	case ReportFrame, ReportTool:
		if r.Kind == ReportTool {
			r.ID = d.u32()
		}
		r.Frame = Frame{Kind: Kind(d.u8()), ID: d.u32()}
		r.Frame.Body = d.bytes(r.Frame.Kind.BodyLimit())
	case ReportStarted:
		r.PID = d.num(maxPID)
	case ReportExited:
		r.Text = d.text()
		r.Clean = d.flag()
	case ReportLost:
		r.Text = d.text()
	case ReportReserved:
		r.ID = d.u32()
		r.Count = d.u32()
		r.Text = d.text()
	case ReportCalls:
		r.ID = d.u32()
		r.Used = d.used()
		r.Calls = d.calls()
	case ReportMore, ReportNoMore:
		r.ID = d.u32()
	case ReportStatusWord:
		r.Set = d.u32()
		r.Change = d.u32()
		r.Word = change.Decision(d.u8())
		r.Iteration = d.u64()
		r.Stuck = d.stuck()
		if d.err == nil && r.Word > change.IsRolledBack {
			d.fail("unknown status word %d", r.Word)
		}
	case ReportProgress:
		r.Set = d.u32()
		r.Change = d.u32()
		r.Progress = d.progress()
		r.Stuck = d.stuck()
	case ReportHello, ReportHungUp, ReportFreed:
	default:
		d.fail("unknown report %d", r.Kind)
	}
}
