// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	starts "gompi/internal/control/spawn"
)

// maxOps bounds the operations of which the outcome is kept for one process.
const maxOps = 1 << 12

// op is an operation, from when it was submitted until it is over and nobody may
// still ask what became of it: who asked for it, and those for whom it is the last
// change that they had a part in.
type op struct {
	number uint32
	kinds  []change.Kind // of its parts
	parts  []protocol.SubmitPart
	names  [][]string // likewise, while they are reserved
	col    []byte
	body   protocol.OpBody
	shown  protocol.OpReport // what tools see beside that

	asked, since time.Duration // as the job's owner counts time; since: of its state

	by      *proc // nil: a tool has asked, or who asked needs no answer any more
	waits   map[*wait]struct{}
	tickets map[*Ticket]struct{}

	// Once it is granted.
	inputs  [][]uint32 // of its parts
	options protocol.Options
	pages   []pageChange        // of its inputs
	beside  []*asked            // pages on which it is asked for
	unbegun map[pageOn]struct{} // pages of which it is to be known that it has begun there
	ballot  *ballot             // nil: it is decided on its page
	voters  []wire.ProcID       // who votes, once members see it
	voted   map[uint32]struct{} // newcomers that have, and with a ballot all who have
	minds   map[uint32]*proc    // who is told how it is decided, by serial
	all     bool                // a vote for all
	closing int                 // sets on whose pages hosts have not said yet that it is over
	moved   map[pageOn]moved    // what its members had done when that was last looked at
	looks   map[pageOn]struct{} // pages that are looked at, as it is late
	late    map[pageOn]protocol.Stuck
	fixed   bool // members are to be handed it, or were
	fixing  bool // as it has begun on all pages, they are told so

	how    starts.Strategy // in which newcomers start
	groups *groups         // in which they do; nil: all at once, or their places are not bound

	ofMain bool // an input was the main set

	named    bool   // somebody has said which set is to be the main one if the input that was has no Result
	provided uint32 // that; 0: none
	main     uint32 // a set of it that is to be the main one when it is committed; 0: none

	size  int      // bytes that count
	kept  int      // for how many interests it is to be told
	users int      // for how many processes it is the last change
	holds []uint32 // sets that are held for those
}

// pageChange is a change by a page on which members see it.
type pageChange struct{ set, change uint32 }

// moved is what members have done for a change, on one page: bytes of its data that have
// come, and how often they have said that they work on it.
type moved struct{ bytes, reports uint64 }

// settle carries out what the book of operations asks for. While it does so, what
// comes up waits for its turn.
func (h *Head) settle() {
	if h.settling {
		return
	}
	h.settling = true
	h.book.Flush(h.carryOut)
	h.settling = false
	h.goOn()
}

func (h *Head) carryOut(e *change.Effect) {
	o := h.ops[e.Op]
	switch e.Do {
	case change.StateChanged:
		h.told(o, e)
	case change.Launch:
		h.launch(o, e.Procs)
	case change.Discard:
		h.discard(e.Procs)
	case change.Announce:
		h.show(o, e.Procs)
	case change.Agree:
		h.fix(o)
	case change.Withdraw, change.Break:
		h.swap(o, e.Do == change.Break)
	case change.Vote:
		for _, id := range e.Procs {
			h.cast(o, id, false)
		}
	case change.CheckProgress:
		h.lookAt(o)
	case change.Leave:
		h.leave(e.Procs)
	case change.Terminate:
		h.tell(IsLate, e.Procs)
	case change.Drop:
		for _, s := range e.Sets {
			h.unhold(s)
		}
	}
}

// submitFor takes an operation that p asks for. A refusal is an answer, too.
func (h *Head) submitFor(p *proc, m *protocol.Submit) (*protocol.OpBody, error) {
	m.COL = bytes.Clone(m.COL)
	_, body := h.submit(p, m)
	return body, nil
}

// submit takes an operation that a process has asked for; nil: a tool. The answer
// has no operation if it was refused at once.
func (h *Head) submit(by *proc, m *protocol.Submit) (*op, *protocol.OpBody) {
	if by != nil && len(by.asked) >= maxOps {
		return nil, refusal(protocol.Refused("process %v has %d operations, and has forgotten none", by.id, len(by.asked)))
	}
	if by != nil {
		m.Request.By = by.id
	}
	parts := requests(&m.Request)
	if err := h.inputsThere(parts); err != nil {
		return nil, refusal(err)
	}
	for i := range m.Parts {
		r := &m.Request
		if i < len(r.Parts) {
			r = &r.Parts[i]
		}
		var err error
		if r.On, err = h.hostsNamed(m.Parts[i].Hosts); err != nil {
			return nil, refusal(err)
		}
	}
	size := submitBytes(m)
	if h.opBytes+size > maxOpBytes {
		return nil, refusal(h.noOp(size))
	}
	o := &op{size: size, parts: m.Parts, how: m.Request.Start, col: m.COL, by: by, waits: map[*wait]struct{}{}, tickets: map[*Ticket]struct{}{}, voted: map[uint32]struct{}{}, minds: map[uint32]*proc{}, unbegun: map[pageOn]struct{}{}}
	for i := range parts {
		o.kinds = append(o.kinds, parts[i].Kind)
	}
	if err := h.reserveNames(o, parts); err != nil {
		b := refusal(err)
		if b.Why == protocol.WhyOther {
			b.Why = protocol.WhyName
		}
		return nil, b
	}
	var err error
	if o.number, err = h.book.Submit(h.now(), m.Request); err != nil {
		h.unreserveNames(o)
		h.settle() // what it supersedes
		return nil, refusal(err)
	}
	o.asked = h.now()
	o.since = o.asked
	o.body = protocol.OpBody{Op: o.number, State: change.Queued, Times: protocol.OpTimes{Asked: h.cfg.Epoch.Add(o.asked)}}
	o.shown = h.wanted(&m.Request)
	o.shown.COL = len(o.col)
	h.said(o.col)
	h.opBytes += o.size
	if h.ops[o.number] = o; by != nil {
		if by.asked == nil {
			by.asked = map[uint32]*op{}
		}
		by.asked[o.number] = o
	}
	h.settle()
	if o.body.State == change.Refused {
		h.forgo(o)
		o.body.Op = 0
	}
	return o, &o.body
}

