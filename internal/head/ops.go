// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"gompi/internal/change"
	"gompi/internal/control"
	"gompi/internal/wire"
)

// maxOps bounds the operations of which the outcome is kept for one process.
const maxOps = 1 << 12

// op is an operation, from when it was submitted until it is over and nobody may
// still ask what became of it: who asked for it, and those for whom it is the last
// change that they had a part in.
type op struct {
	number uint32
	kinds  []change.Kind // of its parts
	parts  []control.SubmitPart
	col    []byte
	body   control.OpBody
	shown  control.OpReport // what tools see beside that

	asked time.Duration // as the job's owner counts time

	by      *proc // nil: a tool has asked, or who asked needs no answer any more
	waits   map[*wait]struct{}
	tickets map[*Ticket]struct{}

	// Once it is granted.
	inputs  [][]uint32 // of its parts
	options control.Options
	page    pageChange // where it is decided
	voted   map[uint32]struct{}
	all     bool // a vote for all

	users int      // for how many processes it is the last change
	holds []uint32 // sets that are held for those
}

// pageChange is a change by the page that it is decided on.
type pageChange struct{ set, change uint32 }

// settle carries out what the book of operations asks for. While it does so, what
// comes up waits for its turn.
func (h *Head) settle() {
	if h.settling {
		return
	}
	h.settling = true
	h.book.Flush(h.carryOut)
	h.settling = false
}

func (h *Head) carryOut(e *change.Effect) {
	o := h.ops[e.Op]
	switch e.Do {
	case change.Told:
		h.told(o, e)
	case change.Launch:
		h.launch(o, e.Procs)
	case change.Discard:
		h.discard(e.Procs)
	case change.Show:
		h.show(o, e.Procs)
	case change.Fix:
		h.ofPage(o, control.PageOrder{Do: control.PageFix, Options: o.options})
	case change.Withdraw:
		h.ofPage(o, control.PageOrder{Do: control.PageWithdraw})
	case change.Break:
		h.ofPage(o, control.PageOrder{Do: control.PageBreak})
	case change.Vote:
		for range e.Procs {
			h.ofPage(o, control.PageOrder{Do: control.PageVote})
		}
	case change.Leave:
		h.tell(Leaves, e.Procs)
	case change.Terminate:
		h.tell(IsLate, e.Procs)
	case change.Drop:
		for _, s := range e.Sets {
			h.unhold(s)
		}
	}
}

// submit takes an operation that a process has asked for; nil: a tool. The answer
// has no operation if it was refused at once.
func (h *Head) submit(by *proc, m *control.Submit) (*op, *control.OpBody) {
	if by != nil && len(by.asked) >= maxOps {
		return nil, refusal(control.Refused("process %v has %d operations, and has forgotten none", by.id, len(by.asked)))
	}
	if err := h.decidable(&m.Request); err != nil {
		return nil, refusal(err)
	}
	number, err := h.book.Submit(h.now(), m.Request)
	if err != nil {
		h.settle() // of what it supersedes
		return nil, refusal(err)
	}
	o := &op{number: number, parts: m.Parts, col: m.COL, by: by, waits: map[*wait]struct{}{}, tickets: map[*Ticket]struct{}{}, voted: map[uint32]struct{}{}}
	o.asked = h.now()
	o.body = control.OpBody{Op: number, State: change.Queued, Times: control.OpTimes{Asked: h.cfg.Epoch.Add(o.asked)}}
	o.shown = h.wanted(&m.Request)
	o.kinds = []change.Kind{m.Request.Kind}
	if m.Request.Kind == change.Multi {
		o.kinds = nil
		for i := range m.Request.Parts {
			o.kinds = append(o.kinds, m.Request.Parts[i].Kind)
		}
	}
	if h.ops[number] = o; by != nil {
		if by.asked == nil {
			by.asked = map[uint32]*op{}
		}
		by.asked[number] = o
	}
	h.settle()
	if o.body.State == change.Refused {
		h.forgo(o)
		o.body.Op = 0
	}
	return o, &o.body
}

// decidable refuses what cannot be decided on one page.
func (h *Head) decidable(r *change.Request) error {
	parts := r.Parts
	if r.Kind != change.Multi {
		parts = []change.Request{*r}
	}
	var in []uint32
	for i := range parts {
		in = append(in, parts[i].In...)
	}
	if len(in) != 1 {
		return control.Refused("a change of %d process sets: only one that changes one set can be decided", len(in))
	}
	number := in[0]
	if number == 0 {
		number = h.main
	}
	if t := h.sets[number]; t != nil && len(t.hosts) != 1 {
		return control.Refused("a change of a process set with members on several hosts cannot be decided")
	}
	return nil
}

