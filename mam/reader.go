// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/internal/resize/layout"
	"gompi/rma"
	"gompi/sessions"
)

// reader reads memory that sources have exposed for a change.
type reader struct {
	rc     *reconfiguration
	ctx    context.Context
	list   []*transfer    // the array of each offer
	offers map[int][]byte // of the sources, by rank before the change
	opened map[[2]int]*rma.Remote
	limit  *rateLimit // nil: at the commit
}

// newReader returns a reader of the data of a list, which knows no offers yet.
func (rc *reconfiguration) newReader(ctx context.Context, list []*transfer) *reader {
	return &reader{
		rc:     rc,
		ctx:    ctx,
		list:   list,
		offers: map[int][]byte{},
		opened: map[[2]int]*rma.Remote{},
	}
}

// pieceBytes is how much is read at once, and how much a piece of a segment has.
const pieceBytes = 256 << 10

// fetchConstantOffers gets the offers of those sources that have a part of an array.
func (r *reader) fetchConstantOffers(store *sessions.Store, array int) error {
	key := func(rank int) string { return constantKey(r.rc.edition, len(r.list), rank) }
	return r.fetchOffers(store, array, key, func(rank int, v []byte) ([]byte, error) {
		if len(v) != offerBytes*len(r.list) {
			return nil, fmt.Errorf("mam: rank %d has put keys of %d bytes, %d data have %d", rank, len(v), len(r.list), offerBytes*len(r.list))
		}
		return v, nil
	})
}

// fetchOffers waits for the offers of those sources that have a part of an array, but for this
// process's own, and checks them.
func (r *reader) fetchOffers(store *sessions.Store, array int, key func(rank int) string, check func(rank int, v []byte) ([]byte, error)) error {
	var keys []string
	var ranks []int
	r.eachSource(array, func(rank int) {
		if _, ok := r.offers[rank]; !ok && rank != r.rc.old {
			r.offers[rank] = nil
			keys, ranks = append(keys, key(rank)), append(ranks, rank)
		}
	})
	for len(keys) > 0 {
		n := min(len(keys), sessions.MaxKeys)
		values, err := store.Get(r.ctx, true, keys[:n]...)
		if err != nil {
			return err
		}
		for i, v := range values {
			if r.offers[ranks[i]], err = check(ranks[i], v); err != nil {
				return err
			}
		}
		keys, ranks = keys[n:], ranks[n:]
	}
	return nil
}

// eachSource calls f with the rank of each source from which this process gets some of an
// array, perhaps more than once.
func (r *reader) eachSource(array int, f func(rank int)) {
	x, rc := r.list[array], r.rc
	if x.Replicated {
		f(rc.replicaSource())
		return
	}
	for p := range layout.Receives(x.split, x.nextSplit, rc.new) {
		f(p.From)
	}
}

// readOwnPart reads this process's part of a constant array, and copies what it has of it.
func (r *reader) readOwnPart(array int) error {
	x, rc := r.list[array], r.rc
	if x.Replicated {
		return r.readBytes(array, rc.replicaSource(), x.Rule.N*x.Bytes, x.target, 0)
	}
	for p := range layout.Receives(x.split, x.nextSplit, rc.new) {
		to := x.target[p.ToAt*x.Bytes : (p.ToAt+p.Len)*x.Bytes]
		if p.From == rc.old {
			copy(to, rc.publication.memory[array][p.FromAt*x.Bytes:])
			continue
		}
		if err := r.readBytes(array, p.From, x.split.Count(p.From)*x.Bytes, to, p.FromAt*x.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// readBytes reads bytes from an offset on of what a source has exposed of an array; want is
// the size of all of that.
func (r *reader) readBytes(array, rank int, want int64, to []byte, at int64) error {
	remote, err := r.openOffer(array, rank, want)
	if err != nil {
		return err
	}
	r.list[array].received += int64(len(to))
	return r.rc.parallel(int64(len(to)), r.limit, func(lo, hi int64) error {
		return r.limit.inPieces(to[lo:hi], at+lo, func(to []byte, at int64) error {
			if err := rma.Read(remote, to, int(at)); err != nil {
				return err
			}
			r.rc.report(len(to))
			return nil
		})
	})
}

// openOffer opens what a source offers of an array, once.
func (r *reader) openOffer(array, rank int, want int64) (*rma.Remote, error) {
	if o := r.opened[[2]int{array, rank}]; o != nil {
		return o, nil
	}
	b := r.offers[rank]
	if len(b) < (array+1)*offerBytes {
		return nil, fmt.Errorf("mam: rank %d shows nothing of data %d", rank, array)
	}
	o, err := r.openKey(b[array*offerBytes:], rank, want, r.list[array].Name)
	if err == nil {
		r.opened[[2]int{array, rank}] = o
	}
	return o, err
}

// openKey opens the memory of an offer, which must have want bytes, of data with a name.
func (r *reader) openKey(offer []byte, rank int, want int64, name string) (*rma.Remote, error) {
	key := rma.Key(offer[:len(rma.Key{})])
	if got := binary.LittleEndian.Uint64(offer[len(key):]); got != uint64(want) {
		return nil, fmt.Errorf("mam: rank %d shows %d bytes of %q, not %d", rank, got, name, want)
	}
	o, err := rma.Open(r.rc.m.process, key)
	if err != nil {
		return nil, err
	}
	if o.Bytes() != want || o.DispUnit() != 1 {
		err := fmt.Errorf("mam: the memory of rank %d has %d bytes in units of %d, not %d of %q", rank, o.Bytes(), o.DispUnit(), want, name)
		return nil, errors.Join(err, o.Close())
	}
	return o.WithContext(r.ctx), nil
}

func (r *reader) close() {
	for _, o := range r.opened {
		_ = o.Close() // no call is under way
	}
}
