// SPDX-License-Identifier: Apache-2.0

package mam

import "slices"

// stepBytes is how much moves between two processes at the commit before it is reported. The
// change has a deadline there that begins anew with each report (Deadlines.Commit). It is the
// same on all.
var stepBytes int64 = 64 << 20

// steps calls do for ranges of bytes that are reported each.
func steps(bytes int64, do func(lo, hi int64) error) error {
	for lo := int64(0); lo < bytes; lo += stepBytes {
		if err := do(lo, min(lo+stepBytes, bytes)); err != nil {
			return err
		}
	}
	return nil
}

// rounds returns the number of rounds in which an array moves if any two ranks exchange a
// step at most in each: the same on all.
func (rc *reconfiguration) rounds(x *transfer) int64 {
	var most, next int64
	for s := range rc.from {
		most = max(most, x.split.Count(s))
	}
	for d := range rc.to {
		next = max(next, x.nextSplit.Count(d))
	}
	step := max(1, stepBytes/x.Bytes)
	return max(1, (min(most, next)+step-1)/step)
}

// stepsOf returns the steps of each segment.
func stepsOf(segments []segment, elem int64, sends bool) [][]segment {
	list := make([][]segment, len(segments))
	for i := range segments {
		list[i] = slices.Collect(segments[i].pieces(elem, stepBytes))
		for k := range list[i] {
			if s := &list[i][k]; sends {
				s.at = s.runs[0].FromAt * elem
			}
		}
	}
	return list
}

// stepOfRound returns the k-th step of each segment, and the bytes of these steps.
func stepOfRound(steps [][]segment, k int64) (list []segment, bytes int64) {
	list = make([]segment, len(steps))
	for i, of := range steps {
		if k < int64(len(of)) {
			list[i] = of[k]
			bytes += list[i].n
		}
	}
	return list, bytes
}
