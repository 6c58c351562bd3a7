// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"math/rand/v2"
	"slices"
)

const (
	maxRanks  = 8
	minEvents = 10
	maxEvents = 80
	// window is how many events a nonblocking operation may stay open.
	window = 12
	// tags is how many different tags ordinary messages use: few, so that
	// messages of equal tags queue up.
	tags = 3
	// GroupHeader is the least size of a message of a group, in bytes: its
	// payload begins with its number, as its receive cannot know it.
	GroupHeader = 8
)

// patient are the ways to send that do not wait.
var patient = [...]SendHow{Isend, Issend, Bsend}

type generator struct {
	r        *rand.Rand
	p        *Program
	comms    []int // that live, without Wild
	current  int   // among comms: several events in a row use one
	prepared []prepared
	mix      mixture
	theme    theme
	talk     talk
}

// talk is a row of short messages that two ranks answer each other with.
type talk struct {
	left  int // of them
	last  Event
	bytes int // at most
}

// prepared is a persistent collective.
type prepared struct {
	id, comm int
	busy     int // the last event before which a start may be under way
}

// mixture is how many of 100 events are of a kind; the rest is of
// communicators.
type mixture struct{ message, group, exchange, withdraw, collective, starts int }

// Programs are about messages, about collectives and communicators, or about
// many collectives of few communicators, which then share memory.
var mixtures = [...]mixture{
	{message: 55, group: 13, exchange: 8, withdraw: 3, collective: 14, starts: 2},
	{message: 12, group: 4, exchange: 2, withdraw: 1, collective: 60, starts: 12},
	{message: 5, group: 1, exchange: 1, collective: 87, starts: 4},
}

// Generate makes the program of a seed, which also says how many ranks run it.
func Generate(seed uint64) *Program { return GenerateFor(seed, 0) }

