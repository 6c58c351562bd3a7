// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"

	"gompi/internal/change"
	"gompi/internal/control"
	"gompi/internal/setpage"
)

// queries is how far the calls of Query are that see the change of a page. Later ones
// than the change begin when all of them have ended: until then what is ordered waits.
type queries struct {
	shown, hidden bool
	handed        bool // somebody may have been handed it
	drain         setpage.Drain
}

// show lets calls of Query see the change.
func (g *page) show(c setpage.Change) {
	if !g.queries.shown && c == g.change {
		g.queries.shown = true
		g.lines.ShowQueries(c)
		g.turned()
	}
}

// hide is the end of that.
func (g *page) hide(c setpage.Change) {
	q := &g.queries
	if !q.shown || q.hidden || c != g.change {
		return
	}
	q.hidden = true
	s, _ := g.lines.Verdict(c)
	g.lines.HideQueries(c, q.handed || s == setpage.Committed)
}

// turned wakes the calls that have waited for what the agent has found out.
func (g *page) turned() {
	if g.lines.Looking() {
		g.ring()
	}
}

// behind reports whether a member still may see the change of the page, and has the
// members tell when they do not any more. Who has ended, or left the page, does not
// count.
func (a *Agent) behind(g *page) bool {
	q := &g.queries
	if !q.hidden {
		return false
	}
	lives := func(place int) bool {
		p := a.procs[g.members.At(place).Serial]
		return p != nil && p.holds[g.extent.place()] == g.extent
	}
	g.lines.Wait(g.change)
	for i := range g.members.Len() {
		if lives(i) && g.lines.Behind(g.change, i) {
			return true
		}
	}
	// From here on no call that sees the change begins.
	if !g.lines.Drained(&q.drain, lives) {
		return true
	}
	g.lines.Wait(0)
	return false
}

// late does what was ordered on pages of which a member was behind, and is not.
func (a *Agent) late() {
	for set, g := range a.behinds {
		if a.behind(g) {
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
	g.orders = slices.DeleteFunc(g.orders, func(o control.PageOrder) bool { return o.Change == c })
	a.up = append(a.up, control.Report{Kind: control.ReportWord, Set: g.set, Change: c, Word: change.IsRolledBack})
}
