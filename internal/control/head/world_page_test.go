// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// sheet is one host's page of a set.
type sheet struct {
	change uint32
	word   change.Decision // 0: open
	votes  uint32
	voted  map[uint32]bool // members that have, or have no vote
	fixed  bool
	begun  bool                   // a member has
	calls  uint64                 // of Query
	shown  uint64                 // from that call on members see the change, and it is not said until when
	queue  []protocol.PageCommand // meanwhile
}

func (w *world) word(host, set uint32, g *sheet) {
	if f := w.h.follows[set]; g.word == change.IsCommitted && f != nil && f.op != nil {
		w.read[f.op.number] = true
	}
	w.reports = append(w.reports, report{host, protocol.Report{Kind: protocol.ReportStatusWord, Set: set, Change: g.change, Word: g.word, Iteration: 4}})
}

// vote is that of a member, or of a newcomer, which has no line: 0.
func (w *world) vote(host, set, c, member uint32) {
	g := w.pages[pageOn{set, host}]
	if g == nil || g.change != c || g.votes == 0 || g.voted[member] {
		return
	}
	g.voted[member] = member != 0
	if g.votes--; g.votes == 0 {
		w.allVoted(set, g)
	}
	if g.votes == 0 && g.word == change.IsAccepted {
		g.word = change.IsCommitted
		w.word(host, set, g)
	}
	if g.votes == 0 && g.fixed {
		w.accept(host, set, g)
	}
}

// allVoted checks that a change misses the vote of none that takes part in it and lives.
func (w *world) allVoted(set uint32, g *sheet) {
	f := w.h.follows[set]
	if f == nil || f.op == nil || f.op.changeOn(set) != g.change {
		return
	}
	for _, id := range f.op.voters {
		if _, new := f.op.voted[id.Serial]; !new && !g.voted[id.Serial] && !w.procs[id.Serial].over {
			w.fail("operation %d misses no vote, though process %d has not voted", f.op.number, id.Serial)
		}
	}
}

// page is what an agent does on a page.
func (w *world) page(host uint32, o *protocol.PageCommand) {
	g := w.pages[pageOn{o.Set, host}]
	w.say("  page %d of host %d: %+v, is %+v", o.Set, host, o, g)
	if g == nil {
		w.noPage(host, o)
		return
	}
	if o.Do == protocol.PageDrop {
		delete(w.pages, pageOn{o.Set, host})
		return
	}
	switch late := len(g.queue) > 0 || o.Do == protocol.PageBegin && g.shown > 0; {
	case o.Do == protocol.PageHide:
		if o.Change != g.change || o.Call <= g.calls || o.Call < g.shown || g.shown == 0 || g.fixed {
			w.fail("%+v on %+v", o, g)
		}
		queue := g.queue
		g.shown, g.queue = 0, nil
		for i := range queue {
			w.page(host, &queue[i])
		}
		return
	case late && (o.Do == protocol.PageWithdraw || o.Do == protocol.PageBreak):
		g.queue = slices.DeleteFunc(g.queue, func(q protocol.PageCommand) bool { return q.Change == o.Change })
		w.word(host, o.Set, &sheet{change: o.Change, word: change.IsRolledBack})
		return
	case late:
		g.queue = append(g.queue, *o)
		return
	case o.Change > g.change && o.Do != protocol.PageBegin && o.Do != protocol.PagePoll: // it was withdrawn before it began
		w.noPage(host, o)
		return
	}
	if o.Do == protocol.PageBegin {
		if o.Change <= g.change {
			w.fail("change %d after %d on the page of set %d", o.Change, g.change, o.Set)
		}
		*g = sheet{change: o.Change, votes: o.Votes, voted: map[uint32]bool{}, calls: g.calls}
		return
	}
	if o.Change != g.change {
		w.fail("%+v where change %d is", o, g.change)
	}
	switch o.Do {
	case protocol.PageFix:
		if g.fixed = true; g.votes == 0 {
			w.accept(host, o.Set, g)
		}
	case protocol.PagePoll:
		w.reports = append(w.reports, report{host, protocol.Report{Kind: protocol.ReportProgress, Set: o.Set, Progress: protocol.Progress{Of: o.Do, Bytes: uint64(w.rng.IntN(9))}}})
	case protocol.PageBegun:
		w.look(host, o, protocol.Progress{})
	case protocol.PageAsk:
		g.calls += uint64(w.rng.IntN(3))
		if g.begun = g.begun || g.calls > 0 || w.rng.IntN(3) > 0; g.begun {
			w.look(host, o, protocol.Progress{Begun: 1, Most: uint64(w.rng.IntN(9)), Calls: g.calls})
			break
		}
		w.look(host, o, protocol.Progress{})
		if o.Set&protocol.QueryPage == 0 && w.rng.IntN(2) == 0 {
			w.reports = append(w.reports, report{host, protocol.Report{Kind: protocol.ReportProgress, Set: o.Set, Change: o.Change}}) // one waits for it
		}
	case protocol.PagePublish:
		if o.Agreed == 0 && g.begun || g.word != 0 || o.Call <= g.calls {
			w.fail("%+v on %+v", o, g)
		}
		g.fixed, g.word, g.shown = true, change.IsAccepted, o.Call
	case protocol.PageWithdraw, protocol.PageBreak:
		if g.word == 0 || o.Do == protocol.PageBreak && g.word == change.IsAccepted {
			g.word = change.IsRolledBack
		}
		w.word(host, o.Set, g)
	case protocol.PageAccept:
		w.accept(host, o.Set, g)
	case protocol.PageVote:
		if o.Members.Len() == 0 {
			w.vote(host, o.Set, o.Change, 0)
		}
		for _, id := range o.Members.All() {
			w.vote(host, o.Set, o.Change, id.Serial)
		}
	case protocol.PageNoVote:
		for _, id := range o.Members.All() {
			g.voted[id.Serial] = true
		}
	case protocol.PageCommit:
		if g.word == change.IsAccepted {
			g.word = change.IsCommitted
			w.word(host, o.Set, g)
		}
	case protocol.PageOver:
		if g.fixed = false; g.shown > 0 {
			g.calls = max(g.calls, g.shown-1+uint64(w.rng.IntN(2)))
			w.look(host, o, protocol.Progress{Calls: g.calls})
		}
	}
}

// accept swaps the word of a change from open to accepted, and on if all have voted.
func (w *world) accept(host, set uint32, g *sheet) {
	if g.word != 0 {
		return
	}
	g.word = change.IsAccepted
	w.word(host, set, g)
	if g.votes == 0 {
		g.word = change.IsCommitted
		w.word(host, set, g)
	}
}

// noPage is what an agent says of a change that nobody was handed there.
func (w *world) noPage(host uint32, o *protocol.PageCommand) {
	switch o.Do {
	case protocol.PageWithdraw, protocol.PageBreak:
		w.word(host, o.Set, &sheet{change: o.Change, word: change.IsRolledBack})
	case protocol.PageAsk, protocol.PageOver, protocol.PageBegun:
		w.look(host, o, protocol.Progress{})
	}
}

func (w *world) look(host uint32, o *protocol.PageCommand, l protocol.Progress) {
	l.Of = o.Do
	w.reports = append(w.reports, report{host, protocol.Report{Kind: protocol.ReportProgress, Set: o.Set, Change: o.Change, Progress: l}})
}
