// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct allgather, also for blocks of different lengths. Every rank sends its
// block to every other in one round, each starting with the rank after it, so
// that no rank is everybody's first peer. Inside a host every block is copied
// once, out of its owner's buffer.
//
//	steps    1
//	sent     own block times P-1
//	scratch  none
//	source   textbook
var (
	allgatherDirect = Algorithm{
		Name:    "direct",
		Op:      OpAllgather,
		Doc:     "one step, one copy; for a few ranks on one host",
		Rounds:  func(*Args) int { return 1 },
		Round:   directRound,
		Scratch: none,
		Steps:   func(a *Args) int { return min(1, a.Size-1) },
		Sent:    func(a *Args) int64 { return a.InLen() * int64(a.Size-1) },
	}
	allgathervDirect = Algorithm{
		Name:    "direct",
		Op:      OpAllgatherv,
		Doc:     "one step, one copy; for a few ranks on one host",
		Rounds:  func(*Args) int { return 1 },
		Round:   directRound,
		Scratch: none,
		Steps:   func(a *Args) int { return min(1, a.Size-1) },
		Sent:    func(a *Args) int64 { return a.InLen() * int64(a.Size-1) },
	}
)

func directRound(a *Args, r int, dst []Step) []Step {
	own := in(0, a.InLen())
	for d := 1; d < a.Size; d++ {
		dst = send(dst, wrap(a.Rank+d, a.Size), own)
	}
	for d := 1; d < a.Size; d++ {
		q := wrap(a.Rank-d, a.Size)
		dst = recv(dst, q, gathered(a, q))
	}
	return keepOwn(dst, a)
}