// told: an operation is in another state.
func (h *Head) told(o *op, e *change.Effect) {
	if o == nil {
		return // it was refused at once
	}
	b := &o.body
	b.State, b.Outputs, o.inputs = e.State, e.Outputs, e.Inputs
	h.clock(o, e.State)
	if e.Why != nil {
		r := refusal(e.Why)
		b.Why, b.Text, b.Set, b.Success = r.Why, r.Text, r.Set, r.Success
	}
	switch {
	case e.State == change.Granted:
		h.granted(o)
	case e.State == change.Adopting && o.all:
		h.ofPage(o, control.PageOrder{Do: control.PageCommit})
	case e.State == change.Committed:
		h.committed(o)
	case e.State == change.RolledBack || e.State == change.Cancelled:
		h.rolledBack(o)
	}
	for w := range o.waits {
		if b.State >= w.until {
			h.unpark(w)
			h.answer(w.proc, w.id, b)
		}
	}
	for t := range o.tickets {
		if b.State >= t.till {
			delete(o.tickets, t)
			close(t.done)
		}
	}
	if b.State.Over() {
		h.remember(o)
	}
	h.forgetOp(o)
}

// clock notes when an operation came to a state.
func (h *Head) clock(o *op, s change.State) {
	t, at := &o.body.Times, h.now()-o.asked
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
	if o.body.State.Over() && o.by == nil && o.users == 0 && len(o.waits) == 0 && len(o.tickets) == 0 {
		delete(h.ops, o.number)
	}
}

// granted gives the newcomers what they have from the start.
func (h *Head) granted(o *op) {
	h.given(o)
	for i, in := range o.inputs {
		for _, s := range in {
			if f := h.follows[s]; f != nil {
				o.options = f.options
			}
		}
		argv := o.parts[i].Argv
		if len(argv) == 0 {
			if argv = h.argv; o.by != nil {
				argv = o.by.argv
			}
		}
		out := &o.body.Outputs[i]
		for _, s := range []uint32{out.Leaving, out.Result} {
			if s != 0 {
				h.sets[s].dynamic = true
				h.ofChange(s, o.number)
			}
		}
		if out.Result != 0 {
			h.isResult(out.Result)
		}
		for _, s := range out.Joining {
			// It is their world, and so does not vanish with the change.
			h.sets[s].dynamic, h.sets[s].op = true, o.number
			h.isResult(s)
			m := h.sets[s].members
			for rank, id := range m.All() {
				p := h.proc(id)
				p.rank, p.size, p.argv, p.comes = rank, m.Len(), argv, o
				p.world = s
				h.hold(s)
			}
		}
	}
}

// newcomers are those that take part in the job.
func (h *Head) newcomers(o *op) (list []*proc) {
	for i := range o.body.Outputs {
		for _, s := range o.body.Outputs[i].Joining {
			for _, id := range h.sets[s].members.All() {
				if h.takesPart(id) {
					list = append(list, h.proc(id))
				}
			}
		}
	}
	return list
}

// committed keeps the outputs, and the inputs with which they are explained, for all
// that have a part in them.
func (h *Head) committed(o *op) {
	h.changeDecided(o.number, true)
	come := h.newcomers(o)
	had := slices.Clone(come)
	for i, in := range o.inputs {
		for _, s := range in {
			o.holds = append(o.holds, s)
			if f := h.follows[s]; f != nil && f.op == o { // it has no Result
				h.closePage(f, o)
			}
			for _, id := range h.sets[s].members.All() {
				if h.takesPart(id) {
					had = append(had, h.proc(id))
				}
			}
		}
		o.holds = append(o.holds, outputs(&o.body.Outputs[i])...)
	}
	for _, s := range o.holds {
		h.hold(s)
	}
	o.users++
	for i := range o.body.Outputs {
		for _, s := range o.body.Outputs[i].Joining {
			h.sets[s].op = 0
		}
	}
	ids := make([]wire.ProcID, len(come))
	hosts := map[uint32]struct{}{}
	for i, p := range come {
		ids[i] = p.id
		hosts[p.host] = struct{}{}
		p.comes = nil
	}
	for _, p := range had {
		h.hasChange(p, o)
	}
	h.used(o)
	h.tell(Kept, ids)
	for host := range h.hosts {
		if _, ok := hosts[uint32(host)]; ok {
			h.tellHost(uint32(host))
		}
	}
}

// rolledBack ends what members see of the change. Newcomers may still ask.
func (h *Head) rolledBack(o *op) {
	for _, p := range h.newcomers(o) {
		p.comes = nil
		h.hasChange(p, o)
	}
	if f := h.follows[o.page.set]; f != nil && f.op == o {
		h.closePage(f, o)
	}
	h.changeDecided(o.number, false)
}

// closePage ends a change on a page that stays.
func (h *Head) closePage(f *follow, o *op) {
	h.page(f, control.PageOrder{Do: control.PageOver, Change: o.page.change})
	if f.op = nil; len(f.procs) == 0 {
		h.endFollow(f)
	}
}

// hasChange: o is the last change that p has a part in; nil: p has none.
func (h *Head) hasChange(p *proc, o *op) {
	last := p.last
	if last == o {
		return
	}
	if p.last = o; o != nil {
		o.users++
	}
	if last != nil {
		h.used(last)
	}
}

