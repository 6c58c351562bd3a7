// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"slices"

	"gompi/internal/layout"
	"gompi/mpi"
)

// alltoallv is method COL: one Alltoallv over both, with nothing for whom has no part; of
// layouts in which a rank's elements are not side by side, an Alltoallw.
func (a *adoption) alltoallv(x *move) error {
	send, recv := a.parts(x, true), a.parts(x, false)
	old, fresh := a.memory(x)
	bufs := a.both.Bufs()
	if sideBySide(x) {
		sendCounts, sendAt := counts(send)
		recvCounts, recvAt := counts(recv)
		return bufs.Alltoallv(mpi.BufOf(old), sendCounts, sendAt, mpi.BufOf(fresh), recvCounts, recvAt)
	}
	out, err := all(send, old, x.Bytes, true)
	if err != nil {
		return err
	}
	in, err := all(recv, fresh, x.Bytes, false)
	if err != nil {
		return err
	}
	return bufs.Alltoallw(out, in)
}

// sideBySide reports whether what goes between two ranks is in one piece for any two:
// all make the same call.
func sideBySide(x *move) bool {
	return x.Rule.Parts == nil && x.rule.Parts == nil &&
		!slices.Contains([]layout.Kind{layout.Cyclic, layout.Grid}, x.Rule.Kind)
}

func counts(parts []part) (counts, at []int) {
	counts, at = make([]int, len(parts)), make([]int, len(parts))
	for i, p := range parts {
		counts[i], at[i] = int(p.n), int(p.at)
	}
	return counts, at
}

func all(parts []part, memory []byte, elem int64, sends bool) ([]mpi.Buf, error) {
	list := make([]mpi.Buf, len(parts))
	for i := range parts {
		var err error
		if list[i], err = parts[i].buf(memory, elem, sends); err != nil {
			return nil, err
		}
	}
	return list, nil
}
