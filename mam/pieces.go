// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"fmt"
	"iter"
	"time"

	"gompi/internal/resize/layout"
	"gompi/mpi"
)

const (
	// aheadPieces are offered to each target ahead of what it has taken.
	aheadPieces = 64
	// offerPause is how long a source leaves its offers alone: in it a target takes less than
	// what is ahead.
	offerPause = time.Millisecond
)

// inPieces moves data in the background by messages: what goes from one rank to another is
// cut into pieces, equally on both, which the target receives one after the other, at its
// pace. So sources are asked for no more than targets take, whoever of the two copies. It
// is the schedule of the direct Alltoallv, each from the rank after it on; Alltoallv itself
// could not rest: it goes on by whatever call of the process makes progress, also those of
// an iteration. After an error nothing of it is under way.
func (a *adoption) inPieces(x *move, tag int) error {
	ctx, cancel := context.WithCancelCause(a.early)
	defer cancel(nil)
	comm := a.both.WithContext(ctx)
	given := make(chan error, 1)
	go func() {
		err := a.offerPieces(ctx, comm, x, tag)
		if err != nil {
			cancel(err)
		}
		given <- err
	}()
	err := a.takePieces(comm, x, tag)
	if err != nil {
		cancel(err)
		a.both.Revoke() // nobody waits for this process in vain
	}
	if failed := <-given; err == nil && failed == nil {
		return nil
	}
	return context.Cause(ctx) // of the first that has failed
}

// takePieces receives what this process is to have, and copies what it has already.
func (a *adoption) takePieces(comm *mpi.Comm, x *move, tag int) error {
	parts, me := a.partsOf(x, false), a.both.Rank()
	for k := range parts {
		peer := (me + 1 + k) % len(parts)
		if peer == me {
			if err := a.keepPieces(x); err != nil {
				return err
			}
			continue
		}
		for piece := range parts[peer].pieces(x.Bytes, pieceBytes) {
			if err := a.takePiece(comm, peer, tag, &piece, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepPieces copies what stays with this process, at its pace.
func (a *adoption) keepPieces(x *move) error {
	if x.Replicated || a.old < 0 || a.new < 0 {
		return nil
	}
	var stays part
	for p := range layout.Receives(x.split, x.next, a.new) {
		if p.From == a.old {
			stays.runs = append(stays.runs, p)
		}
	}
	old, fresh := a.memory(x)
	for piece := range stays.pieces(x.Bytes, pieceBytes) {
		_ = a.pace.work(func() error { // it cannot fail
			a.keep(fresh, old, piece.runs, x.Bytes)
			return nil
		})
		a.told(int(piece.n))
		if err := a.pace.rest(); err != nil {
			return err
		}
	}
	return nil
}

// takePiece receives a piece as soon as there is one, and rests.
func (a *adoption) takePiece(comm *mpi.Comm, peer, tag int, piece *part, x *move) error {
	b, err := piece.buf(x.fresh, x.Bytes, false)
	if err != nil {
		return err
	}
	st, err := comm.Probe(peer, tag)
	if err != nil {
		return err
	}
	if int64(st.Count) != piece.n {
		return fmt.Errorf("rank %d of both has sent %d bytes, not %d", peer, st.Count, piece.n)
	}
	err = a.pace.work(func() error {
		_, err := comm.Bufs().Recv(b, peer, tag)
		return err
	})
	if err != nil {
		return err
	}
	a.told(int(piece.n))
	return a.pace.rest()
}

// lane is what goes to one target.
type lane struct {
	peer   int
	next   func() (part, bool)
	offers []mpi.Request // the oldest first
}

// offerPieces offers what others are to have of this process until they have taken it. It looks
// after its offers now and then: who waits in the library is woken for each of them, and
// takes its time from the iterations.
func (a *adoption) offerPieces(ctx context.Context, comm *mpi.Comm, x *move, tag int) (err error) {
	old, _ := a.memory(x)
	var lanes []*lane
	for peer, p := range a.partsOf(x, true) {
		if p.n > 0 && peer != a.both.Rank() {
			next, stop := iter.Pull(p.pieces(x.Bytes, pieceBytes))
			defer stop()
			lanes = append(lanes, &lane{peer: peer, next: next})
		}
	}
	defer func() {
		if err == nil {
			return
		}
		a.both.Revoke()
		for _, l := range lanes {
			_ = mpi.Waitall(l.offers) // they end now
		}
	}()
	for over := false; ; {
		over = true
		for _, l := range lanes {
			done, err := l.offer(comm, old, x.Bytes, tag)
			if err != nil {
				return err
			}
			over = over && done
		}
		if over {
			return nil
		}
		t := time.NewTimer(offerPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

// offer ends offers that were taken, and makes others; done: there are none any more.
func (l *lane) offer(comm *mpi.Comm, memory []byte, elem int64, tag int) (done bool, err error) {
	for len(l.offers) > 0 {
		taken, _, err := l.offers[0].Test()
		if taken {
			l.offers = l.offers[1:]
		}
		if err != nil {
			return false, err
		}
		if !taken {
			break
		}
	}
	for len(l.offers) < aheadPieces {
		piece, more := l.next()
		if !more {
			break
		}
		b, err := piece.buf(memory, elem, true)
		if err != nil {
			return false, err
		}
		l.offers = append(l.offers, comm.Bufs().Isend(b, l.peer, tag))
	}
	return len(l.offers) == 0, nil
}

// partsOf is parts, also of replicated data.
func (a *adoption) partsOf(x *move, sends bool) []part {
	if !x.Replicated {
		return a.parts(x, sends)
	}
	list := make([]part, a.both.Size())
	whole := part{n: x.Rule.N * x.Bytes, runs: []layout.Segment{{Len: x.Rule.N}}}
	for d, source := range a.forNewcomers() {
		switch {
		case sends && a.both.Rank() == source:
			list[a.to[d]] = whole
		case !sends && d == a.new:
			list[source] = whole
			x.from += whole.n
		}
	}
	return list
}
