// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"gompi/mpi"
	"gompi/rma"
)

// windows reports whether data moves by windows.
func (c *Config) windows() bool { return c.Method == RMALock || c.Method == RMALockall }

// window is what methods RMA-Lock and RMA-Lockall have of an array.
type window struct {
	*rma.Window
	x     *move
	parts []part // that this process receives, by ranks in both
}

// getAll moves all distributed data of a mode by methods RMA-Lock and RMA-Lockall: first
// the windows of all arrays, then all epochs, in which targets get what they are to have,
// then the end of each, and of all windows. Who has failed revokes its windows, so that
// nobody waits for it in their frees; the error is the first one. Algorithms 2 and 3 of the
// study of MaM with RMA.
//
// Early it has the three paths of its Wait-Drains: who is a target only reads; who is a
// source only makes the windows and waits for their end; who is both reads piece by piece,
// each with a request, and leaves the processor to the iterations between them. The frees
// are where all wait for the last reader: not the iterations, but the goroutine.
func (a *adoption) getAll(is func(*move) bool) error {
	var list []*window
	var err error
	for _, x := range a.moves {
		if x.moved || !is(x) || x.Replicated {
			continue
		}
		if err = a.touch(x, a.pace); err != nil {
			break
		}
		old, _ := a.memory(x)
		w, failed := rma.Create(a.comm(), old)
		if failed != nil {
			err = moveError(x, a, failed)
			break
		}
		if a.early != nil {
			w = w.WithContext(a.early)
		}
		list = append(list, &window{w, x, a.parts(x, false)})
	}
	for _, each := range [...]func(*window) error{a.get, a.got} {
		for _, w := range list {
			if err == nil {
				err = moveError(w.x, a, each(w))
			}
		}
	}
	for _, w := range list {
		if err != nil {
			w.Revoke()
			w.Window = w.WithContext(context.Background()) // it ends now
			_ = a.got(w)                                   // epochs that were begun
		}
		failed := w.Free()
		if err == nil {
			err = moveError(w.x, a, failed)
		}
		w.x.moved = true
	}
	return err
}

// get begins the epochs of a window, and all reads in them; what stays with its process is
// copied.
func (a *adoption) get(w *window) error {
	if a.config.Method == RMALockall && a.new >= 0 {
		if err := w.LockAll(rma.NoCheck); err != nil {
			return err
		}
	}
	old, fresh := a.memory(w.x)
	for peer := range w.parts {
		p := &w.parts[peer]
		switch {
		case p.n == 0:
			continue
		case peer == a.both.Rank() && a.pace != nil:
			if err := a.keepPieces(w.x); err != nil {
				return err
			}
			continue
		case peer == a.both.Rank():
			a.keep(fresh, old, p.runs, w.x.Bytes)
			continue
		case a.config.Method == RMALock:
			if err := w.Lock(rma.LockShared, peer, rma.NoCheck); err != nil {
				return err
			}
		}
		if err := a.getPart(w, peer, p); err != nil {
			return err
		}
	}
	return nil
}

// getPart reads what one source has for this process: with all hands, or at a pace.
func (a *adoption) getPart(w *window, peer int, p *part) error {
	if a.pace == nil {
		for step := range p.pieces(w.x.Bytes, stepBytes) {
			err := a.getStep(w, peer, &step)
			if err == nil && step.n < p.n { // else it has come when the epoch ends
				err = w.Flush(peer)
			}
			if err != nil {
				return err
			}
			a.told(int(step.n))
		}
		return nil
	}
	for piece := range p.pieces(w.x.Bytes, pieceBytes) {
		err := a.pace.work(func() error {
			return a.getOnce(w, peer, &piece, func(to mpi.Buf, at int, from mpi.Datatype) error {
				r := w.RGetBuf(to, peer, at, 1, from)
				_, err := r.Wait()
				return err
			})
		})
		if err != nil {
			return err
		}
		a.told(int(piece.n))
		if err := a.pace.rest(); err != nil {
			return err
		}
	}
	return nil
}

// getStep begins to read a step of what one source has for this process.
func (a *adoption) getStep(w *window, peer int, p *part) error {
	if len(p.runs) > 1 {
		return a.getOnce(w, peer, p, func(to mpi.Buf, at int, from mpi.Datatype) error { return w.GetBuf(to, peer, at, 1, from) })
	}
	return a.inHands(p.n, nil, func(lo, hi int64) error {
		return rma.Get(w.Window, w.x.fresh[p.at+lo:p.at+hi], peer, int(p.runs[0].FromAt*w.x.Bytes+lo))
	})
}

func (a *adoption) getOnce(w *window, peer int, p *part, get func(to mpi.Buf, at int, from mpi.Datatype) error) error {
	to, err := p.buf(w.x.fresh, w.x.Bytes, false)
	if err != nil {
		return err
	}
	from, at, err := p.source(w.x.Bytes)
	if err != nil {
		return err
	}
	return get(to, at, from)
}

// pieces are parts that make up this one, of about so many bytes each.
func (o *part) pieces(elem, bytes int64) iter.Seq[part] {
	most := max(1, bytes/elem) // elements
	return func(yield func(part) bool) {
		var next part
		left := most
		for _, r := range o.runs {
			for r.Len > 0 {
				k := r
				k.Len = min(k.Len, left)
				if len(next.runs) == 0 {
					next.at = k.ToAt * elem
				}
				next.runs, next.n = append(next.runs, k), next.n+k.Len*elem
				r.FromAt, r.ToAt, r.Len = r.FromAt+k.Len, r.ToAt+k.Len, r.Len-k.Len
				if left -= k.Len; left == 0 {
					if !yield(next) {
						return
					}
					next, left = part{}, most
				}
			}
		}
		if len(next.runs) > 0 {
			yield(next)
		}
	}
}

// got ends the epochs of a window: all data is here.
func (a *adoption) got(w *window) (err error) {
	if a.config.Method == RMALockall {
		if a.new < 0 {
			return nil
		}
		return w.UnlockAll()
	}
	for peer, p := range w.parts {
		if p.n > 0 && peer != a.both.Rank() {
			err = errors.Join(err, w.Unlock(peer))
		}
	}
	return err
}

// source is where a part lies in the window of its source: one element of a type, and its
// offset in bytes.
func (o *part) source(elem int64) (mpi.Datatype, int, error) {
	if len(o.runs) == 1 {
		dt, err := mpi.TypeContiguous(int(o.n), mpi.TypeOf[byte]())
		return dt, int(o.runs[0].FromAt * elem), err
	}
	dt, err := o.indexed(elem, true)
	return dt, 0, err
}

// moveError names the array and the change of an error; nil of nil.
func moveError(x *move, a *adoption, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mam: %q, from %d to %d ranks: %w", x.Name, a.times.NS, a.times.ND, err)
}
