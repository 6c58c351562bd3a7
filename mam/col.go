// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"slices"

	"gompi/internal/resize/layout"
	"gompi/mpi"
)

// collective is method COL: an Alltoallv for each array over the merged communicator, in
// which ranks without a segment give nothing; an Alltoallw where the elements of a rank are
// not side by side. An array with large segments takes several rounds.
type collective struct{ rc *reconfiguration }

func newCollective(rc *reconfiguration) mover {
	return &exchange{rc: rc, by: &collective{rc}, reports: true}
}

func (m *collective) exchange(list []*transfer) error { return m.rc.exchangeEach(list, m.alltoallv) }

// alltoallv moves an array, in rounds in which any two ranks exchange a step at most.
func (m *collective) alltoallv(x *transfer) error {
	rc := m.rc
	send, recv := rc.segments(x, true), rc.segments(x, false)
	rounds := rc.rounds(x)
	if rounds == 1 {
		return m.alltoallvOf(x, send, recv)
	}
	out, in := stepsOf(send, x.Bytes, true), stepsOf(recv, x.Bytes, false)
	for k := range rounds {
		send, sent := stepOfRound(out, k)
		recv, received := stepOfRound(in, k)
		if err := m.alltoallvOf(x, send, recv); err != nil {
			return err
		}
		rc.report(int(sent + received))
	}
	return nil
}

func (m *collective) alltoallvOf(x *transfer, send, recv []segment) error {
	e, err := m.argsOf(x, send, recv)
	if err != nil {
		return err
	}
	bufs := m.rc.comm().Bufs()
	if e.indexed {
		return bufs.Alltoallw(e.out, e.in)
	}
	return bufs.Alltoallv(e.send, e.sendCounts, e.sendAt, e.recv, e.recvCounts, e.recvAt)
}

// start begins an Ialltoallv. Without a limit it includes what this rank keeps; with one
// copyKeptInPieces copies that.
func (m *collective) start(x *transfer) (reqs requests, err error) {
	rc := m.rc
	send, recv := rc.segments(x, true), rc.segments(x, false)
	if rc.limit != nil {
		me := rc.merged.Rank()
		send[me], recv[me] = segment{}, segment{}
	}
	e, err := m.argsOf(x, send, recv)
	if err != nil {
		return reqs, err
	}
	if bufs := rc.comm().Bufs(); e.indexed {
		reqs.add(bufs.Ialltoallw(e.out, e.in), 0)
	} else {
		reqs.add(bufs.Ialltoallv(e.send, e.sendCounts, e.sendAt, e.recv, e.recvCounts, e.recvAt), 0)
	}
	return reqs, nil
}

// alltoallArgs are the arguments of this process for an Alltoallv, or, indexed, for an
// Alltoallw.
type alltoallArgs struct {
	indexed            bool
	send, recv         mpi.Buf
	sendCounts, sendAt []int
	recvCounts, recvAt []int
	out, in            []mpi.Buf
}

func (m *collective) argsOf(x *transfer, send, recv []segment) (e alltoallArgs, err error) {
	old, target := m.rc.memory(x)
	if e.indexed = !sideBySide(x); !e.indexed {
		e.send, e.recv = mpi.BufOf(old), mpi.BufOf(target)
		e.sendCounts, e.sendAt = countsAndDispls(send)
		e.recvCounts, e.recvAt = countsAndDispls(recv)
		return e, nil
	}
	if e.out, err = bufsOf(send, old, x.Bytes, true); err == nil {
		e.in, err = bufsOf(recv, target, x.Bytes, false)
	}
	return e, err
}

// sideBySide reports whether what goes between two ranks is one run for any two. It is the
// same on all, so all make the same call.
func sideBySide(x *transfer) bool {
	return x.Rule.Parts == nil && x.nextRule.Parts == nil &&
		!slices.Contains([]layout.Kind{layout.Cyclic, layout.Grid}, x.Rule.Kind)
}

func countsAndDispls(list []segment) (counts, displs []int) {
	counts, displs = make([]int, len(list)), make([]int, len(list))
	for i, s := range list {
		counts[i], displs[i] = int(s.n), int(s.at)
	}
	return counts, displs
}

func bufsOf(list []segment, memory []byte, elem int64, sends bool) ([]mpi.Buf, error) {
	bufs := make([]mpi.Buf, len(list))
	for i := range list {
		var err error
		if bufs[i], err = list[i].buf(memory, elem, sends); err != nil {
			return nil, err
		}
	}
	return bufs, nil
}
