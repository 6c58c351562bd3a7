// SPDX-License-Identifier: Apache-2.0

package collectives

import "fmt"

// Algorithm is one way to do one operation. Algorithms are immutable; all
// functions are pure and may be called from any goroutine. They expect Args
// that Admits accepts.
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
	// SegmentBytes is the size of piece that Select proposes for pipelined
	// algorithms; 0 for all others.
	SegmentBytes int64

	// Rounds is the number of rounds of this rank's schedule.
	Rounds func(a *Args) int
	// Round appends the steps of round r, 0 <= r < Rounds, to dst.
	Round func(a *Args, r int, dst []Step) []Step
	// Scratch is the length of Scratch on this rank, in elements.
	Scratch func(a *Args) int64

	// Steps is the length of the longest chain of dependent rounds with
	// messages, over all ranks; it may be less where a block has no elements.
	Steps func(a *Args) int
	// Sent is the number of elements that this rank sends.
	Sent func(a *Args) int64
}

// String gives "op/name".
func (g *Algorithm) String() string { return g.Op.String() + "/" + g.Name }

// as is the algorithm for an operation that differs in the lengths and places
// of blocks only.
func (g Algorithm) as(op Op) Algorithm {
	g.Op = op
	return g
}

// Admits reports whether the algorithm can do the call. The answer is the same
// on all ranks.
func (g *Algorithm) Admits(a *Args, commutative bool) bool {
	return g.Op == a.Op && (!g.PowerOfTwo || isPowerOfTwo(a.Size)) && (!g.Commutative || commutative)
}

// All returns every algorithm, those of one operation together.
func All() []*Algorithm {
	return []*Algorithm{
		&barrierDissemination, &barrierCentral, &barrierDirect,
		&bcastBinomial, &bcastLinear, &bcastScatterRing, &bcastScatterDoubling, &bcastChain,
		&reduceBinomial, &reduceOrdered, &reduceLinear,
		&allreduceDoubling, &allreduceRabenseifner, &allreduceRing, &allreduceSplit, &allreduceReduceBcast, &allreduceCentral, &allreduceDirect,
		&gatherBinomial, &gatherLinear,
		&scatterBinomial, &scatterLinear,
		&allgatherBruck, &allgatherRing, &allgatherDoubling, &allgatherDirect,
		&allgathervRing, &allgathervDirect,
		&alltoallWindow, &alltoallPairwise, &alltoallDirect,
		&gathervLinear,
		&scattervLinear,
		&alltoallvWindow, &alltoallvPairwise, &alltoallvDirect,
		&reduceScatterBlockDirect,
		&reduceScatterDirect,
		&scanDoubling, &scanDirect,
		&exscanDoubling, &exscanDirect,
		&neighborAllgatherDirect,
		&neighborAllgathervDirect,
		&neighborAlltoallDirect,
		&neighborAlltoallvDirect,
	}
}

// ByName returns the algorithm of that name.
func ByName(op Op, name string) (*Algorithm, error) {
	known := ""
	for _, g := range All() {
		if g.Op != op {
			continue
		}
		if g.Name == name {
			return g, nil
		}
		known += " " + g.Name
	}
	return nil, fmt.Errorf("no algorithm %q for %v; there are:%s", name, op, known)
}

func none(*Args) int64 { return 0 }
