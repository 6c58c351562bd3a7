// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"

	"gompi/mpi"
	"gompi/rma"
)

// windows are methods RMA-Lock and RMA-Lockall, for distributed data: first the windows of
// all arrays, then all epochs, in which targets get their segments, then the end of each
// epoch and of all windows. A rank that fails revokes its windows, so that nobody waits for
// it in a Free; the error is the first one. Replicated data goes by messages. Algorithms 2
// and 3 of the study of MaM with RMA.
//
// In the background these are the three paths of the published Wait-Drains. A rank that is a
// target only reads. One that is a source only makes the windows and waits for their end. One
// that is both reads piece by piece, each with a request, and leaves the processor to the
// iterations in between. In Free the goroutines, not the iterations, wait for the last
// reader.
type windows struct {
	rc      *reconfiguration
	lockAll bool // one epoch a window, instead of one for each source
}

func newLockWindows(rc *reconfiguration) mover {
	return &exchange{rc: rc, by: &windows{rc: rc}}
}

func newLockAllWindows(rc *reconfiguration) mover {
	return &exchange{rc: rc, by: &windows{rc: rc, lockAll: true}}
}

// window is the window of an array.
type window struct {
	*rma.Window
	x        *transfer
	segments []segment // received by this process, by ranks of the merged communicator
}

func (m *windows) exchange(list []*transfer) error {
	if err := m.getAll(list); err != nil {
		return err
	}
	return m.rc.exchangeEach(list, nil) // replicated data
}

// getAll moves the distributed data of a list.
func (m *windows) getAll(list []*transfer) error {
	rc := m.rc
	all, err := m.create(list)
	for _, each := range [...]func(*window) error{m.beginGets, m.endGets} {
		for _, w := range all {
			if err == nil {
				err = transferError(w.x, rc, each(w))
			}
		}
	}
	for _, w := range all {
		if err != nil {
			w.Revoke()
			w.Window = w.WithContext(context.Background()) // it ends now
			_ = m.endGets(w)                               // epochs that were begun
		}
		failed := w.Free()
		if err == nil {
			err = transferError(w.x, rc, failed)
		}
		w.x.done = true
	}
	return err
}

// create makes the windows. With an error it returns those that were made.
func (m *windows) create(list []*transfer) (all []*window, err error) {
	rc := m.rc
	for _, x := range list {
		if x.done || x.Replicated {
			continue
		}
		if err := rc.allocate(x, rc.limit); err != nil {
			return all, err
		}
		old, _ := rc.memory(x)
		w, err := rma.Create(rc.comm(), old)
		if err != nil {
			return all, transferError(x, rc, err)
		}
		if rc.background != nil {
			w = w.WithContext(rc.background)
		}
		all = append(all, &window{w, x, rc.segments(x, false)})
	}
	return all, nil
}

// beginGets begins the epochs of a window, and all reads in them. What stays with its process
// is copied.
func (m *windows) beginGets(w *window) error {
	rc := m.rc
	if m.lockAll && rc.new >= 0 {
		if err := w.LockAll(rma.NoCheck); err != nil {
			return err
		}
	}
	old, target := rc.memory(w.x)
	for peer := range w.segments {
		s := &w.segments[peer]
		switch {
		case s.n == 0:
			continue
		case peer == rc.merged.Rank() && rc.limit != nil:
			if err := rc.copyKeptInPieces(w.x); err != nil {
				return err
			}
			continue
		case peer == rc.merged.Rank():
			rc.copyKept(target, old, s.runs, w.x.Bytes)
			continue
		case !m.lockAll:
			if err := w.Lock(rma.LockShared, peer, rma.NoCheck); err != nil {
				return err
			}
		}
		if err := m.getSegment(w, peer, s); err != nil {
			return err
		}
	}
	return nil
}

// getSegment reads a segment: by all workers, or with the rate limit.
func (m *windows) getSegment(w *window, peer int, s *segment) error {
	rc := m.rc
	if rc.limit == nil {
		for step := range s.pieces(w.x.Bytes, stepBytes) {
			err := m.getStep(w, peer, &step)
			if err == nil && step.n < s.n { // a whole segment is complete when the epoch ends
				err = w.Flush(peer)
			}
			if err != nil {
				return err
			}
			rc.report(int(step.n))
		}
		return nil
	}
	for piece := range s.pieces(w.x.Bytes, pieceBytes) {
		err := rc.limit.work(func() error {
			return m.getBuf(w, &piece, func(to mpi.Buf, at int, from mpi.Datatype) error {
				r := w.RGetBuf(to, peer, at, 1, from)
				_, err := r.Wait()
				return err
			})
		})
		if err != nil {
			return err
		}
		rc.report(int(piece.n))
		if err := rc.limit.pause(); err != nil {
			return err
		}
	}
	return nil
}

// getStep begins to read a step of a segment.
func (m *windows) getStep(w *window, peer int, s *segment) error {
	if len(s.runs) > 1 {
		return m.getBuf(w, s, func(to mpi.Buf, at int, from mpi.Datatype) error { return w.GetBuf(to, peer, at, 1, from) })
	}
	return m.rc.parallel(s.n, nil, func(lo, hi int64) error {
		return rma.Get(w.Window, w.x.target[s.at+lo:s.at+hi], peer, int(s.runs[0].FromAt*w.x.Bytes+lo))
	})
}

func (m *windows) getBuf(w *window, s *segment, get func(to mpi.Buf, at int, from mpi.Datatype) error) error {
	to, err := s.buf(w.x.target, w.x.Bytes, false)
	if err != nil {
		return err
	}
	from, at, err := s.remoteType(w.x.Bytes)
	if err != nil {
		return err
	}
	return get(to, at, from)
}

// endGets ends the epochs of a window: all data is here.
func (m *windows) endGets(w *window) (err error) {
	if m.lockAll {
		if m.rc.new < 0 {
			return nil
		}
		return w.UnlockAll()
	}
	for peer, s := range w.segments {
		if s.n > 0 && peer != m.rc.merged.Rank() {
			err = errors.Join(err, w.Unlock(peer))
		}
	}
	return err
}
