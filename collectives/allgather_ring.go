// SPDX-License-Identifier: Apache-2.0

package collectives

// Ring allgather, also for blocks of different lengths. In each round a rank
// passes the block that it got last to the next rank.
//
//	steps    P-1
//	sent     all blocks but the next rank's: n*(P-1)
//	scratch  none
//	source   textbook
var (
	allgatherRing = Algorithm{
		Name:    "ring",
		Op:      OpAllgather,
		Doc:     "neighbours only; for large messages between hosts",
		Rounds:  ringRounds,
		Round:   ringRound,
		Scratch: none,
		Steps:   func(a *Args) int { return a.Size - 1 },
		Sent:    ringSent,
	}
	allgathervRing = Algorithm{
		Name:    "ring",
		Op:      OpAllgatherv,
		Doc:     "neighbours only; for large messages between hosts",
		Rounds:  ringRounds,
		Round:   ringRound,
		Scratch: none,
		Steps:   func(a *Args) int { return a.Size - 1 },
		Sent:    ringSent,
	}
)

func ringRounds(a *Args) int { return max(1, a.Size-1) }

func ringRound(a *Args, r int, dst []Step) []Step {
	p := a.Size
	if p == 1 {
		return keepOwn(dst, a)
	}
	next, prev := wrap(a.Rank+1, p), wrap(a.Rank-1, p)
	if r == 0 {
		dst = send(dst, next, in(0, a.InLen()))
	} else {
		dst = send(dst, next, gathered(a, wrap(a.Rank-r, p)))
	}
	dst = recv(dst, prev, gathered(a, wrap(prev-r, p)))
	if r == 0 {
		dst = keepOwn(dst, a)
	}
	return dst
}

func ringSent(a *Args) int64 {
	n := int64(0)
	next := wrap(a.Rank+1, a.Size)
	for q := range a.Size {
		if q != next && a.Size > 1 {
			n += gathered(a, q).Len
		}
	}
	return n
}
