// SPDX-License-Identifier: Apache-2.0

package collectives

// Two-level barrier: all ranks of a node signal its head, the heads run a
// dissemination barrier, and release their nodes.
//
//	steps    2, and ceil(log2) of the number of nodes
//	messages 1 per rank; at a head one per mate and ceil(log2) between nodes
//	scratch  none
//	source   textbook
var barrierNode = compose(Algorithm{
	Name:     "node-dissemination",
	Op:       OpBarrier,
	Doc:      "logarithmic between nodes",
	TwoLevel: true,
	Steps:    func(a *Args) int { return 2 + ceilLog(a.Nodes.Len()) },
}, 3, func(a *Args, i int) stage {
	head := a.isHead()
	switch {
	case i == 0:
		a.inside(OpBarrier)
		return stage{&arrival, nodeMates, asCalled(0)}
	case i == 1 && head:
		a.between(OpBarrier)
		return stage{&barrierDissemination, heads, asCalled(0)}
	case i == 2:
		a.inside(OpBarrier)
		return stage{&release, nodeMates, asCalled(0)}
	}
	return stage{}
})

// arrival and release are the halves of a barrier: rank 0 hears of all others,
// and all others of rank 0.
var (
	arrival = Algorithm{
		Rounds: func(a *Args) int { return min(1, a.Size-1) },
		Round: func(a *Args, r int, dst []Step) []Step {
			if a.Rank != 0 {
				return signal(dst, 0)
			}
			for p := 1; p < a.Size; p++ {
				dst = await(dst, p)
			}
			return dst
		},
		Scratch: none,
		Sent:    none,
	}
	release = Algorithm{
		Rounds: func(a *Args) int { return min(1, a.Size-1) },
		Round: func(a *Args, r int, dst []Step) []Step {
			if a.Rank != 0 {
				return await(dst, 0)
			}
			for p := 1; p < a.Size; p++ {
				dst = signal(dst, p)
			}
			return dst
		},
		Scratch: none,
		Sent:    none,
	}
)
