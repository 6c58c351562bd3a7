// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"gompi/internal/base/wire"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
)

// What members are handed with a change stands on its page, with the place of the page
// of its Result, which the members of both may touch from then on: so nobody asks.
// After a roll-back who has taken it gives it back, as it says; for the others the
// agent does.

// following reports whether the page of the Result of the change that is to begin, or
// what its members are given, is yet to come.
func (a *Agent) following(o *protocol.PageCommand) bool {
	next, g := a.pages[o.Next], a.gifts[o.Next]
	return o.Do == protocol.PageBegin && (next != nil && next.memory == nil || g != nil && !g.ready)
}

// begin puts a change on a page, with what its members are handed.
func (a *Agent) begin(g *page, o *protocol.PageCommand) {
	g.next = nil
	next, c := a.pages[o.Next], changepage.Change(o.Change)
	var body []byte
	if len(o.Body) > 0 {
		b := protocol.PageBody{Rest: o.Body, Area: a.gifts[o.Next].told()}
		if next != nil {
			b.X, b.Members = next.extent.name(), next.members.Len()
		}
		body = protocol.Encode(&b)
	}
	if !g.lines.Begin(c, int(o.Votes), body) || next == nil {
		return // they ask
	}
	g.next = next
	for i := range g.members.Len() {
		a.handTo(g, a.procs[g.members.At(i).Serial])
	}
}

// handTo lets p touch what it may be handed on a page that it has.
func (a *Agent) handTo(g *page, p *Proc) {
	if p != nil && g.next != nil && !g.next.dropped && p.holds[g.extent.place()] == g.extent && g.next.members.Index(a.id(p)) >= 0 &&
		!g.lines.Took(g.change, g.members.Index(a.id(p))) { // else it was handed it before it came back
		a.hold(p, g.next.extent)
	}
}

// unhand takes back what members were not handed, and will not be: the change was
// rolled back.
func (a *Agent) unhand(g *page, c changepage.Change) {
	next := g.next
	if next == nil || c != g.change {
		return
	}
	g.next = nil
	for i := range g.members.Len() {
		if g.lines.Close(c, i) {
			if p := a.procs[g.members.At(i).Serial]; p != nil {
				a.leave(p, next.extent)
			}
		}
	}
}

// name is where an extent is.
func (x *extent) name() wire.ArenaRange {
	return wire.ArenaRange{Arena: x.arena.number, Total: x.arena.bytes, Off: x.off, Bytes: x.bytes}
}