// GenerateFor makes a program for so many ranks.
func GenerateFor(seed uint64, ranks int) *Program {
	g := generator{r: rand.New(rand.NewPCG(seed, 0x6f7261636c65)), comms: []int{World}}
	g.p = &Program{Seed: seed, Ranks: 1 + g.r.IntN(maxRanks)}
	if ranks > 0 {
		g.p.Ranks = ranks
	}
	g.mix = mixtures[g.r.IntN(len(mixtures))]
	g.theme = g.someTheme()
	n := minEvents + g.r.IntN(maxEvents-minEvents)
	for i := 0; i < n; i++ {
		if g.talk.left > 0 {
			n++ // beside the others
		}
		e := g.event(FirstEvent + i)
		g.p.Events = append(g.p.Events, e)
		g.note(&e)
	}
	return g.p
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

// one is a member of a group.
func (g *generator) one(group []int) int { return group[g.r.IntN(len(group))] }

func (g *generator) event(id int) Event {
	if g.talk.left > 0 {
		return g.answer(id)
	}
	if g.chance(12) {
		g.current = g.r.IntN(len(g.comms))
	}
	e := Event{ID: id, Comm: g.comms[g.current]}
	k := g.r.IntN(100)
	below := func(percent int) bool {
		k -= percent
		return k < 0
	}
	switch m := g.mix; {
	case below(m.message):
		g.message(&e)
	case below(m.group):
		g.group(&e)
	case below(m.exchange):
		g.exchange(&e)
	case below(m.withdraw):
		e.Kind, e.Tag = Withdraw, tags+id
		e.To = g.one(g.someGroup(e.Comm))
		e.From = g.one(g.peers(e.Comm, e.To))
	case below(m.collective):
		g.collective(&e)
	case below(m.starts) && g.starts(&e):
	default:
		g.communicator(&e)
	}
	return e
}

// note keeps what the events to come must know.
func (g *generator) note(e *Event) {
	switch {
	case e.Kind == Make:
		g.comms = append(g.comms, e.ID)
		if g.chance(50) {
			g.current = len(g.comms) - 1
		}
	case e.Kind == Free:
		g.comms = slices.DeleteFunc(g.comms, func(c int) bool { return c == e.Comm })
		g.prepared = slices.DeleteFunc(g.prepared, func(p prepared) bool { return p.comm == e.Comm })
		g.current = g.r.IntN(len(g.comms))
	case e.Kind == Collective && e.Form == Persistent:
		g.prepared = append(g.prepared, prepared{id: e.ID, comm: e.Comm})
	}
}

// someGroup is one of the groups of a communicator.
func (g *generator) someGroup(comm int) []int {
	groups := g.p.Layout(comm).Groups
	return groups[g.r.IntN(len(groups))]
}

// peers returns the ranks with which a rank exchanges messages in a communicator.
func (g *generator) peers(comm, rank int) []int {
	pl, _ := g.p.Layout(comm).Place(rank)
	return pl.Peers()
}

func (g *generator) bytes() int {
	switch k := g.r.IntN(100); {
	case k < 5:
		return 0
	case k < 40:
		return 1 + g.r.IntN(64)
	case k < 65:
		return 1 + g.r.IntN(4<<10)
	case k < 92:
		return 1 + g.r.IntN(70<<10)
	}
	return 1 + g.r.IntN(300<<10)
}

// due is when something that event id starts is completed.
func (g *generator) due(id int) int { return id + g.r.IntN(window) }

func (g *generator) message(e *Event) {
	e.Kind, e.From = Message, g.one(g.someGroup(e.Comm))
	e.To = g.one(g.peers(e.Comm, e.From))
	e.Tag, e.Bytes, e.AnyTag = g.r.IntN(tags), g.bytes(), g.chance(20)
	e.Send, e.Recv = SendHow(g.r.IntN(int(numSends))), RecvHow(g.r.IntN(int(numRecvs)))
	e.SendDue, e.RecvDue = g.due(e.ID), g.due(e.ID)
	if e.From == e.To {
		// A rank cannot block in one half of a message to itself.
		e.Recv = Irecv
	}
	if e.From != e.To && g.chance(20) {
		g.talk = talk{6 + g.r.IntN(30), *e, []int{8, 16, 24, 30}[g.r.IntN(4)]}
	}
	switch e.Recv {
	case Recv, Irecv:
		if e.Bytes > 0 && g.chance(8) {
			e.Short = 1 + g.r.IntN(e.Bytes)
		} else if g.chance(30) {
			e.Room = g.r.IntN(200)
		}
	}
}

// answer is the next message of a talk: it goes back, and now and then on.
func (g *generator) answer(id int) Event {
	t := &g.talk
	t.left--
	e := Event{ID: id, Kind: Message, Comm: t.last.Comm, From: t.last.To, To: t.last.From, Bytes: g.r.IntN(t.bytes + 1)}
	if g.chance(5) {
		e.From, e.To = e.To, e.From
	}
	if g.chance(50) {
		e.Tag = g.r.IntN(tags)
	}
	e.Send, e.Recv = Send, Recv
	if g.chance(8) {
		e.Send, e.Recv = SendHow(g.r.IntN(int(numSends))), RecvHow(g.r.IntN(int(numRecvs)))
	}
	e.SendDue, e.RecvDue = g.due(id), g.due(id)
	t.last = e
	return e
}

func (g *generator) group(e *Event) {
	e.Kind = Group
	e.RecvDue, e.Tag = g.due(e.ID), tags+e.ID
	e.Recv = Recv
	if g.chance(50) {
		e.Recv = Irecv
	}
	if g.chance(40) {
		e.Comm = Wild
	}
	e.To = g.one(g.someGroup(e.Comm))
	peers := g.peers(e.Comm, e.To)
	for range 1 + g.r.IntN(8) {
		from := g.one(peers)
		if from == e.To && e.Recv == Recv {
			continue
		}
		part := Part{From: from, Bytes: max(GroupHeader, g.bytes()), Send: SendHow(g.r.IntN(int(SendRetry))), Due: g.due(e.ID)}
		if e.Comm == Wild {
			// A later message of somebody else may take the receive that
			// was posted for this one. Whoever then waited for a match before
			// going on could be the one that the receiver waits for.
			part.Send, part.Due = patient[g.r.IntN(len(patient))], Never
		}
		e.Parts = append(e.Parts, part)
	}
}

func (g *generator) exchange(e *Event) {
	e.Kind, e.Tag, e.Bytes = Exchange, g.r.IntN(tags), g.bytes()
	members := g.someGroup(e.Comm)
	if g.p.Layout(e.Comm).Inter {
		members = members[:1] // Sendrecv wants one communicator for both directions
		e.Comm = World
	}
	for _, i := range g.r.Perm(len(members))[:1+g.r.IntN(len(members))] {
		e.Ring = append(e.Ring, members[i])
	}
}
