// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// Ring allgather, also for blocks of different lengths. In each round a rank
// passes the block that it got last to the next rank.
//
//	steps    P-1
//	sent     all blocks but the next rank's: n*(P-1)
//	scratch  none
//	source   textbook
var (
	allgatherRing = collectives.Algorithm{
		Name:    "ring",
		Op:      collectives.OpAllgather,
		Doc:     "neighbours only; for large messages between hosts",
		Rounds:  ringRounds,
		Round:   ringRound,
		Scratch: step.None,
		Steps:   func(a *collectives.Args) int { return a.Size - 1 },
		Sent:    ringSent,
	}
	allgathervRing = allgatherRing.As(collectives.OpAllgatherv)
)

func ringRounds(a *collectives.Args) int { return max(1, a.Size-1) }

func ringRound(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
	p := a.Size
	if p == 1 {
		return keepOwn(dst, a)
	}
	next, prev := step.Wrap(a.Rank+1, p), step.Wrap(a.Rank-1, p)
	if r == 0 {
		dst = step.Send(dst, next, step.In(0, a.InLen()))
	} else {
		dst = step.Send(dst, next, a.Gathered(step.Wrap(a.Rank-r, p)))
	}
	dst = step.Recv(dst, prev, a.Gathered(step.Wrap(prev-r, p)))
	if r == 0 {
		dst = keepOwn(dst, a)
	}
	return dst
}

func ringSent(a *collectives.Args) int64 {
	n := int64(0)
	next := step.Wrap(a.Rank+1, a.Size)
	for q := range a.Size {
		if q != next && a.Size > 1 {
			n += a.Gathered(q).Len
		}
	}
	return n
}
