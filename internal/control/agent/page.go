// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"iter"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// page is the page of a watched set, which its members on this host share with the
// agent. The agent holds the memory until the head drops the page, each member as long
// as it says.
type page struct {
	set     uint32
	members wire.Members // on this host, in the order of the lines
	extent  *extent
	memory  []byte // nil: its pages are not there yet
	lines   changepage.Page
	dropped bool

	asked   map[int]struct{}       // who was given a page that is asked for, by place; nil: it is watched
	waiting []follower             // until memory is there
	orders  []protocol.PageCommand // the same, or until the change before is seen no more

	// change is the last that has begun, word what the head was told of it, and next the
	// page of what the set is to become by it, which members may be handed.
	change changepage.Change
	fixed  changepage.Change // the last that members may be handed as they agree
	word   changepage.State
	idle   bool // the head was told that no member has begun, when it asked how far they are
	next   *page
	stays  map[uint32]struct{} // groups that were woken by its decision; nil: all, or nobody yet
	// stayers is how many processes of these groups stay; for stays.
	stayers int
	queries
}

// follower asks for a page.
type follower struct {
	question
	rest []byte // what the head says beside it
}

// follow gives p the page of a set, which is made if it is not there. Nobody has to
// ask: p is nil then.
func (a *Agent) follow(p *Proc, o *protocol.Command) {
	q := follower{question{p: p, id: o.ID}, o.Frame}
	switch {
	case p == nil && o.Serial != 0: // it has ended
		return
	case p == nil:
	case o.Members.Len() == 0:
		a.followReply(&q, nil, 0, protocol.PageBody{})
		return
	case p.state != protocol.Joined || o.Members.Index(a.id(p)) < 0:
		a.refuse(p, o.ID, protocol.Refused("process %v is %v, and gets no page of set %d", a.id(p), p.state, o.Page.Set))
		return
	}
	g := a.pages[o.Page.Set]
	if g == nil {
		var err error
		if g, err = a.newPage(o); err != nil {
			if p != nil {
				a.refuse(p, o.ID, err)
			}
			return
		}
	}
	if p == nil {
		return
	}
	a.hold(p, g.extent)
	a.handTo(g, p)
	if g.waiting = append(g.waiting, q); g.memory != nil {
		a.answerFollowers(g, nil)
	}
}

// newPage makes the page of a set. Those who ask wait until its memory is there.
func (a *Agent) newPage(o *protocol.Command) (*page, error) {
	n := int64(changepage.Bytes(o.Members.Len()))
	x, err := a.heap.takeSmall(n)
	if err != nil {
		return nil, err
	}
	g := &page{set: o.Page.Set, members: o.Members, extent: x}
	if g.set&protocol.QueryPage != 0 {
		g.asked = map[int]struct{}{}
	}
	a.pages[g.set] = g
	x.holders++
	a.work(x, func(fd int) error { return a.heap.memory.Reserve(fd, x.off, x.bytes) }, func(err error) { a.made(g, err) })
	return g, nil
}

// made: the memory of a page is there, or cannot be had.
func (a *Agent) made(g *page, err error) {
	x, orders := g.extent, g.orders
	g.orders = nil
	if g.dropped {
		err, orders = protocol.NotFound("process set %d", g.set), nil
	}
	if err == nil {
		g.memory, err = segment.Map(x.arena.files.segment, x.off, x.bytes, true)
	}
	if err == nil {
		if g.lines, err = changepage.View(g.memory, g.members.Len()); err != nil {
			panic("gompi: BUG: " + err.Error())
		}
	}
	if err != nil && !g.dropped {
		delete(a.pages, g.set)
	}
	a.answerFollowers(g, err)
	if err != nil {
		a.closePage(g)
		a.drop(x)
	}
	for i := range orders {
		a.page(&orders[i])
	}
	a.late()
}

// answerFollowers gives the page to those who wait, or tells them why there is none.
func (a *Agent) answerFollowers(g *page, err error) {
	if err == nil && g.memory == nil {
		err = protocol.NotFound("process set %d", g.set)
	}
	board, later := a.gives(g.set, func() { a.answerFollowers(g, err) })
	if later {
		return
	}
	waiting := g.waiting
	g.waiting = nil
	x := g.extent
	for i := range waiting {
		switch q := &waiting[i]; {
		case err != nil:
			a.refuse(q.p, q.id, err)
			a.leave(q.p, x)
		case q.p.holds[x.place()] != x:
			a.refuse(q.p, q.id, protocol.Refused("the page of set %d was left before it was given", g.set))
		default:
			place := g.members.Index(a.id(q.p))
			f, err := a.bellFor(q.p, x.arena)
			if err != nil {
				a.refuse(q.p, q.id, err)
				a.leave(q.p, x)
				continue
			}
			if g.asked != nil {
				g.asked[place] = struct{}{}
			}
			a.followReply(q, f, protocol.FrameFDs, protocol.PageBody{
				X: x.name(), Members: g.members.Len(), Place: place, Area: board.told(),
			})
			f.Release()
		}
	}
}

