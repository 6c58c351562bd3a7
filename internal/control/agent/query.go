// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"

	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
)

// queries is how far the calls of Query are that see the change of a page. Later ones
// than the change begin when all of them have ended: until then what is ordered waits.
type queries struct {
	shown, hidden bool
	byHead        bool // from which call to which is for the head to say
	held          bool // calls wait for that
	handed        bool // somebody may have been handed it
	drain         changepage.Drain
}

// show lets calls of Query see the change.
func (a *Agent) show(g *page, c changepage.Change) {
	if !g.queries.shown && c == g.change {
		g.queries.shown = true
		g.lines.ShowQueries(c)
		a.turned(g)
	}
}

// holdCalls tells the head how often members have called, who wait from now on.
func (a *Agent) holdCalls(g *page, of protocol.PageDo, c changepage.Change) {
	most := uint64(0)
	if c == g.change {
		g.queries.held = true
		most = g.lines.HoldQueries()
	}
	l := a.tellLook(g, of, uint32(c), most)
	// Of a page on which is only asked the head takes no second word.
	g.idle = c == g.change && g.set&protocol.QueryPage == 0 && l.Begun == 0 && most == 0
}

// freeCalls lets them go on, if they still wait.
func (g *page) freeCalls() {
	if g.queries.held {
		g.queries.held = false
		g.lines.FreeQueries()
	}
}

// showFrom and hideFrom are show and hide where the head says from which call on.
func (g *page) showFrom(c changepage.Change, call uint64) {
	if q := &g.queries; !q.shown && c == g.change {
		q.shown, q.byHead, q.held = true, true, false
		g.lines.ShowQueriesFrom(c, call)
	}
}

func (a *Agent) hideFrom(g *page, c changepage.Change, call uint64) {
	if q := &g.queries; q.shown && !q.hidden && c == g.change {
		q.hidden, q.held = true, false
		g.lines.HideQueriesFrom(c, call)
		a.ring(g)
	}
}

// hide is the end of what show has begun.
func (a *Agent) hide(g *page, c changepage.Change) {
	q := &g.queries
	switch {
	case c != g.change || q.hidden:
		return
	case !q.shown:
		g.freeCalls()
		return
	case q.byHead:
		a.holdCalls(g, protocol.PageOver, c)
		return
	}
	q.hidden = true
	s, _ := g.lines.Decision(c)
	g.lines.HideQueries(c, q.handed || s == changepage.Committed)
}

// turned wakes the calls that have waited for what the agent has found out.
func (a *Agent) turned(g *page) {
	if g.lines.HasActiveCalls() {
		a.ring(g)
	}
}

// behind reports whether a member still may see the change of the page, or is to be
// handed it, and has the members tell when they do not any more. Who has ended, or left
// the page, does not count. Those who have never had it do where they ask without having
// watched.
func (a *Agent) behind(g *page) bool {
	q := &g.queries
	if !q.hidden {
		return q.byHead // the head is finding out until when they do
	}
	lives := func(place int) bool {
		p := a.procs[g.members.At(place).Serial]
		if p == nil || p.holds[g.extent.place()] == g.extent {
			return p != nil
		}
		_, had := g.asked[place]
		return g.asked != nil && !had && p.state <= protocol.Joined
	}
	g.lines.SetAwaited(g.change)
	for i := range g.members.Len() {
		if lives(i) && (g.lines.StillVisible(g.change, i) || g.asked == nil && g.lines.Missed(g.change, i)) {
			return true
		}
	}
	// From here on no call that sees the change begins.
	if !g.lines.Drained(&q.drain, lives) {
		return true
	}
	g.lines.SetAwaited(0)
	return false
}

// late does what was ordered on pages of which a member was behind, and is not, or
// whose next page was not there.
func (a *Agent) late() {
	for set, g := range a.behinds {
		if len(g.orders) > 0 && a.following(&g.orders[0]) || a.behind(g) {
			continue
		}
		delete(a.behinds, set)
		orders := g.orders
		g.orders = nil
		for i := range orders {
			a.page(&orders[i])
		}
	}
}

// withdrawLate ends a change that has not begun on its page, where another one is
// looked at: nobody was handed it.
func (a *Agent) withdrawLate(g *page, c uint32) {
	g.orders = slices.DeleteFunc(g.orders, func(o protocol.PageCommand) bool { return o.Change == c })
	a.up = append(a.up, protocol.Report{Kind: protocol.ReportStatusWord, Set: g.set, Change: c, Word: change.IsRolledBack})
}
