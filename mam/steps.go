// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"slices"

	"gompi/mpi"
)

// stepBytes is how much moves between two processes, at the commit, before it is counted:
// the change has a deadline there, which begins anew with each step (Deadlines.Commit). It is
// the same on all.
var stepBytes int64 = 64 << 20

// steps are ranges of so many bytes that are counted each.
func steps(bytes int64, do func(lo, hi int64) error) error {
	for lo := int64(0); lo < bytes; lo += stepBytes {
		if err := do(lo, min(lo+stepBytes, bytes)); err != nil {
			return err
		}
	}
	return nil
}

// requests are under way, each for so many bytes.
type requests struct {
	list  []mpi.Request
	bytes []int64
}

func (r *requests) add(q mpi.Request, bytes int64) {
	r.list, r.bytes = append(r.list, q), append(r.bytes, bytes)
}

// wait waits for all, as mpi.Waitall does, and counts what each has moved.
func (a *adoption) wait(r requests) error {
	var err error
	for len(r.list) > 0 {
		n, bytes := 0, int64(0)
		for n < len(r.list) && bytes < stepBytes {
			bytes += r.bytes[n]
			n++
		}
		if failed := mpi.Waitall(r.list[:n]); err == nil {
			err = failed
		}
		a.told(int(bytes))
		r.list, r.bytes = r.list[n:], r.bytes[n:]
	}
	return err
}

// rounds is in how many rounds an array moves in which any two exchange a step at most: the
// same on all.
func (a *adoption) rounds(x *move) int64 {
	var most, next int64
	for s := range a.from {
		most = max(most, x.split.Count(s))
	}
	for d := range a.to {
		next = max(next, x.next.Count(d))
	}
	step := max(1, stepBytes/x.Bytes)
	return max(1, (min(most, next)+step-1)/step)
}

// stepsOf are the steps of each part.
func stepsOf(parts []part, elem int64, sends bool) [][]part {
	list := make([][]part, len(parts))
	for i := range parts {
		list[i] = slices.Collect(parts[i].pieces(elem, stepBytes))
		for k := range list[i] {
			if p := &list[i][k]; sends {
				p.at = p.runs[0].FromAt * elem
			}
		}
	}
	return list
}

// round is the k-th step of each part, and how many bytes these are.
func round(steps [][]part, k int64) (list []part, bytes int64) {
	list = make([]part, len(steps))
	for i, of := range steps {
		if k < int64(len(of)) {
			list[i] = of[k]
			bytes += list[i].n
		}
	}
	return list, bytes
}