// followReply gives p a page, with what the head says beside it.
func (a *Agent) followReply(q *follower, f *Files, fds int, b protocol.PageBody) {
	b.Rest = q.rest
	frame, err := protocol.ReplyFrame(q.id, fds, &b)
	switch {
	case err != nil:
		a.refuse(q.p, q.id, err)
	case fds == 0:
		a.send(q.p, Action{Frame: frame})
	default:
		a.sendFiles(q.p, f, frame)
	}
}

// dropPage: nobody follows the set any more.
func (a *Agent) dropPage(g *page) {
	delete(a.pages, g.set)
	delete(a.behinds, g.set)
	if g.dropped = true; g.memory != nil {
		g.freeCalls()
		g.lines.Drop()
		a.turned(g)
		a.ringRest(g)
		g.extent.left = g
		a.left[g] = struct{}{}
		a.drop(g.extent)
	}
	a.sweep()
}

// sweep finds members that have left dropped pages without a word: they go on with
// another one. It comes with each page that begins or ends to be used.
func (a *Agent) sweep() {
	for g := range a.left {
		for i := range g.members.Len() {
			if p := a.procs[g.members.At(i).Serial]; p != nil && p.holds[g.extent.place()] == g.extent && g.lines.Left(i) {
				a.leave(p, g.extent)
			}
			if g.memory == nil {
				break // that was the last
			}
		}
	}
}

// closePage lets go of what the agent has of a page, but for its place.
func (a *Agent) closePage(g *page) {
	if g.memory != nil {
		if err := segment.Unmap(g.memory); err != nil {
			panic("gompi: BUG: " + err.Error())
		}
		g.memory = nil
	}
}

// page does what the head orders on the page of a set.
func (a *Agent) page(o *protocol.PageCommand) {
	g := a.pages[o.Set]
	c := changepage.Change(o.Change)
	switch {
	case g == nil: // whoever was to have it has ended
		a.notHere(o)
		return
	case o.Do == protocol.PageDrop:
		a.dropPage(g)
		return
	case g.memory != nil && a.behinds[g.set] == g && (o.Do == protocol.PageWithdraw || o.Do == protocol.PageBreak):
		a.withdrawLate(g, o.Change)
		return
	case g.memory != nil && o.Do == protocol.PageHide:
		a.hideFrom(g, c, o.Call)
		a.late()
		return
	case g.memory == nil || a.behinds[g.set] == g:
		g.orders = append(g.orders, *o)
		return
	case a.following(o) || o.Do == protocol.PageBegin && a.behind(g):
		a.behinds[g.set] = g
		g.orders = append(g.orders, *o)
		return
	case c > g.change && o.Do != protocol.PageBegin && o.Do != protocol.PagePoll: // it was withdrawn before it began
		a.notHere(o)
		return
	}
	switch o.Do {
	case protocol.PageBegin:
		a.sweep()
		g.change, g.word, g.idle, g.queries = c, changepage.Open, false, queries{}
		if a.begin(g, o); o.Options.Hold {
			a.ring(g) // layers wait for the change before it is handed out
		} else {
			a.turned(g)
		}
	case protocol.PageFix:
		g.lines.Announce(c)
		g.lines.Agree(c, o.Options.Step, o.Options.Lookahead)
		a.show(g, c)
		if o.Options.Hold {
			a.ring(g) // whoever has nothing else to do waits for it (Watcher.Shown)
		}
		g.fixed = c
		a.acceptVoted(g)
	case protocol.PageWithdraw, protocol.PageBreak:
		late := g.late() // who reads what is decided may vote still
		s := g.lines.Withdraw(c)
		if s == changepage.Accepted {
			g.handed = true
			if o.Do == protocol.PageBreak {
				s = g.lines.Break(c)
			}
		}
		a.ring(g)
		if c == g.change {
			g.word = s
		}
		a.tellWord(g.set, c, s, g.iteration(c)).Stuck = late
	case protocol.PageAccept:
		g.lines.Accept(c)
		a.look(g)
	case protocol.PageVote:
		if o.Members.Len() == 0 {
			g.lines.Vote(c)
		}
		for place := range g.places(o.Members) {
			g.lines.VoteOf(c, place)
		}
		a.acceptVoted(g)
		a.look(g)
	case protocol.PageNoVote:
		for place := range g.places(o.Members) {
			g.lines.NoVote(c, place)
		}
	case protocol.PageCommit:
		g.lines.Commit(c)
		a.look(g)
	case protocol.PageOver:
		g.lines.End(c)
		a.hide(g, c)
		a.ring(g)
		if s, _ := g.lines.Decision(c); s != changepage.Committed { // else it is still to be handed out
			a.unhand(g, c)
		}
	case protocol.PageAsk:
		g.lines.Pause(c)
		a.holdCalls(g, o.Do, c)
	case protocol.PagePublish:
		g.lines.Publish(c, o.Agreed-1)
		g.showFrom(c, o.Call)
		a.ring(g)
	case protocol.PagePoll:
		a.tellLook(g, o.Do, 0, 0)
	case protocol.PageBegun:
		a.tellLook(g, o.Do, o.Change, 0)
	}
}