// requests are the parts of a request.
func requests(r *change.Request) []change.Request {
	if r.Kind == change.Multi {
		return r.Parts
	}
	return []change.Request{*r}
}

// inputsThere refuses sets that there are not, and those of which it is not known
// where all members are.
func (h *Head) inputsThere(parts []change.Request) error {
	for i := range parts {
		for _, s := range parts[i].In {
			if s == 0 || s == change.Latest {
				continue // whichever it is then
			}
			t, err := h.living(s)
			switch {
			case err != nil:
				return err
			case t.hosts == nil:
				return protocol.Refused("the members of process set %d are on too many hosts", s)
			}
		}
	}
	return nil
}

// told: an operation is in another state.
func (h *Head) told(o *op, e *change.Effect) {
	if o == nil {
		return // it was refused at once
	}
	b := &o.body
	why := h.whyLate(o, e.Why)
	nothing := b.State == change.Queued && e.State == change.Done
	b.State, b.Outputs, o.inputs = e.State, e.Outputs, e.Inputs
	h.noteMain(o)
	h.clock(o, e.State)
	if why != nil {
		r := refusal(why)
		b.Why, b.Text, b.Set, b.Success = r.Why, r.Text, r.Set, r.Success
	}
	switch {
	case nothing:
		h.unchanged(o)
	case e.State == change.Granted:
		h.granted(o)
	case e.State == change.Ready:
		h.publishOutputs(o)
	case e.State == change.Adopting:
		h.acceptAsked(o)
		if o.options.Hold {
			h.ofPages(o, protocol.PageCommand{Do: protocol.PagePoll}) // what has moved before counts no more
		}
		if o.all {
			h.commitAll(o)
		}
	case e.State == change.Committed:
		h.committed(o)
	case e.State == change.Done:
		h.done(o)
	case e.State == change.RolledBack || e.State == change.Cancelled:
		h.rolledBack(o)
	}
	if b.State >= change.Committed {
		for _, p := range o.minds {
			h.tellDecided(p, o.number, b.State <= change.Done)
		}
		clear(o.minds)
		h.endMain()
	}
	if b.State.Over() {
		h.unreserveNames(o)
		o.col = nil
		h.weigh(o)
	}
	h.answerWaits(o)
	for t := range o.tickets {
		if b.State >= t.till {
			delete(o.tickets, t)
			close(t.done)
		}
	}
	h.opHappened(o)
	if b.State.Over() {
		h.remember(o)
	}
	h.forgetOp(o)
}

// reached reports whether an operation is as far as one who waits wants it: one that holds,
// when it is over on the pages of its inputs, too, where they stay.
func (o *op) reached(until change.State) bool {
	return o.body.State >= until && (until < change.Committed || o.closing == 0)
}

// answerWaits answers those for whom an operation is far enough.
func (h *Head) answerWaits(o *op) {
	for w := range o.waits {
		if o.reached(w.until) {
			h.unpark(w)
			h.answer(w.proc, w.id, &o.body)
		}
	}
}

// clock notes when an operation came to a state.
func (h *Head) clock(o *op, s change.State) {
	o.since = h.now()
	t, at := &o.body.Times, o.since-o.asked
	switch s {
	case change.Granted:
		t.Granted = at
	case change.Ready:
		t.Ready = at
	case change.Adopting:
		t.Adopted = at
	case change.Done:
		t.Gone = at
	case change.Committed, change.Refused, change.Cancelled, change.RolledBack:
		t.Decided = at
	}
}

// now is the time, as the job's owner counts it.
func (h *Head) now() time.Duration {
	if h.cfg.Now == nil {
		return 0
	}
	return h.cfg.Now()
}

// Next is when Tick has something to do; false: never, as things are.
func (h *Head) Next() (at time.Duration, ok bool) {
	at, ok = h.book.Next()
	for _, next := range [...]func() (time.Duration, bool){h.nextBehind, h.nextShort, h.nextRecall} {
		if t, is := next(); is && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// Tick looks at the deadlines.
func (h *Head) Tick() {
	h.book.Tick(h.now())
	h.settle()
	h.tickBehind()
	h.tickShort()
	h.tickRecall()
}

// forgo: who asked for an operation needs no answer any more.
func (h *Head) forgo(o *op) {
	if o.by != nil {
		delete(o.by.asked, o.number)
		o.by = nil
	}
	h.forgetOp(o)
}

// forgetOp drops an operation that is over and that nobody asks for.
func (h *Head) forgetOp(o *op) {
	if h.ops[o.number] == o && o.body.State.Over() && o.by == nil && o.users+o.kept == 0 && o.closing == 0 && len(o.waits) == 0 && len(o.tickets) == 0 {
		delete(h.ops, o.number)
		h.opBytes -= o.size
	}
}
