// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct alltoall on an intercommunicator, also for blocks of different
// lengths. All blocks are sent and received in one round.
//
//	steps    1
//	sent     all blocks
//	scratch  none
//	source   textbook
var alltoallInterDirect = Algorithm{
	Name:   "inter-direct",
	Op:     OpAlltoall,
	Doc:    "one step, one copy; for few ranks or small blocks",
	Inter:  true,
	Rounds: func(*Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		for d := range a.Remote {
			q := (a.Rank + d) % a.Remote
			dst = sendFar(dst, q, blockFor(a, q))
		}
		for d := range a.Remote {
			q := (a.Rank + d) % a.Remote
			dst = recvFar(dst, q, interBlock(a, q))
		}
		return dst
	},
	Scratch: none,
	Steps:   func(*Args) int { return 1 },
	Sent:    alltoallInterSent,
}

// Pairwise alltoall on an intercommunicator, also for blocks of different
// lengths. In round r a rank sends to the remote rank r after its own number
// and receives from the one r before it, modulo the size of the larger group:
// one message each way at a time.
//
//	steps    P with P ranks in the larger group
//	sent     all blocks
//	scratch  none
//	source   textbook
var alltoallInterPairwise = Algorithm{
	Name:   "inter-pairwise",
	Op:     OpAlltoall,
	Doc:    "one exchange at a time; for large blocks on many ranks",
	Inter:  true,
	Rounds: func(a *Args) int { return a.larger() },
	Round: func(a *Args, r int, dst []Step) []Step {
		p := a.larger()
		if q := wrap(a.Rank+r, p); q < a.Remote {
			dst = sendFar(dst, q, blockFor(a, q))
		}
		if q := wrap(a.Rank-r, p); q < a.Remote {
			dst = recvFar(dst, q, interBlock(a, q))
		}
		return dst
	},
	Scratch: none,
	Steps:   func(a *Args) int { return a.larger() },
	Sent:    alltoallInterSent,
}

var (
	alltoallvInterDirect   = alltoallInterDirect.as(OpAlltoallv)
	alltoallvInterPairwise = alltoallInterPairwise.as(OpAlltoallv)
)

func alltoallInterSent(a *Args) int64 {
	n := int64(0)
	for q := range a.Remote {
		n += blockFor(a, q).Len
	}
	return n
}
