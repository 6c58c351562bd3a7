// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"gompi/internal/layout"
	"gompi/mpi"
)

// pointToPoint begins method P2P: a receive of each source that has a part, a send to each
// target; what stays with a process is copied, by bytes, in the background by keepPieces.
func (a *adoption) pointToPoint(x *move, tag int) ([]mpi.Request, error) {
	old, fresh := a.memory(x)
	bufs, me := a.comm().Bufs(), a.both.Rank()
	var starts []func() mpi.Request // when nothing can fail here any more
	for _, sends := range [...]bool{false, true} {
		memory := fresh
		if sends {
			memory = old
		}
		for peer, p := range a.parts(x, sends) {
			if p.n == 0 || peer == me && (sends || a.pace != nil) {
				continue
			}
			if peer == me {
				a.keep(fresh, old, p.runs, x.Bytes)
				continue
			}
			b, err := p.buf(memory, x.Bytes, sends)
			if err != nil {
				return nil, err
			}
			starts = append(starts, func() mpi.Request {
				if sends {
					return bufs.Isend(b, peer, tag)
				}
				return bufs.Irecv(b, peer, tag)
			})
		}
	}
	reqs := make([]mpi.Request, len(starts))
	for i, start := range starts {
		reqs[i] = start()
	}
	return reqs, nil
}

// keep copies what a process has before and afterwards.
func (a *adoption) keep(fresh, old []byte, runs []layout.Piece, elem int64) {
	for _, r := range runs {
		a.copy(fresh[r.ToAt*elem:(r.ToAt+r.Len)*elem], old[r.FromAt*elem:], a.pace)
	}
}
