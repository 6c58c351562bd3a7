// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// folded pictures a group as one of 2^log ranks: of the first 2*rem ranks each
// even one hands its data to the odd one after it and gets the result at the
// end. Neighbours are joined, so the order of the ranks is kept.
type folded struct {
	log, rem int
	num      int // the number among the 2^log, -1 for a rank that hands over
}

func fold(rank, size int) folded {
	f := folded{log: step.FloorLog(size)}
	f.rem = size - 1<<f.log
	switch {
	case rank >= 2*f.rem:
		f.num = rank - f.rem
	case rank&1 == 1:
		f.num = rank >> 1
	default:
		f.num = -1
	}
	return f
}

// joined reports whether number num stands for two ranks.
func (f folded) joined() bool { return f.num >= 0 && f.num < f.rem }

// rank is the rank that has number num.
func (f folded) rank(num int) int {
	if num < f.rem {
		return 2*num + 1
	}
	return num + f.rem
}

// first is the lowest rank that number num stands for; of the number after the
// last it is the size of the group.
func (f folded) first(num int) int { return num + min(num, f.rem) }

// steps is the number of dependent rounds of an algorithm that takes inner of
// them on the 2^log ranks.
func (f folded) steps(inner int) int {
	if f.rem > 0 {
		return inner + 2
	}
	return inner
}

// rounds is the number of rounds of this rank in an allreduce that takes inner
// of them on the 2^log ranks.
func (f folded) rounds(a *collectives.Args, inner int) int {
	switch {
	case a.Size == 1:
		return 1
	case f.num < 0:
		return 2
	case f.joined():
		return inner + 2
	}
	return inner
}

// outer appends the steps of round r if it is not one of the inner rounds on
// the 2^log ranks, and reports whether it was.
func (f folded) outer(dst []collectives.Step, a *collectives.Args, r, inner int) ([]collectives.Step, bool) {
	switch {
	case a.Size == 1:
		return keepOwn(dst, a), true
	case f.num < 0:
		return handOver(dst, a, r), true
	case f.joined() && r == 0:
		return take(dst, a, a.Rank-1, 0, a.Count, true, true), true
	case f.joined() && r == inner+1:
		return step.Send(dst, a.Rank-1, step.Out(0, a.Count)), true
	}
	return dst, false
}

// handOver is the schedule of a rank that is folded into the next one. The
// result has its own round because in place it lands where the data is.
func handOver(dst []collectives.Step, a *collectives.Args, r int) []collectives.Step {
	if r == 0 {
		return step.Send(dst, a.Rank+1, step.In(0, a.Count))
	}
	return step.Recv(dst, a.Rank+1, step.Out(0, a.Count))
}