// used ends one use of a change.
func (h *Head) used(o *op) {
	if o.users--; o.users > 0 {
		return
	}
	for _, s := range o.holds {
		h.unhold(s)
	}
	o.holds = nil
	h.forgetOp(o)
}

// outputs are the sets that a part has made.
func outputs(o *change.Outputs) []uint32 {
	list := slices.Clone(o.Joining)
	for _, s := range []uint32{o.Leaving, o.Result} {
		if s != 0 {
			list = append(list, s)
		}
	}
	return list
}

// await answers when an operation is so far.
func (h *Head) await(p *proc, f *control.Frame, number uint32, until change.State) error {
	o := h.ops[number]
	switch {
	case o == nil || !h.concerns(o, p):
		h.refuse(p, f.ID, control.NotFound("operation %d", number))
	case o.body.State >= until:
		h.answer(p, f.ID, &o.body)
	case h.ending != "":
		h.refuse(p, f.ID, control.Ending(h.ending))
	default:
		w := &wait{proc: p, id: f.ID, op: o, until: until}
		if err := h.park(w, f); err != nil {
			return err
		}
		o.waits[w] = struct{}{}
	}
	return nil
}

// concerns reports whether p has a part in an operation, or has asked for it.
func (h *Head) concerns(o *op, p *proc) bool {
	if o.by == p || p.comes == o || p.last == o {
		return true
	}
	return slices.ContainsFunc(o.inputs, func(in []uint32) bool {
		return slices.ContainsFunc(in, func(s uint32) bool { return h.isMember(s, p) })
	})
}

func (h *Head) isMember(set uint32, p *proc) bool {
	t := h.sets[set]
	return t != nil && t.members.Index(p.id) >= 0
}

// withdraw answers a Withdraw, when it is known what it came to.
func (h *Head) withdraw(p *proc, f *control.Frame, number uint32) error {
	o := h.ops[number]
	if o == nil || o.by != p {
		h.refuse(p, f.ID, control.NotFound("operation %d of process %v", number, p.id))
		return nil
	}
	_ = h.book.Cancel(number) // what came of it is what the state says
	h.settle()
	return h.await(p, f, number, change.Adopting)
}

// update takes something else to know of an operation.
func (h *Head) update(p *proc, id uint32, m *control.Update) {
	o := h.ops[m.Op]
	switch {
	case o == nil || o.by != p:
		h.refuse(p, id, control.NotFound("operation %d of process %v", m.Op, p.id))
	case o.body.State > change.Queued:
		h.refuse(p, id, control.Refused("operation %d is %v", m.Op, o.body.State))
	default:
		o.col = bytes.Clone(m.COL)
		h.answer(p, id, nil)
	}
}

// opOf handles what is said of an operation, one way.
func (h *Head) opOf(p *proc, kind control.Kind, number uint32) {
	o := h.ops[number]
	if o == nil || p.state != control.Joined || !h.concerns(o, p) {
		return
	}
	switch kind {
	case control.KindForget:
		if o.by == p {
			h.forgo(o)
		}
	case control.KindReleased:
		h.book.Release(number, p.id)
	case control.KindReadied:
		if p.comes == o {
			h.book.Prepared(h.now(), p.id)
		}
	case control.KindVoted:
		h.vote(o, p)
	case control.KindCompleted:
		h.complete(o)
	}
	h.settle()
}

// now is the time, as the job's owner counts it.
func (h *Head) now() time.Duration {
	if h.cfg.Now == nil {
		return 0
	}
	return h.cfg.Now()
}

// Next is when Tick has something to do; false: never, as things are.
func (h *Head) Next() (at time.Duration, ok bool) { return h.book.Next() }

// Tick looks at the deadlines.
func (h *Head) Tick() {
	h.book.Tick(h.now())
	h.settle()
}

var reasons = []struct {
	err error
	why control.Why
}{
	{change.ErrMalformed, control.WhyMalformed},
	{change.ErrNoSet, control.WhyNoSet},
	{change.ErrSetGone, control.WhySetGone},
	{change.ErrNoWatch, control.WhyNoWatch},
	{change.ErrUnwatched, control.WhyUnwatched},
	{change.ErrLeaves, control.WhyLeaves},
	{change.ErrNotMember, control.WhyNotMember},
	{change.ErrTooMany, control.WhyTooMany},
	{change.ErrBusy, control.WhyBusy},
	{change.ErrSuperseded, control.WhySuperseded},
	{change.ErrDeadline, control.WhyDeadline},
	{change.ErrDied, control.WhyDied},
	{change.ErrCancelled, control.WhyCancelled},
	{change.ErrEnding, control.WhyEnding},
}

// refusal says why an operation was refused, or has not happened.
func refusal(err error) *control.OpBody {
	b := &control.OpBody{State: change.Refused, Why: control.WhyOther, Text: control.Clip(err.Error(), control.MaxText)}
	var replaced *change.ReplacedError
	if errors.As(err, &replaced) {
		b.Why, b.Set, b.Success = control.WhyReplaced, replaced.Set, replaced.Successor
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			b.Why = r.why
		}
	}
	return b
}
