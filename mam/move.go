// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"gompi/internal/resize/layout"
	"gompi/mpi"
)

// moveAll moves all data of a mode that has not moved.
func (a *adoption) moveAll(mode Mode) error {
	start, touched := time.Now(), a.times.Touch
	left := slices.ContainsFunc(a.moves, func(x *move) bool { return x.Mode == mode && !x.moved })
	if err := a.moveArrays(mode); err != nil {
		return err
	}
	if mode == Constant && a.config.early() {
		for _, x := range a.moves {
			if x.Mode == mode && !x.moved && a.new >= 0 {
				return fmt.Errorf("gompi: BUG: %q has not moved, from %d to %d ranks", x.Name, a.times.NS, a.times.ND)
			}
		}
		return nil // it is there
	}
	if mode == Variable {
		if err := a.moveEncoded(); err != nil {
			return err
		}
	}
	if a.config.Method == Pull {
		if err := a.pullNow(dataOf(mode)); err != nil {
			return fmt.Errorf("mam: from %d to %d ranks: %w", a.times.NS, a.times.ND, err)
		}
	}
	if mode == Variable {
		if err := a.pullNow(func(x *move) bool { return x.ahead }); err != nil {
			return fmt.Errorf("mam: from %d to %d ranks: %w", a.times.NS, a.times.ND, err)
		}
	}
	if err := a.move(dataOf(mode)); err != nil {
		return err
	}
	if left {
		a.times.Sync += a.times.spent(AtCommit, start) - (a.times.Touch - touched)
	}
	return nil
}

// dataOf are the data of a mode.
func dataOf(mode Mode) func(*move) bool { return func(x *move) bool { return x.Mode == mode } }

// move moves all data of some that has not moved, with its sources, and waits for it.
func (a *adoption) move(is func(*move) bool) error {
	if a.config.windows() {
		if err := a.getAll(is); err != nil {
			return err
		}
	}
	for i, x := range a.moves {
		if x.moved || !is(x) {
			continue
		}
		if err := a.touch(x, a.pace); err != nil {
			return err
		}
		var err error
		switch {
		case a.pace != nil:
			err = a.inPieces(x, i)
		case x.Replicated:
			var reqs requests
			if reqs, err = a.replicate(x, i); err == nil {
				err = a.wait(reqs)
			}
		case a.config.Method == P2P:
			var reqs requests
			if reqs, err = a.pointToPoint(x, i); err == nil {
				err = a.wait(reqs)
			}
		default:
			err = a.alltoallv(x)
		}
		if err != nil {
			return moveError(x, a, err)
		}
		x.moved = true
	}
	return nil
}

// replicate begins to give newcomers replicated data: see forNewcomers.
func (a *adoption) replicate(x *move, tag int) (r requests, err error) {
	bufs := a.comm().Bufs()
	old, fresh := a.memory(x)
	for peer, p := range a.partsOf(x, false) {
		for step := range p.pieces(x.Bytes, stepBytes) {
			b, err := step.buf(fresh, x.Bytes, false)
			if err != nil {
				return r, err
			}
			r.add(bufs.Irecv(b, peer, tag), step.n)
		}
	}
	for peer, p := range a.partsOf(x, true) {
		for step := range p.pieces(x.Bytes, stepBytes) {
			b, err := step.buf(old, x.Bytes, true)
			if err != nil {
				return r, err
			}
			r.add(bufs.Isend(b, peer, tag), step.n)
		}
	}
	return r, nil
}

// forNewcomers are the newcomers, by their rank after the change, and for each the source,
// by its rank in both, that does for it what any of them can: the k-th for the k-th, counted
// around.
func (a *adoption) forNewcomers() iter.Seq2[int, int] {
	return func(yield func(d, source int) bool) {
		sources := len(a.from) - len(a.dead()) // the first ranks of both
		for d := len(a.stay); d < len(a.to) && yield(d, (d-len(a.stay))%sources); d++ {
		}
	}
}

// part is what goes between this process and another: bytes side by side, or runs of them.
type part struct {
	at, n int64 // the first piece's place, and all bytes
	runs  []layout.Segment
}

// parts are what this process sends (as the source with a rank) or receives (as the
// target), by ranks in both.
func (a *adoption) parts(x *move, sends bool) []part {
	list := make([]part, a.both.Size())
	note := func(rank int, at int64, p layout.Segment) {
		o := &list[rank]
		if o.n == 0 {
			o.at = at * x.Bytes
		}
		o.n += p.Len * x.Bytes
		o.runs = append(o.runs, p)
	}
	switch {
	case sends && a.old >= 0:
		for p := range layout.Sends(x.split, x.next, a.old) {
			note(a.to[p.To], p.FromAt, p)
		}
	case !sends && a.new >= 0:
		for p := range layout.Receives(x.split, x.next, a.new) {
			note(a.from[p.From], p.ToAt, p)
			if a.from[p.From] != a.both.Rank() {
				x.from += p.Len * x.Bytes
			}
		}
	}
	return list
}

// buf is a part of memory as one buffer.
func (o *part) buf(memory []byte, elem int64, sends bool) (mpi.Buf, error) {
	switch len(o.runs) {
	case 0:
		return mpi.BufOf[byte](nil), nil
	case 1:
		at := o.runs[0].ToAt * elem
		if sends {
			at = o.runs[0].FromAt * elem
		}
		return mpi.BufOf(memory[at : at+o.n]), nil
	}
	dt, err := o.indexed(elem, sends)
	if err != nil {
		return mpi.Buf{}, err
	}
	b := mpi.BufAs(dt, memory, 1)
	return b, b.Err()
}

// indexed is the type of a part among the bytes of who sends it, or receives it.
func (o *part) indexed(elem int64, sends bool) (mpi.Datatype, error) {
	lengths, displs := make([]int, len(o.runs)), make([]int, len(o.runs))
	for i, r := range o.runs {
		at := r.ToAt
		if sends {
			at = r.FromAt
		}
		lengths[i], displs[i] = int(r.Len*elem), int(at*elem)
	}
	return mpi.TypeIndexed(lengths, displs, mpi.TypeOf[byte]())
}

// memory is what this process has of data, and what it is to have.
func (a *adoption) memory(x *move) (old, fresh []byte) {
	switch {
	case x.have != nil:
		old = x.have
	case a.old >= 0:
		old = x.memory()
	}
	return old, x.fresh
}
