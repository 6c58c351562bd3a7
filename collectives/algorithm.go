// SPDX-License-Identifier: Apache-2.0

package collectives

// Algorithm is one way to do one operation. Algorithms are immutable; all
// functions are pure and may be called from any goroutine. They expect Args
// that Admits accepts, may use them as working memory while they run, and
// leave them as they were: two goroutines do not share one.
type Algorithm struct {
	// Name is unique among the algorithms of Op.
	Name string
	Op   Op
	// Doc says in a line what it is good for.
	Doc string

	// PowerOfTwo: needs a Size that is one.
	PowerOfTwo bool
	// Commutative: needs a commutative operation. All others reduce in rank
	// order.
	Commutative bool
	// Inter: for intercommunicators; all others are for intracommunicators.
	Inter bool
	// TwoLevel: for ranks on several nodes of which one has several ranks. It
	// keeps the order of the ranks, unless Commutative, if each node's ranks
	// follow one another; else it needs a commutative operation.
	TwoLevel bool
	// Shared: goes through memory that all ranks share; it has no schedule.
	// Reads: ranks read each other's buffers; Shared as well.
	Shared, Reads bool
	// SegmentBytes is the size of piece that Select proposes for pipelined
	// algorithms; 0 for all others.
	SegmentBytes int64

	// Rounds is the number of rounds of this rank's schedule.
	Rounds func(a *Args) int
	// Round appends the steps of round r, 0 <= r < Rounds, to dst.
	Round func(a *Args, r int, dst []Step) []Step
	// Scratch is the length of Scratch on this rank, in elements.
	Scratch func(a *Args) int64

	// Stages is of how many algorithms it consists, one after the other; 0: of none
	// that could be run apart. Stage turns a, the arguments of the call, into those
	// of stage i, and gives its algorithm, nil if this rank has no part in it, and
	// where its buffers begin; inside: the ranks of this rank's node run it, and
	// nobody else. The rounds are those of the stages.
	Stages int
	Stage  func(a *Args, i int) (g *Algorithm, at [3]Ref, inside bool)

	// Steps is the length of the longest chain of dependent rounds with
	// messages, over all ranks; it may be less where a block has no elements,
	// where nodes differ in size, and where the root of a two-level algorithm
	// is not rank 0. Idle ranks of an intercommunicator do
	// not know it.
	Steps func(a *Args) int
	// Sent is the number of elements that this rank sends.
	Sent func(a *Args) int64
}

// String gives "op/name".
func (g *Algorithm) String() string { return g.Op.String() + "/" + g.Name }

// As is the algorithm for an operation that differs in the lengths and places
// of blocks only.
func (g Algorithm) As(op Op) Algorithm {
	g.Op = op
	return g
}

// Admits reports whether the algorithm can do the call. The answer is the same
// on all ranks.
func (g *Algorithm) Admits(a *Args, commutative bool) bool {
	if g.Reads {
		return g.Op == a.Op && a.Remote == 0 && a.Reads
	}
	if g.Shared {
		return g.Op == a.Op && a.Remote == 0 && a.Shared > 0 && Published(a) <= a.Shared
	}
	return g.Op == a.Op && g.Inter == (a.Remote > 0) && (!g.PowerOfTwo || isPowerOfTwo(a.Size)) &&
		(!g.TwoLevel || a.Nodes.severalOf(a.Size)) && (commutative || g.KeepsOrder(a))
}

// KeepsOrder reports whether the algorithm reduces in the order of the ranks.
func (g *Algorithm) KeepsOrder(a *Args) bool {
	return !g.Commutative && (!g.TwoLevel || a.Nodes.Contiguous() || !a.Op.Reduces())
}

func isPowerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 }
