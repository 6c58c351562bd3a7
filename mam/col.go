// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"slices"

	"gompi/internal/resize/layout"
	"gompi/mpi"
)

// alltoallv is method COL: one Alltoallv over both, with nothing for whom has no part; of
// layouts in which a rank's elements are not side by side, an Alltoallw.
func (a *adoption) alltoallv(x *move) error {
	send, recv := a.parts(x, true), a.parts(x, false)
	rounds := a.rounds(x)
	if rounds == 1 {
		return a.alltoallvOf(x, send, recv)
	}
	out, in := stepsOf(send, x.Bytes, true), stepsOf(recv, x.Bytes, false)
	for k := range rounds {
		send, sent := round(out, k)
		recv, came := round(in, k)
		if err := a.alltoallvOf(x, send, recv); err != nil {
			return err
		}
		a.told(int(sent + came))
	}
	return nil
}

// alltoallvOf moves so much of an array.
func (a *adoption) alltoallvOf(x *move, send, recv []part) error {
	e, err := a.exchange(x, send, recv)
	if err != nil {
		return err
	}
	bufs := a.comm().Bufs()
	if e.runs {
		return bufs.Alltoallw(e.out, e.in)
	}
	return bufs.Alltoallv(e.send, e.sendCounts, e.sendAt, e.recv, e.recvCounts, e.recvAt)
}

// ialltoallv begins the same.
func (a *adoption) ialltoallv(x *move) (r mpi.Request, err error) {
	send, recv := a.parts(x, true), a.parts(x, false)
	if a.pace != nil { // keepPieces copies it
		me := a.both.Rank()
		send[me], recv[me] = part{}, part{}
	}
	e, err := a.exchange(x, send, recv)
	if err != nil {
		return r, err
	}
	bufs := a.comm().Bufs()
	if e.runs {
		return bufs.Ialltoallw(e.out, e.in), nil
	}
	return bufs.Ialltoallv(e.send, e.sendCounts, e.sendAt, e.recv, e.recvCounts, e.recvAt), nil
}

// exchange is what this process gives to an Alltoallv, or, of runs, to an Alltoallw.
type exchange struct {
	runs               bool
	send, recv         mpi.Buf
	sendCounts, sendAt []int
	recvCounts, recvAt []int
	out, in            []mpi.Buf
}

func (a *adoption) exchange(x *move, send, recv []part) (e exchange, err error) {
	old, fresh := a.memory(x)
	if e.runs = !sideBySide(x); !e.runs {
		e.send, e.recv = mpi.BufOf(old), mpi.BufOf(fresh)
		e.sendCounts, e.sendAt = counts(send)
		e.recvCounts, e.recvAt = counts(recv)
		return e, nil
	}
	if e.out, err = all(send, old, x.Bytes, true); err == nil {
		e.in, err = all(recv, fresh, x.Bytes, false)
	}
	return e, err
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
