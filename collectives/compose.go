// SPDX-License-Identifier: Apache-2.0

package collectives

// stage is an algorithm run as a part of another one, by some of its ranks, on
// parts of its buffers.
type stage struct {
	// alg is nil on ranks that take no part.
	alg *Algorithm
	// ranks says who the ranks of the stage are.
	ranks members
	// at is where the stage's In, Out and Scratch start in the buffers of the
	// call.
	at [3]place
}

// members says which ranks of a call take part in a stage.
type members uint8

const (
	everyone  members = iota // all, with their own numbers
	nodeMates                // the ranks of this rank's node
	heads                    // one rank of each node, see Args.head
)

// place is a position in a buffer.
type place struct {
	buf Buffer
	off int64
}

// asCalled lays the buffers of a stage on those of the call; its own scratch
// starts at off.
func asCalled(off int64) [3]place { return [3]place{{buf: In}, {buf: Out}, {Scratch, off}} }

// composition is an algorithm made of stages that run one after the other.
type composition struct {
	stages int
	// stage turns a, the arguments of the call, into those of stage i.
	stage func(a *Args, i int) stage
}

// compose makes g the algorithm of these stages.
func compose(g Algorithm, stages int, stage func(a *Args, i int) stage) Algorithm {
	c := composition{stages, stage}
	g.Rounds, g.Round, g.Scratch, g.Sent = c.rounds, c.round, c.scratch, c.sent
	return g
}

// stepsOn is the number of steps of an algorithm on a group of another size,
// rooted at the given rank.
func stepsOn(g *Algorithm, a *Args, size, root int) int {
	call := *a
	*a = Args{Op: g.Op, Size: size, Root: root, Count: call.Count, Segment: call.Segment}
	n := g.Steps(a)
	*a = call
	return n
}

// The methods below use the caller's Args for those of a stage: a copy handed
// to an algorithm would be one more object on the heap for each round.

func (c composition) rounds(a *Args) int {
	call, n := *a, 0
	for i := range c.stages {
		if s := c.stage(a, i); s.alg != nil {
			n += s.alg.Rounds(a)
		}
		*a = call
	}
	return n
}

func (c composition) round(a *Args, r int, dst []Step) []Step {
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

// scratch is the end of the last stage's buffer in Scratch. Stages that find
// their In or Out there use all of it.
func (c composition) scratch(a *Args) int64 {
	call, end := *a, int64(0)
	for i := range c.stages {
		if s := c.stage(a, i); s.alg != nil {
			for b, n := range [3]int64{a.InLen(), a.OutLen(), s.alg.Scratch(a)} {
				if s.at[b].buf == Scratch && n > 0 {
					end = max(end, s.at[b].off+n)
				}
			}
		}
		*a = call
	}
	return end
}

func (c composition) sent(a *Args) int64 {
	call, n := *a, int64(0)
	for i := range c.stages {
		if s := c.stage(a, i); s.alg != nil {
			n += s.alg.Sent(a)
		}
		*a = call
	}
	return n
}

// translate turns the steps of a stage into those of the call a.
func (s *stage) translate(a *Args, steps []Step) {
	for i := range steps {
		st := &steps[i]
		st.A = s.ref(st.A)
		if st.Kind >= Reduce {
			st.B = s.ref(st.B)
			continue
		}
		switch s.ranks {
		case nodeMates:
			st.Peer = a.Nodes.ranks[a.Nodes.Of(a.Rank)][st.Peer]
		case heads:
			st.Peer = int32(a.head(int(st.Peer)))
		}
	}
}

func (s *stage) ref(r Ref) Ref {
	p := s.at[r.Buf]
	return Ref{p.buf, p.off + r.Off, r.Len}
}