// acceptVoted accepts the change of the page, which members may be handed, when all have
// voted: newcomers early, and who has left. Nobody might come who is handed it.
func (a *Agent) acceptVoted(g *page) {
	if g.fixed == g.change && g.lines.Missing(g.change) == 0 {
		g.lines.Accept(g.change)
		a.look(g)
	}
}

// places are the lines of those of some processes that are members.
func (g *page) places(of wire.Members) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, id := range of.All() {
			if place := g.members.Index(id); place >= 0 && !yield(place) {
				return
			}
		}
	}
}

// notHere answers an order about a change of which nobody here was handed anything.
func (a *Agent) notHere(o *protocol.PageCommand) {
	switch o.Do {
	case protocol.PageWithdraw, protocol.PageBreak:
		a.tellWord(o.Set, changepage.Change(o.Change), changepage.RolledBack, 0)
	case protocol.PageAsk, protocol.PageOver, protocol.PageBegun:
		a.up = append(a.up, protocol.Report{Kind: protocol.ReportProgress, Set: o.Set, Change: o.Change, Progress: protocol.Progress{Of: o.Do}})
	}
}

func (a *Agent) tellLook(g *page, of protocol.PageDo, change uint32, calls uint64) protocol.Progress {
	l := g.progress()
	l.Of, l.Calls = of, calls
	a.up = append(a.up, protocol.Report{Kind: protocol.ReportProgress, Set: g.set, Change: change, Progress: l, Stuck: g.late()})
	return l
}

// swapped: p says that it has swapped the word of a change; or that it is behind no
// more; or that it waits for the head to find the iteration.
func (a *Agent) swapped(p *Proc, m *protocol.StatusWord) {
	g := a.pages[m.Set]
	if g == nil || g.memory == nil || p.holds[g.extent.place()] != g.extent || changepage.Change(m.Change) != g.change {
		return
	}
	if a.behinds[g.set] == g {
		a.late()
		return
	}
	if g.idle && g.lines.PausedChange() == g.change {
		a.holdCalls(g, 0, g.change)
	}
	a.look(g)
}

// look tells the head what the word of the page's change says, once, and wakes who waits
// for that when it is decided: whoever has decided may not have rung yet, and what it says
// comes when the page is dropped.
func (a *Agent) look(g *page) {
	s, ok := g.lines.Decision(g.change)
	if !ok || s <= g.word {
		return
	}
	if g.word = s; s > changepage.Accepted {
		a.ringDecided(g)
	}
	a.tellWord(g.set, g.change, s, g.iteration(g.change))
}

// iteration is the agreed one of a change + 1; 0: none.
func (g *page) iteration(c changepage.Change) uint64 {
	if n, ok := g.lines.Agreed(c); ok {
		return n + 1
	}
	return 0
}

var verdicts = [...]change.Decision{changepage.Accepted: change.IsAccepted, changepage.Committed: change.IsCommitted, changepage.RolledBack: change.IsRolledBack}

func (a *Agent) tellWord(set uint32, c changepage.Change, s changepage.State, iteration uint64) *protocol.Report {
	a.up = append(a.up, protocol.Report{
		Kind: protocol.ReportStatusWord, Set: set, Change: uint32(c), Word: verdicts[s], Iteration: iteration,
	})
	return &a.up[len(a.up)-1]
}

// late is whom the page's change waits for.
func (g *page) late() protocol.Stuck {
	l := protocol.Stuck{At: g.iteration(g.change)}
	for i := range g.members.Len() {
		handed, voted := g.lines.Progress(g.change, i)
		switch line := g.lines.MemberReport(i); {
		case voted:
		case !handed && (!line.Checked || line.Iteration+1 < l.At):
			l.Behind.Add(g.members.At(i).Serial)
		default:
			l.Silent.Add(g.members.At(i).Serial)
		}
	}
	return l
}

// What a member may say at most of its progress.
const (
	maxIteration = time.Hour
	maxMoved     = 1 << 50 // bytes
)

// progress is how far the members are, as they say.
func (g *page) progress() protocol.Progress {
	var l protocol.Progress
	told, total := 0, time.Duration(0)
	for i := range g.members.Len() {
		line := g.lines.MemberReport(i)
		if line.Checked {
			n := min(line.Iteration, changepage.MaxNumber)
			if l.Begun == 0 || n < l.Least {
				l.Least = n
			}
			l.Most = max(l.Most, n)
			l.Begun++
		}
		if line.Nanos > 0 {
			told++
			total += time.Duration(min(line.Nanos, uint64(maxIteration)))
		}
		l.Bytes = min(l.Bytes+min(line.Bytes, maxMoved), maxMoved)
		l.Reports += uint64(g.lines.Reports(g.change, i))
	}
	if told > 0 {
		l.Mean = total / time.Duration(told)
	}
	return l
}
