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
	// outstandingPieces are offered to each target ahead of what it has received.
	outstandingPieces = 64
	// offerPause is how long a source leaves its offers alone. In that time a target receives
	// fewer pieces than are outstanding.
	offerPause = time.Millisecond
)

// pieceExchange moves one array in pieces: see exchangeInPieces.
type pieceExchange struct {
	rc   *reconfiguration
	comm *mpi.Comm // ends with the first failure
	x    *transfer
}

// exchangeInPieces moves data in the background by messages. What goes from one rank to
// another is cut into pieces, equally on both. The target receives them one after the other,
// at its rate, so sources are asked for no more than targets take, whoever of the two copies.
// It is the schedule of the direct Alltoallv: each rank starts with the one after it. An
// Alltoallv itself cannot pause: any call of the process that makes progress continues it,
// also those of an iteration. After an error nothing of it is under way.
func (rc *reconfiguration) exchangeInPieces(x *transfer) error {
	ctx, cancel := context.WithCancelCause(rc.background)
	defer cancel(nil)
	e := &pieceExchange{rc: rc, comm: rc.merged.WithContext(ctx), x: x}
	sent := make(chan error, 1)
	go func() {
		err := e.sendPieces(ctx)
		if err != nil {
			cancel(err)
		}
		sent <- err
	}()
	err := e.receivePieces()
	if err != nil {
		cancel(err)
		rc.merged.Revoke() // nobody waits for this process in vain
	}
	if failed := <-sent; err == nil && failed == nil {
		return nil
	}
	return context.Cause(ctx) // the first failure
}

// receivePieces receives what this process is to have, and copies what it has already.
func (e *pieceExchange) receivePieces() error {
	rc, x := e.rc, e.x
	segments, me := rc.segmentsOf(x, false), rc.merged.Rank()
	for k := range segments {
		peer := (me + 1 + k) % len(segments)
		if peer == me {
			if err := rc.copyKeptInPieces(x); err != nil {
				return err
			}
			continue
		}
		for piece := range segments[peer].pieces(x.Bytes, pieceBytes) {
			if err := e.receivePiece(peer, &piece); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyKeptInPieces copies what stays with this process, with the rate limit.
func (rc *reconfiguration) copyKeptInPieces(x *transfer) error {
	if x.Replicated || rc.old < 0 || rc.new < 0 {
		return nil
	}
	var stays segment
	for p := range layout.Receives(x.split, x.nextSplit, rc.new) {
		if p.From == rc.old {
			stays.runs = append(stays.runs, p)
		}
	}
	old, target := rc.memory(x)
	for piece := range stays.pieces(x.Bytes, pieceBytes) {
		_ = rc.limit.work(func() error { // it cannot fail
			rc.copyKept(target, old, piece.runs, x.Bytes)
			return nil
		})
		rc.report(int(piece.n))
		if err := rc.limit.pause(); err != nil {
			return err
		}
	}
	return nil
}

// receivePiece receives a piece as soon as it is there, and pauses.
func (e *pieceExchange) receivePiece(peer int, piece *segment) error {
	rc, x := e.rc, e.x
	b, err := piece.buf(x.target, x.Bytes, false)
	if err != nil {
		return err
	}
	st, err := e.comm.Probe(peer, x.tag)
	if err != nil {
		return err
	}
	if int64(st.Count) != piece.n {
		return fmt.Errorf("rank %d of the merged communicator has sent %d bytes, not %d", peer, st.Count, piece.n)
	}
	err = rc.limit.work(func() error {
		_, err := e.comm.Bufs().Recv(b, peer, x.tag)
		return err
	})
	if err != nil {
		return err
	}
	rc.report(int(piece.n))
	return rc.limit.pause()
}

// outlet has the pieces for one target.
type outlet struct {
	peer   int
	next   func() (segment, bool)
	offers []mpi.Request // the oldest first
}

// sendPieces offers what others are to have of this process until they have received it. It
// looks after its offers now and then: a thread that waits in the library is woken for each of
// them, and takes its time from the iterations.
func (e *pieceExchange) sendPieces(ctx context.Context) (err error) {
	rc, x := e.rc, e.x
	old, _ := rc.memory(x)
	var outlets []*outlet
	for peer, s := range rc.segmentsOf(x, true) {
		if s.n > 0 && peer != rc.merged.Rank() {
			next, stop := iter.Pull(s.pieces(x.Bytes, pieceBytes))
			defer stop()
			outlets = append(outlets, &outlet{peer: peer, next: next})
		}
	}
	defer func() {
		if err == nil {
			return
		}
		rc.merged.Revoke()
		for _, o := range outlets {
			_ = mpi.Waitall(o.offers) // they end now
		}
	}()
	for {
		over := true
		for _, o := range outlets {
			done, err := o.offer(e.comm, old, x)
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

// offer ends offers that were received, and makes others. It reports whether all pieces were
// received.
func (o *outlet) offer(comm *mpi.Comm, memory []byte, x *transfer) (done bool, err error) {
	for len(o.offers) > 0 {
		taken, _, err := o.offers[0].Test()
		if taken {
			o.offers = o.offers[1:]
		}
		if err != nil {
			return false, err
		}
		if !taken {
			break
		}
	}
	for len(o.offers) < outstandingPieces {
		piece, more := o.next()
		if !more {
			break
		}
		b, err := piece.buf(memory, x.Bytes, true)
		if err != nil {
			return false, err
		}
		o.offers = append(o.offers, comm.Bufs().Isend(b, o.peer, x.tag))
	}
	return len(o.offers) == 0, nil
}
