// SPDX-License-Identifier: Apache-2.0

// Package stage composes algorithms from others. A Stage is an algorithm that some of the ranks
// run on parts of the call's buffers; Compose joins stages that run one after the other.
// Two-level algorithms, and those between two groups, are composed in this way.
package stage

import "gompi/collectives"

// Stage is an algorithm that runs as a part of another one, by some of its ranks and on parts
// of its buffers.
type Stage struct {
	// alg is nil on ranks that do not take part.
	alg *collectives.Algorithm
	// ranks are the ranks of the stage.
	ranks Members
	// at is where the stage's In, Out and Scratch begin in the buffers of the call.
	at [3]Place
}

// Members says which ranks of a call take part in a stage.
type Members uint8

// The members of stages.
const (
	Everyone  Members = iota // all ranks, with their own numbers
	NodeRanks                // the ranks of this rank's node
	Heads                    // one rank of each node; see Head
)

// Of returns the stage in which these ranks run alg. Its buffers begin at at.
func Of(alg *collectives.Algorithm, ranks Members, at [3]Place) Stage { return Stage{alg, ranks, at} }

// Place is a position in a buffer.
type Place struct {
	Buf collectives.Buffer
	Off int64
}

// AsCalled places the buffers of a stage on those of the call. The stage's own scratch begins
// at off.
func AsCalled(off int64) [3]Place {
	return [3]Place{{Buf: collectives.In}, {Buf: collectives.Out}, {Buf: collectives.Scratch, Off: off}}
}

// composition is an algorithm made of stages that run one after the other.
type composition struct {
	stages int
	// stage changes a, the arguments of the call, into those of stage i.
	stage func(a *collectives.Args, i int) Stage
}

// Compose makes g the algorithm of these stages.
func Compose(g collectives.Algorithm, stages int, stage func(a *collectives.Args, i int) Stage) collectives.Algorithm {
	c := composition{stages, stage}
	g.Rounds, g.Round, g.Scratch, g.Sent = c.rounds, c.round, c.scratch, c.sent
	g.Stages, g.Stage = stages, c.apart
	return g
}

// apart is a stage for callers that do not run it by its rounds.
func (c composition) apart(a *collectives.Args, i int) (g *collectives.Algorithm, at [3]collectives.Ref, inside bool) {
	s := c.stage(a, i)
	for b, p := range s.at {
		at[b] = collectives.Ref{Buf: p.Buf, Off: p.Off}
	}
	return s.alg, at, s.ranks == NodeRanks
}

// StepsOn returns the number of steps of an algorithm on a group of another size, with the
// given root.
func StepsOn(g *collectives.Algorithm, a *collectives.Args, size, root int) int {
	call := *a
	*a = collectives.Args{Op: g.Op, Size: size, Root: root, Count: call.Count, Segment: call.Segment}
	n := g.Steps(a)
	*a = call
	return n
}

// The methods below use the caller's Args for those of a stage. A copy would be one more object
// on the heap for each round, because it is passed to an algorithm.

func (c composition) rounds(a *collectives.Args) int {
	call, n := *a, 0
	for i := range c.stages {
		if s := c.stage(a, i); s.alg != nil {
			n += s.alg.Rounds(a)
		}
		*a = call
	}
	return n
}

func (c composition) round(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
	call := *a
	for i := range c.stages {
		s := c.stage(a, i)
		if s.alg != nil {
			n := s.alg.Rounds(a)
			if r < n {
				first := len(dst)
				dst = s.alg.Round(a, r, dst)
				*a = call
				s.translate(a, dst[first:])
				return dst
			}
			r -= n
		}
		*a = call
	}
	panic("gompi: BUG: a round beyond the last")
}

// scratch returns the end of the last stage's buffer in Scratch. A stage with its In or Out
// there uses all of it.
func (c composition) scratch(a *collectives.Args) int64 {
	call, end := *a, int64(0)
	for i := range c.stages {
		if s := c.stage(a, i); s.alg != nil {
			for b, n := range [3]int64{a.InLen(), a.OutLen(), s.alg.Scratch(a)} {
				if s.at[b].Buf == collectives.Scratch && n > 0 {
					end = max(end, s.at[b].Off+n)
				}
			}
		}
		*a = call
	}
	return end
}

func (c composition) sent(a *collectives.Args) int64 {
	call, n := *a, int64(0)
	for i := range c.stages {
		if s := c.stage(a, i); s.alg != nil {
			n += s.alg.Sent(a)
		}
		*a = call
	}
	return n
}

// translate changes the steps of a stage into steps of the call a.
func (s *Stage) translate(a *collectives.Args, steps []collectives.Step) {
	for i := range steps {
		st := &steps[i]
		st.A = s.ref(st.A)
		if st.Kind >= collectives.Reduce {
			st.B = s.ref(st.B)
			continue
		}
		switch s.ranks {
		case NodeRanks:
			st.Peer = a.Nodes.Ranks(a.Nodes.Of(a.Rank))[st.Peer]
		case Heads:
			st.Peer = int32(Head(a, int(st.Peer)))
		}
	}
}

// Head returns the rank that represents a node: the root for its own node, the lowest rank for
// others.
func Head(a *collectives.Args, node int) int {
	if a.Op.Rooted() && a.Nodes.Of(a.Root) == node {
		return a.Root
	}
	return int(a.Nodes.Ranks(node)[0])
}

func (s *Stage) ref(r collectives.Ref) collectives.Ref {
	p := s.at[r.Buf]
	return collectives.Ref{Buf: p.Buf, Off: p.Off + r.Off, Len: r.Len}
}
