// SPDX-License-Identifier: Apache-2.0

package mam

import "gompi/internal/resize/layout"

// pointToPoint is method P2P: a receive for each source that has a segment, a send for each
// target. What a rank keeps is copied by bytes.
type pointToPoint struct{ rc *reconfiguration }

func newPointToPoint(rc *reconfiguration) mover {
	return &exchange{rc: rc, by: &pointToPoint{rc}, reports: true}
}

func (m *pointToPoint) exchange(list []*transfer) error {
	return m.rc.exchangeEach(list, func(x *transfer) error { return m.rc.waitStarted(m.start(x)) })
}

// start begins the receives and sends of an array. With a rate limit copyKeptInPieces copies
// what the rank keeps.
func (m *pointToPoint) start(x *transfer) (reqs requests, err error) {
	rc := m.rc
	old, target := rc.memory(x)
	bufs, me := rc.comm().Bufs(), rc.merged.Rank()
	var starts []func() // called when nothing can fail here any more
	for _, sends := range [...]bool{false, true} {
		memory := target
		if sends {
			memory = old
		}
		for peer, s := range rc.segments(x, sends) {
			if s.n == 0 || peer == me && (sends || rc.limit != nil) {
				continue
			}
			if peer == me {
				rc.copyKept(target, old, s.runs, x.Bytes)
				continue
			}
			for step := range s.pieces(x.Bytes, stepBytes) {
				b, err := step.buf(memory, x.Bytes, sends)
				if err != nil {
					return reqs, err
				}
				starts = append(starts, func() {
					if sends {
						reqs.add(bufs.Isend(b, peer, x.tag), step.n)
					} else {
						reqs.add(bufs.Irecv(b, peer, x.tag), step.n)
					}
				})
			}
		}
	}
	for _, start := range starts {
		start()
	}
	return reqs, nil
}

// copyKept copies what a process has before and after the change.
func (rc *reconfiguration) copyKept(target, old []byte, runs []layout.Segment, elem int64) {
	for _, r := range runs {
		rc.copyLocal(target[r.ToAt*elem:(r.ToAt+r.Len)*elem], old[r.FromAt*elem:], rc.limit)
	}
}
