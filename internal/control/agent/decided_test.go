// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
)

// The agent wakes the members as soon as it sees a decision itself, whatever it was asked
// to do: who has decided may ring and tell of that when the page is dropped.
func TestWokenByWhoSees(t *testing.T) {
	const n = 3 << bellShift
	for name, c := range map[string]struct {
		do   protocol.PageCommand
		word bool
	}{
		"the vote of one that has left": {do: protocol.PageCommand{Do: protocol.PageVote}},
		"a vote for all":                {do: protocol.PageCommand{Do: protocol.PageCommit}},
		"an acceptance":                 {do: protocol.PageCommand{Do: protocol.PageAccept}},
		"the word of another":           {word: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPageRig(t, n)
			var bells []int
			for i, s := range r.procs {
				r.follow(s, uint32(i+1), 5)
				r.work(nil)
				bells = append(bells, r.epoll(uint32(i+1)))
			}
			r.beginTo(1, []byte("body"))
			r.work(nil)
			page, _ := r.view(1)
			page.Accept(1)
			if !page.Commit(1) {
				t.Fatal("not committed")
			}
			for _, b := range bells {
				r.rung(b)
			}
			if c.do.Set, c.do.Change = 5, 1; c.word {
				r.word(r.procs[0], 5, 1)
			} else {
				r.do(c.do)
			}
			r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: 5})
			r.work(nil)
			r.word(r.procs[n-1], 5, 1)
			r.work(nil)
			for i, b := range bells {
				if !r.rung(b) {
					t.Fatalf("member %d sleeps on", i)
				}
			}
			r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: 6})
			for _, s := range r.procs {
				r.end(s)
			}
			r.empty()
		})
	}
}

// A call of Query that waits while the head finds something out is woken when the page
// is dropped instead.
func TestCallsWokenByDrop(t *testing.T) {
	r := newPageRig(t, 1)
	r.follow(r.procs[0], 1, 5)
	r.work(nil)
	bell := r.epoll(1)
	page, _ := r.view(1)
	m := page.Member(0, 1, 1)
	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: 5, Change: 1, Votes: 1})
	r.do(protocol.PageCommand{Do: protocol.PageAsk, Set: 5, Change: 1})
	k := m.BeginCall()
	if _, ok := m.Visible(k); ok {
		t.Fatal("the call does not wait")
	}
	r.rung(bell)
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: 5})
	if !r.rung(bell) || !page.Dropped() {
		t.Error("who waits is not woken when the page is dropped")
	}
	if c, ok := m.Visible(k); c != 0 || !ok {
		t.Errorf("the call sees change %d, %v", c, ok)
	}
	r.end(r.procs[0])
	r.empty()
}

// The votes of members that are named count once, those of newcomers each.
func TestPageVotes(t *testing.T) {
	r := newPageRig(t, 3)
	r.follow(r.procs[0], 1, 5)
	r.work(nil)
	page, _ := r.view(1)
	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: 5, Change: 1, Votes: 4})
	page.Member(0, 1, 1).Vote(1)
	named := r.members
	for range 2 {
		r.do(protocol.PageCommand{Do: protocol.PageVote, Set: 5, Change: 1, Members: named})
		if n := page.Missing(1); n != 1 {
			t.Errorf("%d votes are missing, not that of the newcomer", n)
		}
	}
	r.do(protocol.PageCommand{Do: protocol.PageVote, Set: 5, Change: 1})
	if n := page.Missing(1); n != 0 {
		t.Errorf("%d votes are missing", n)
	}
	r.do(protocol.PageCommand{Do: protocol.PageBreak, Set: 5, Change: 1})
	r.do(protocol.PageCommand{Do: protocol.PageOver, Set: 5, Change: 1})
	r.do(protocol.PageCommand{Do: protocol.PageBegin, Set: 5, Change: 2, Votes: 2})
	r.do(protocol.PageCommand{Do: protocol.PageNoVote, Set: 5, Change: 2, Members: named})
	page.Member(1, 1, 1).Vote(changepage.Change(2))
	if n := page.Missing(2); n != 2 {
		t.Errorf("%d votes are missing after that of one that has none", n)
	}
	r.do(protocol.PageCommand{Do: protocol.PageDrop, Set: 5})
	for _, s := range r.procs {
		r.end(s)
	}
	r.empty()
}
