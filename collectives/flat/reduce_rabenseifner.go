// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Rabenseifner's reduction: reduce-scatter by recursive halving of the vector
// while the distance doubles, then a gather to the root by the same exchanges in
// reverse, of which each rank takes part until it has given its part away. The
// order of the ranks is kept. Groups that are no power of two are folded.
//
//	steps    2*log2 P, or 2*floor(log2 P)+1; 1 more if the root is folded away
//	sent     n*(P-1)/P and at most half the vector; a folded pair n more
//	scratch  3/4 of the vector; 3/2 for a folded pair; the root half or all
//	source   Rabenseifner (2004)
var reduceRabenseifner = collectives.Algorithm{
	Name: "rabenseifner",
	Op:   collectives.OpReduce,
	Doc:  "logarithmic with twice the data; for large messages",
	Rounds: func(a *collectives.Args) int {
		g := gatherTo(a)
		if g.num < 0 && a.Rank != a.Root || a.Size == 1 {
			return 1
		}
		if g.num < 0 {
			return 2
		}
		n := g.log + g.last()
		if g.num == g.root && g.away {
			n++
		}
		if g.joined() {
			n++
		}
		return n
	},
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		g := gatherTo(a)
		switch {
		case a.Size == 1:
			return keepOwn(dst, a)
		case g.num < 0:
			return handOver(dst, a, r)
		}
		x, _ := g.partial(a)
		if g.joined() {
			if r == 0 {
				return x.take(dst, a.Rank-1, 0, a.Count, true)
			}
			x.empty = false
			r--
		}
		x.empty = x.empty && r == 0
		k := r
		if r >= g.log {
			k = 2*g.log - 1 - r
		}
		if k < 0 {
			return step.Send(dst, a.Root, x.at(0, a.Count))
		}
		num := g.peer(g.num, k)
		peer := g.rank(num)
		off, n := g.window(a.Count, g.num, k+1)
		theirs, m := g.window(a.Count, num, k+1)
		switch {
		case r < g.log:
			dst = step.Send(dst, peer, x.give(theirs, m))
			return x.take(dst, peer, off, n, peer < a.Rank)
		case (g.num^g.root)>>k&1 == 1:
			return step.Send(dst, peer, x.at(off, n))
		}
		return step.Recv(dst, peer, x.at(theirs, m))
	},
	Scratch: func(a *collectives.Args) int64 {
		g := gatherTo(a)
		if g.num < 0 || a.Size == 1 {
			return 0
		}
		_, end := g.partial(a)
		return end
	},
	Steps: func(a *collectives.Args) int {
		g := gatherTo(a)
		n := 2 * g.log
		if g.rem > 0 {
			n++
		}
		if g.away {
			n++
		}
		return n
	},
	Sent: func(a *collectives.Args) int64 {
		g := gatherTo(a)
		if g.num < 0 {
			return a.Count
		}
		_, n := g.window(a.Count, g.num, g.log)
		sent := a.Count - n
		if g.num != g.root {
			_, n = g.window(a.Count, g.num, g.log-g.last()+1)
			return sent + n
		}
		if g.away {
			sent += a.Count
		}
		return sent
	},
}

// rootGather is a halving whose parts come together at one number.
type rootGather struct {
	halving
	root int  // the number that stands for the root
	away bool // the root itself is folded away
}

func gatherTo(a *collectives.Args) rootGather {
	root := fold(a.Root, a.Size)
	g := rootGather{halving{fold(a.Rank, a.Size), true}, root.num, root.num < 0}
	if g.away {
		g.root = a.Root / 2
	}
	return g
}

// last is how many rounds of the gather a number takes part in.
func (g rootGather) last() int {
	if g.num == g.root {
		return g.log
	}
	return g.log - step.FloorLog(g.num^g.root)
}

// partial is a number's partial result and the scratch that it takes. At the
// root it is Out.
func (g rootGather) partial(a *collectives.Args) (x partial, end int64) {
	x.empty = !(a.InPlace && a.Rank == a.Root)
	first := 0 // halvings until something arrives
	if !g.joined() {
		first = 1
	}
	off, n := g.window(a.Count, g.num, first)
	if a.Rank == a.Root {
		x.acc = step.Out(0, a.Count)
		if x.empty {
			first++
		}
	} else {
		x.acc, x.base, x.spare = step.Scratch(0, n), off, n
		first++
	}
	if first > g.log {
		return x, x.spare
	}
	_, n = g.window(a.Count, g.num, first)
	return x, x.spare + n
}
