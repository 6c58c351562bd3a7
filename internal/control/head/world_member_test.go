// SPDX-License-Identifier: Apache-2.0

package head

import (
	"maps"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// member is a process.
type member struct {
	id     wire.ProcID
	host   uint32
	forked bool
	joined bool
	over   bool // dead, or has left
	exited bool
	// Of a newcomer.
	fate     Fate
	coming   bool
	unwanted bool                 // one beside it could not be started
	op       uint32               // with which it came
	change   *protocol.ChangeBody // that, until it has voted

	sets    []uint32 // that it follows
	asks    []uint32 // pages by which it asks for others
	asked   map[uint32]protocol.Message
	handed  map[pageChange]bool
	ops     []uint32
	refused int
}

func (w *world) answered(m *member, id uint32, body []byte) {
	var r protocol.Reply
	if err := protocol.Decode(&r, body); err != nil {
		w.fail("%v", err)
	}
	if w.last = r; r.Status != protocol.StatusOK {
		w.say("  process %d: request %d fails: %v", m.id.Serial, id, r.Err())
		if m.refused++; m.asked[id] == nil {
			w.fail("process %v is refused %d, which it has not asked", m.id, id)
		}
		delete(m.asked, id)
		return
	}
	switch q := m.asked[id].(type) {
	default:
		w.readable(q, r.Body)
	case nil:
		w.fail("process %v is answered %d, which it has not asked", m.id, id)
	case *protocol.Submit, *protocol.Await, *protocol.Op:
		var b protocol.OpBody
		if err := protocol.Decode(&b, r.Body); err != nil {
			w.fail("%v", err)
		}
		w.say("  process %d: request %d (%T): %+v", m.id.Serial, id, q, b)
		w.told(m, q, &b)
	case *protocol.GetChange:
		var b protocol.PageBody
		if err := protocol.Decode(&b, r.Body); err != nil {
			w.fail("%v", err)
		}
		w.reply(m, id, &b)
	}
	delete(m.asked, id)
}

// told holds what is said of an operation to what was said before.
func (w *world) told(m *member, q protocol.Message, b *protocol.OpBody) {
	if _, ok := q.(*protocol.Submit); ok && b.Op != 0 {
		m.ops = append(m.ops, b.Op)
	}
	if a, ok := q.(*protocol.Await); ok && b.State < a.Until {
		w.fail("operation %d is %v, and %v was awaited", b.Op, b.State, a.Until)
	}
	if b.Op == 0 {
		return
	}
	if was := w.ops[b.Op]; was.Over() && was != b.State || b.State < was {
		w.fail("operation %d was %v, and is %v", b.Op, was, b.State)
	}
	if b.State.Over() && !w.ops[b.Op].Over() {
		w.ends[b.State]++
	}
	if m.op == b.Op && w.read[b.Op] && b.State > change.Done {
		w.fail("process %v is told that operation %d is %v, which others have found committed", m.id, b.Op, b.State)
	}
	w.ops[b.Op] = b.State
	if (b.State > change.Done) != (b.Why != protocol.WhyNot) {
		w.fail("operation %d is %v because of %d", b.Op, b.State, b.Why)
	}
}

// reply is the answer of an agent, or of the head in place of it.
func (w *world) reply(m *member, id uint32, b *protocol.PageBody) {
	switch q := m.asked[id].(type) {
	case *protocol.Subscribe:
		var ask protocol.QueryBody
		if q.In == 0 {
			m.sets = append(m.sets, q.Set)
		} else if err := protocol.Decode(&ask, b.Rest); err != nil || ask.Page&protocol.QueryPage == 0 {
			w.fail("process %v gets the page %+v: %v", m.id, ask, err)
		} else {
			m.asks = append(m.asks, ask.Page)
		}
	case *protocol.GetChange:
		if q.Op != 0 {
			break
		}
		var c protocol.ChangeBody
		if err := protocol.Decode(&c, b.Rest); err != nil {
			w.fail("process %v is handed %v", m.id, err)
		}
		m.sets = slices.DeleteFunc(m.sets, func(s uint32) bool { return s == q.Set && c.Result.Number != 0 })
		if c.Result.Number != 0 && c.Role == protocol.RoleStaying {
			m.sets = append(m.sets, c.Result.Number)
		}
		if w.rng.IntN(8) == 0 {
			w.todo = append(w.todo, func() { w.decline(m, c.Op) })
			break
		}
		if c.Votes {
			w.vote(m.host, q.Set, q.Change, m.id.Serial)
		} else {
			w.todo = append(w.todo, func() { w.tell(m, &protocol.Op{Kind: protocol.KindVoted, Op: c.Op}) })
		}
	case nil:
		w.fail("process %v gets a page, which it has not asked for", m.id)
	}
	delete(m.asked, id)
}

// decline lets a process say that it takes no part in its change, on which it has not voted: no
// vote commits that any more.
func (w *world) decline(m *member, n uint32) {
	if !m.joined || m.over {
		return
	}
	o, voted := w.h.ops[n], false
	if o != nil {
		_, voted = o.voted[m.id.Serial]
	}
	w.declines++
	w.tell(m, &protocol.Decline{Op: n, Reason: "no"})
	if o == nil || voted || o.body.State < change.Granted || o.body.State > change.Adopting {
		return
	}
	if o.ballot != nil || o.body.State < change.Ready {
		w.fail("operation %d, which process %d has declined, is %v", n, m.id.Serial, o.body.State)
	}
	for _, at := range o.pages { // what it says is on the way
		if w.h.follows[at.set] == nil {
			continue
		}
		for host := range w.h.follows[at.set].hosts {
			if g := w.pages[pageOn{at.set, host}]; g != nil && g.change == at.change && g.word < change.IsCommitted {
				w.fail("operation %d, which process %d has declined, is %v on its page", n, m.id.Serial, g.word)
			}
		}
	}
}

// tell lets a process say something, one way.
func (w *world) tell(m *member, x protocol.Message) {
	if !m.joined || m.over {
		return
	}
	w.frame(m, 0, x)
}

func (w *world) frame(m *member, id uint32, x protocol.Message) {
	body := protocol.Encode(x)
	if len(body) > 1<<10 {
		w.say("process %d, request %d: %T of %d bytes", m.id.Serial, id, x, len(body))
	} else {
		w.say("process %d, request %d: %T %+v", m.id.Serial, id, x, x)
	}
	w.h.Take(m.host, &protocol.Report{Kind: protocol.ReportFrame, Serial: m.id.Serial, Frame: protocol.Frame{Kind: protocol.KindOf(x), ID: id, Body: body}})
	w.flush()
}

func (w *world) ask(m *member, x protocol.Message) {
	if !m.joined || m.over {
		return
	}
	w.lastID++
	m.asked[w.lastID] = x
	w.frame(m, w.lastID, x)
}

// end kills a process, as its launcher sees it.
func (w *world) end(m *member) {
	if m.exited {
		return
	}
	m.over, m.exited = true, true
	w.say("process %d is killed", m.id.Serial)
	w.reports = append(w.reports,
		report{m.host, protocol.Report{Kind: protocol.ReportHungUp, Serial: m.id.Serial}},
		report{m.host, protocol.Report{Kind: protocol.ReportExited, Serial: m.id.Serial, Text: "killed"}},
		report{m.host, protocol.Report{Kind: protocol.ReportFreed, Serial: m.id.Serial}})
}

// leave finalizes a process, which then ends.
func (w *world) leave(m *member) {
	if !m.joined || m.over {
		w.end(m)
		return
	}
	w.ask(m, &protocol.Empty{Kind: protocol.KindFinalize})
	m.over, m.exited = true, true
	w.reports = append(w.reports,
		report{m.host, protocol.Report{Kind: protocol.ReportHungUp, Serial: m.id.Serial}},
		report{m.host, protocol.Report{Kind: protocol.ReportExited, Serial: m.id.Serial, Text: "exited with status 0", Clean: true}},
		report{m.host, protocol.Report{Kind: protocol.ReportFreed, Serial: m.id.Serial}})
}

// check is a Check of all that a process follows.
func (w *world) check(m *member) {
	for _, op := range slices.Sorted(maps.Keys(w.h.ops)) {
		if w.options.Hold && w.rng.IntN(2) == 0 {
			w.tell(m, &protocol.Op{Kind: protocol.KindReleased, Op: op})
			break
		}
	}
	for _, s := range slices.Clone(m.sets) {
		g := w.pages[pageOn{s, m.host}]
		if g == nil || !g.fixed || m.handed[pageChange{s, g.change}] {
			continue
		}
		w.accept(m.host, s, g)
		if g.word == change.IsAccepted || g.word == change.IsCommitted {
			m.handed[pageChange{s, g.change}] = true
			w.ask(m, &protocol.GetChange{Set: s, Change: g.change})
		}
		return
	}
}

// ofOp says or asks something of an operation that is the process's own.
func (w *world) ofOp(m *member) {
	if len(m.ops) == 0 {
		return
	}
	op := m.ops[w.rng.IntN(len(m.ops))]
	switch w.rng.IntN(4) {
	case 0:
		w.ask(m, &protocol.Op{Kind: protocol.KindWithdraw, Op: op})
	case 1:
		w.ask(m, &protocol.Await{Op: op, Until: change.State(1 + w.rng.IntN(7))})
	case 2:
		w.ask(m, &protocol.Update{Op: op, COL: []byte("col")})
	case 3:
		m.ops = slices.DeleteFunc(m.ops, func(n uint32) bool { return n == op })
		w.tell(m, &protocol.Op{Kind: protocol.KindForget, Op: op})
	}
}

// hostile says something about what may be nobody's.
func (w *world) hostile(m *member) {
	n, set := uint32(w.rng.IntN(20)), w.anySet()
	switch w.rng.IntN(11) {
	case 10:
		w.tell(m, &protocol.Decline{Op: n, Reason: "hostile\n\xff"})
	case 0:
		w.ask(m, &protocol.Op{Kind: protocol.KindWithdraw, Op: n})
	case 1:
		w.ask(m, &protocol.GetChange{Set: set, Change: n})
	case 2:
		w.ask(m, &protocol.GetChange{Op: n})
	case 3:
		w.tell(m, &protocol.Op{Kind: protocol.KindReleased, Op: n})
	case 4:
		w.tell(m, &protocol.Op{Kind: protocol.KindReadied, Op: n})
	case 5:
		w.tell(m, &protocol.Op{Kind: protocol.KindForget, Op: n})
	case 6:
		w.tell(m, &protocol.Set{Kind: protocol.KindUnsubscribe, Number: set})
	case 7:
		w.ask(m, &protocol.Update{Op: n})
	case 8:
		w.ask(m, &protocol.Await{Op: n, Until: change.Done})
	case 9:
		w.tell(m, &protocol.Op{Kind: protocol.KindVoted, Op: n})
	}
}
