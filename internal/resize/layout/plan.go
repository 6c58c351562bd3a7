// SPDX-License-Identifier: Apache-2.0

package layout

import "iter"

// Segment is a range of elements that move from one rank to another, at successive indices on
// both. FromAt and ToAt are indices on the rank of the old and of the new split.
type Segment struct {
	From, To     int
	FromAt, ToAt int64
	Len          int64
}

// Receives iterates over the segments of rank to of the new split, in the order of its elements.
// Both splits must be of the same elements. The segments between two ranks are in the same order
// for the sender and for the receiver.
func Receives(old, next Split, to int) iter.Seq[Segment] {
	return segments(next, old, to, func(at int64, rank int, theirs, n int64) Segment {
		return Segment{From: rank, To: to, FromAt: theirs, ToAt: at, Len: n}
	})
}

// Sends iterates over the segments of rank from of the old split, in the order of its elements.
func Sends(old, next Split, from int) iter.Seq[Segment] {
	return segments(old, next, from, func(at int64, rank int, theirs, n int64) Segment {
		return Segment{From: from, To: rank, FromAt: at, ToAt: theirs, Len: n}
	})
}

// segments iterates over the elements of a rank of mine and finds their ranks in other.
func segments(mine, other Split, rank int, piece func(at int64, rank int, theirs, n int64) Segment) iter.Seq[Segment] {
	return func(yield func(Segment) bool) {
		var last Segment
		at := int64(0)
		for r := range mine.Runs(rank) {
			for r.Len > 0 {
				who, theirs, n := other.Locate(r.At)
				n = min(n, r.Len)
				p := piece(at, who, theirs, n)
				switch {
				case last.From == p.From && last.To == p.To && last.FromAt+last.Len == p.FromAt && last.ToAt+last.Len == p.ToAt:
					last.Len += n
				default:
					if last.Len > 0 && !yield(last) {
						return
					}
					last = p
				}
				at, r.At, r.Len = at+n, r.At+n, r.Len-n
			}
		}
		if last.Len > 0 {
			yield(last)
		}
	}
}

// Moved returns the number of elements whose process differs between old and next: the least
// number that must be sent. stay lists ranks of old: stay[i] is rank i of next.
func Moved(old, next Split, stay []int) (n int64) {
	for to := range next.Ranks() {
		for p := range Receives(old, next, to) {
			if to >= len(stay) || stay[to] != p.From {
				n += p.Len
			}
		}
	}
	return n
}
