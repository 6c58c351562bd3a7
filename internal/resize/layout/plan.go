// SPDX-License-Identifier: Apache-2.0

package layout

import "iter"

// Piece is elements that a rank of the split before has side by side, and one of the
// split after, too. Offsets are among the elements of each, in elements.
type Segment struct {
	From, To     int
	FromAt, ToAt int64
	Len          int64
}

// Receives are the pieces that rank to has in next, in the order in which it has them.
// Both splits are of the same elements. Between two ranks pieces are in the same order
// for who sends as for who receives.
func Receives(old, next Split, to int) iter.Seq[Segment] {
	return segments(next, old, to, func(at int64, rank int, theirs, n int64) Segment {
		return Segment{From: rank, To: to, FromAt: theirs, ToAt: at, Len: n}
	})
}

// Sends are the pieces that rank from has in old, in the order in which it has them.
func Sends(old, next Split, from int) iter.Seq[Segment] {
	return segments(old, next, from, func(at int64, rank int, theirs, n int64) Segment {
		return Segment{From: from, To: rank, FromAt: at, ToAt: theirs, Len: n}
	})
}

// pieces walks over what a rank has in mine, and finds who has it in other.
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

// Moved is how many elements have another process in next than in old: no fewer can be
// sent. stay are the ranks in old of the first processes of next.
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
