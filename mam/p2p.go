// SPDX-License-Identifier: Apache-2.0

package mam

import "gompi/internal/resize/layout"

// pointToPoint begins method P2P: a receive of each source that has a part, a send to each
// target; what stays with a process is copied, by bytes, in the background by keepPieces.
func (a *adoption) pointToPoint(x *move, tag int) (r requests, err error) {
	old, fresh := a.memory(x)
	bufs, me := a.comm().Bufs(), a.both.Rank()
	var starts []func() // when nothing can fail here any more
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
			for step := range p.pieces(x.Bytes, stepBytes) {
				b, err := step.buf(memory, x.Bytes, sends)
				if err != nil {
					return r, err
				}
				starts = append(starts, func() {
					if sends {
						r.add(bufs.Isend(b, peer, tag), step.n)
					} else {
						r.add(bufs.Irecv(b, peer, tag), step.n)
					}
				})
			}
		}
	}
	for _, start := range starts {
		start()
	}
	return r, nil
}

// keep copies what a process has before and afterwards.
func (a *adoption) keep(fresh, old []byte, runs []layout.Segment, elem int64) {
	for _, r := range runs {
		a.copy(fresh[r.ToAt*elem:(r.ToAt+r.Len)*elem], old[r.FromAt*elem:], a.pace)
	}
}
