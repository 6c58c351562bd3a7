// SPDX-License-Identifier: Apache-2.0

package collectives

// Direct alltoall. All blocks are sent and received in one round, each rank
// starting with the one after it.
//
//	steps    1
//	sent     n*(P-1)
//	scratch  none; in place n*P
//	source   textbook
var alltoallDirect = Algorithm{
	Name: "direct",
	Op:   OpAlltoall,
	Doc:  "one step, one copy; for few ranks or small blocks",
	Rounds: func(*Args) int {
		return 1
	},
	Round: func(a *Args, r int, dst []Step) []Step {
		n, p := a.Count, a.Size
		for d := 1; d < p; d++ {
			q := wrap(a.Rank+d, p)
			dst = send(dst, q, in(int64(q)*n, n))
		}
		landing := Out
		if a.InPlace {
			landing = Scratch
		}
		for d := 1; d < p; d++ {
			q := wrap(a.Rank-d, p)
			dst = recv(dst, q, Ref{landing, int64(q) * n, n})
		}
		own := int64(a.Rank) * n
		if !a.InPlace {
			return move(dst, in(own, n), out(own, n))
		}
		dst = move(dst, scratch(0, own), out(0, own))
		after := own + n
		rest := int64(p)*n - after
		return move(dst, scratch(after, rest), out(after, rest))
	},
	Scratch: func(a *Args) int64 {
		if !a.InPlace {
			return 0
		}
		// The last block that another rank sends ends here.
		last := a.Size
		if a.Rank == last-1 {
			last--
		}
		return int64(last) * a.Count
	},
	Steps: func(a *Args) int { return min(1, a.Size-1) },
	Sent:  func(a *Args) int64 { return a.Count * int64(a.Size-1) },
}
