// SPDX-License-Identifier: Apache-2.0

package testlab

import "math/rand/v2"

const (
	maxRanks  = 6
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
	r     *rand.Rand
	p     *Program
	comms []int // for all but full wildcards
}

// Generate makes the program of a seed.
func Generate(seed uint64) *Program {
	g := generator{r: rand.New(rand.NewPCG(seed, 0x6f7261636c65)), comms: []int{World}}
	g.p = &Program{Seed: seed, Ranks: 2 + g.r.IntN(maxRanks-1)}
	n := minEvents + g.r.IntN(maxEvents-minEvents)
	for i := range n {
		g.p.Events = append(g.p.Events, g.event(FirstEvent+i))
	}
	return g.p
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }
func (g *generator) rank() int               { return g.r.IntN(g.p.Ranks) }

func (g *generator) event(id int) Event {
	e := Event{ID: id, Comm: g.comms[g.r.IntN(len(g.comms))]}
	switch k := g.r.IntN(100); {
	case k < 55:
		g.message(&e)
	case k < 68:
		g.group(&e)
	case k < 76:
		g.exchange(&e)
	case k < 93:
		g.collective(&e)
	case k < 96:
		e.Kind = Withdraw
		e.From, e.To, e.Tag = g.rank(), g.rank(), tags+id
	default:
		e.Kind = Dup
		g.comms = append(g.comms, id)
	}
	return e
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
	e.Kind, e.From, e.To = Message, g.rank(), g.rank()
	e.Tag, e.Bytes, e.AnyTag = g.r.IntN(tags), g.bytes(), g.chance(20)
	e.Send, e.Recv = SendHow(g.r.IntN(int(numSends))), RecvHow(g.r.IntN(int(numRecvs)))
	e.SendDue, e.RecvDue = g.due(e.ID), g.due(e.ID)
	if e.From == e.To {
		// A rank cannot block in one half of a message to itself.
		e.Recv = Irecv
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

func (g *generator) group(e *Event) {
	e.Kind, e.To = Group, g.rank()
	e.RecvDue, e.Tag = g.due(e.ID), tags+e.ID
	e.Recv = Recv
	if g.chance(50) {
		e.Recv = Irecv
	}
	if g.chance(40) {
		e.Comm = Wild
	}
	for range 1 + g.r.IntN(8) {
		from := g.rank()
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
	e.Ring = g.r.Perm(g.p.Ranks)[:1+g.r.IntN(g.p.Ranks)]
}

func (g *generator) collective(e *Event) {
	e.Kind, e.Coll, e.Root = Collective, CollOp(g.r.IntN(int(numColls))), g.rank()
	e.Nonblock, e.InPlace, e.RecvDue = g.chance(40), g.chance(30), g.due(e.ID)
	switch k := g.r.IntN(100); {
	case k < 10:
		e.Count = 0
	case k < 50:
		e.Count = 1 + g.r.IntN(8)
	case k < 85:
		e.Count = 1 + g.r.IntN(600)
	default:
		e.Count = 1 + g.r.IntN(12000)
	}
}
