// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/internal/resize/layout"
	"gompi/mpi"
	"gompi/rma"
	"gompi/sessions"
)

// shown is what a member has while its set is the one that changes, and with method PULL
// lets others read: its constant data.
type shown struct {
	store       *sessions.Store
	ranks, rank int
	memory      [][]byte       // by array; nil of variable data
	exposed     []*rma.Exposed // likewise, with PULL
}

// keysKey is where the keys of a member are, in the store of the set: of so many data, and
// of an edition of them.
func keysKey(edition, data, rank int) string {
	return fmt.Sprintf("gompi.mam.keys.%d.%d.%d", edition, data, rank)
}

// offer is a key as it stands in stores and messages, with the size of what it is of.
const offerBytes = len(rma.Key{}) + 8

func putOffer(b []byte, key rma.Key, bytes int) {
	copy(b, key[:])
	binary.LittleEndian.PutUint64(b[len(key):], uint64(bytes))
}

// show notes constant data; with PULL it exposes that, and puts the keys into the store of
// the set.
func (m *Module) show(store *sessions.Store) error {
	m.hide()
	s := &shown{store: store, ranks: m.comm.Size(), rank: m.comm.Rank()}
	exposes := m.config.mayPull()
	b := make([]byte, offerBytes*len(m.arrays))
	for i, x := range m.arrays {
		var memory []byte
		var e *rma.Exposed
		if x.Mode == Constant {
			if err := x.held(s.rank); err != nil {
				return errors.Join(m.refuse("Checkpoint", mpi.ErrCount, err), s.close())
			}
			if memory = x.memory(); memory == nil {
				memory = []byte{}
			}
		}
		if exposes && x.Mode == Constant && x.shared == nil {
			var err error
			if e, err = rma.Expose(m.comm.Process(), memory); err != nil {
				return errors.Join(err, s.close())
			}
			putOffer(b[i*offerBytes:], e.Key(), len(memory))
		}
		s.memory, s.exposed = append(s.memory, memory), append(s.exposed, e)
	}
	if exposes {
		if err := store.Put(keysKey(m.edition, len(m.arrays), s.rank), b); err != nil {
			return errors.Join(err, s.close())
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = s
	return nil
}

// hide ends what show has begun. All who were to read have read: a change is committed, or
// the watch is over.
func (m *Module) hide() {
	m.mu.Lock()
	s := m.shown
	m.shown = nil
	m.mu.Unlock()
	if s != nil {
		_ = s.close()
	}
}

func (s *shown) close() (err error) {
	for _, e := range s.exposed {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	return err
}

// reader reads what other processes have exposed for a change.
type reader struct {
	a      *adoption
	ctx    context.Context
	offers map[int][]byte // of the sources, by rank before the change
	list   []*move        // which array each offer is of
	opened map[[2]int]*rma.Remote
	pace   *pace
	told   func(bytes int)
}

// pieceBytes is how much is read at once.
const pieceBytes = 256 << 10

// pullEarly reads all constant data that this process is to have. own is what it shows
// itself; nil: it is a newcomer.
func (a *adoption) pullEarly(ctx context.Context, store *sessions.Store, own *shown) error {
	r := &reader{a: a, ctx: ctx, offers: map[int][]byte{}, opened: map[[2]int]*rma.Remote{}, list: a.moves}
	defer r.close()
	r.pace = a.paced(ctx)
	r.told = a.told
	for i, x := range a.moves {
		if x.Mode != Constant || x.shared != nil {
			continue
		}
		if err := a.touch(x, r.pace); err != nil {
			return err
		}
		if x.fresh == nil {
			x.moved = true // it stays what it is
			continue
		}
		if err := r.ask(store, i, own); err != nil {
			return err
		}
		var mine []byte
		if own != nil {
			mine = own.memory[i]
		}
		if err := r.read(i, mine); err != nil {
			return err
		}
		x.moved = true
	}
	return nil
}

// ask gets the offers of those sources that have a part of an array.
func (r *reader) ask(store *sessions.Store, array int, own *shown) error {
	var keys []string
	var ranks []int
	r.sources(array, func(rank int) {
		if _, ok := r.offers[rank]; !ok && (own == nil || rank != own.rank) {
			r.offers[rank] = nil
			keys, ranks = append(keys, keysKey(r.a.edition, len(r.list), rank)), append(ranks, rank)
		}
	})
	for len(keys) > 0 {
		n := min(len(keys), sessions.MaxKeys)
		values, err := store.Get(r.ctx, true, keys[:n]...)
		if err != nil {
			return err
		}
		for i, v := range values {
			if len(v) != offerBytes*len(r.list) {
				return fmt.Errorf("mam: rank %d has put keys of %d bytes, %d data have %d", ranks[i], len(v), len(r.list), offerBytes*len(r.list))
			}
			r.offers[ranks[i]] = v
		}
		keys, ranks = keys[n:], ranks[n:]
	}
	return nil
}

// sources calls f with the rank of each source from which this process gets some of an
// array, perhaps more than once.
func (r *reader) sources(array int, f func(rank int)) {
	x, a := r.list[array], r.a
	if x.Replicated {
		f(a.replica())
		return
	}
	for p := range layout.Receives(x.split, x.next, a.new) {
		f(p.From)
	}
}

// replica is the source, by its rank before the change, from which this newcomer gets
// replicated data: one that lives, another one for the next newcomer.
func (a *adoption) replica() int {
	at := (a.new - len(a.stay)) % (len(a.from) - len(a.dead()))
	for s, k := range a.from {
		if k == at {
			return s
		}
	}
	panic("gompi: BUG: no source is left")
}

// read reads this process's part of an array; mine is what it has of it.
func (r *reader) read(array int, mine []byte) error {
	x, a := r.list[array], r.a
	if x.Replicated {
		return r.from(array, a.replica(), x.Rule.N*x.Bytes, x.fresh, 0)
	}
	for p := range layout.Receives(x.split, x.next, a.new) {
		to := x.fresh[p.ToAt*x.Bytes : (p.ToAt+p.Len)*x.Bytes]
		if p.From == a.old {
			copy(to, mine[p.FromAt*x.Bytes:])
			continue
		}
		if err := r.from(array, p.From, x.split.Count(p.From)*x.Bytes, to, p.FromAt*x.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// from reads bytes of what a source shows of an array, which has to have want in all.
func (r *reader) from(array, rank int, want int64, to []byte, at int64) error {
	remote, err := r.open(array, rank, want)
	if err != nil {
		return err
	}
	r.list[array].from += int64(len(to))
	return r.a.inHands(int64(len(to)), r.pace, func(lo, hi int64) error {
		return r.pieces(to[lo:hi], at+lo, func(to []byte, at int64) error {
			if err := rma.Read(remote, to, int(at)); err != nil {
				return err
			}
			r.told(len(to))
			return nil
		})
	})
}

// pieces calls read for pieces of memory that are to be read from a place on, with rests.
func (r *reader) pieces(to []byte, at int64, read func(to []byte, at int64) error) error {
	for len(to) > 0 {
		n := min(len(to), pieceBytes)
		if err := r.pace.work(func() error { return read(to[:n], at) }); err != nil {
			return err
		}
		if to, at = to[n:], at+int64(n); len(to) > 0 {
			if err := r.pace.rest(); err != nil {
				return err
			}
		}
	}
	return nil
}

// open opens what a source shows of an array.
func (r *reader) open(array, rank int, want int64) (*rma.Remote, error) {
	if o := r.opened[[2]int{array, rank}]; o != nil {
		return o, nil
	}
	b := r.offers[rank]
	if len(b) < (array+1)*offerBytes {
		return nil, fmt.Errorf("mam: rank %d shows nothing of data %d", rank, array)
	}
	o, err := r.opens(b[array*offerBytes:], rank, want, r.list[array].Name)
	if err == nil {
		r.opened[[2]int{array, rank}] = o
	}
	return o, err
}

// opens opens an offer of a source, of memory that has to have want bytes, for data of a
// name.
func (r *reader) opens(offer []byte, rank int, want int64, name string) (*rma.Remote, error) {
	key := rma.Key(offer[:len(rma.Key{})])
	if got := binary.LittleEndian.Uint64(offer[len(key):]); got != uint64(want) {
		return nil, fmt.Errorf("mam: rank %d shows %d bytes of %q, not %d", rank, got, name, want)
	}
	o, err := rma.Open(r.a.m.process, key)
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
