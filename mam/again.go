// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gompi/internal/host/dirty"
	"gompi/internal/resize/layout"
	"gompi/mpi"
	"gompi/rma"
)

// What a source tells of an array at the commit: an offer of its part, and one of the set of
// chunks that were written since that was lent; zeros of what is to be read whole.
const saidBytes = 2 * offerBytes

// pullNow moves, at the commit, data of some that has not moved: all sources expose it,
// until the decision, and tell the keys over both; targets read. Of what was lent, and read,
// they read what was written since.
func (a *adoption) pullNow(is func(*move) bool) error {
	r := &reader{a: a, ctx: a.m.ctx, offers: map[int][]byte{}, opened: map[[2]int]*rma.Remote{}, told: a.told}
	defer r.close()
	for _, x := range a.moves {
		if !x.moved && is(x) && (!x.Replicated || len(a.to) > len(a.stay)) {
			r.list = append(r.list, x)
		}
	}
	if len(r.list) == 0 {
		return nil
	}
	mine := make([]byte, saidBytes*len(r.list))
	for i, x := range r.list {
		if a.old < 0 {
			break
		}
		if err := a.say(x, mine[i*saidBytes:]); err != nil {
			return err
		}
	}
	all := make([]byte, len(mine)*a.both.Size())
	if err := mpi.Allgather(a.both, mine, all); err != nil {
		return err
	}
	sets := map[int][]byte{} // offers of sets, by rank before the change
	for s, at := range a.from {
		if at < 0 {
			continue
		}
		for i := range r.list {
			said := all[at*len(mine)+i*saidBytes:][:saidBytes]
			r.offers[s], sets[s] = append(r.offers[s], said[:offerBytes]...), append(sets[s], said[offerBytes:]...)
		}
	}
	for i, x := range r.list {
		if err := a.touch(x, nil); err != nil {
			return err
		}
		if x.fresh != nil {
			if err := a.complete(r, i, sets); err != nil {
				return err
			}
		}
		x.moved = true
	}
	return nil
}

// say tells what this source has of data: what was written since it was lent, if that is
// known of the memory that the program has now.
func (a *adoption) say(x *move, b []byte) error {
	memory := x.memory()
	if l := a.loans[x.array]; l != nil {
		set, err := l.written(a.m.process, memory, x.Marked)
		if err == nil {
			e, err := rma.Expose(a.m.process, set.Encoded())
			if err != nil {
				return err
			}
			a.open, x.own = append(a.open, e), set
			putOffer(b[offerBytes:], e.Key(), len(set.Encoded()))
			putOffer(b, l.exposed.Key(), len(memory))
			return nil
		}
		a.m.mention(a.old, fmt.Sprintf("%q moves anew at the commit: %v", x.Name, err))
	}
	e, err := rma.Expose(a.m.process, memory)
	if err != nil {
		return err
	}
	a.open = append(a.open, e)
	putOffer(b, e.Key(), len(memory))
	return nil
}

var errOther = errors.New("the program has assigned other memory to its variable")

// written is what was written since the loan, of memory that is the same still.
func (l *loan) written(p *mpi.Process, memory []byte, marked bool) (*dirty.Set, error) {
	switch {
	case !sameMemory(memory, l.memory):
		return nil, errOther
	case !marked && rma.Stored(p, memory):
		return nil, errStored
	}
	return l.watch.Written()
}

// complete reads what this process has not yet of an array, by what sources have said: all
// of a source's part, or what was written after it was read.
func (a *adoption) complete(r *reader, array int, sets map[int][]byte) error {
	x := r.list[array]
	again := map[int]*part{} // from sources of which something is to be read again
	var have []byte
	if a.old >= 0 {
		have = x.memory()
	}
	piece := func(p layout.Segment, whole int64) error {
		to, at := x.fresh[p.ToAt*x.Bytes:(p.ToAt+p.Len)*x.Bytes], p.FromAt*x.Bytes
		set, err := a.setOf(r, array, p.From, whole, sets[p.From])
		switch {
		case err != nil:
			return err
		case set == nil && p.From == a.old:
			a.copy(to, have[at:], nil)
			return nil
		case set == nil:
			if x.borrowed[p.From] {
				x.again += int64(len(to))
			}
			return r.from(array, p.From, whole, to, at)
		}
		for from, end := range set.Runs(at, at+int64(len(to))) {
			if p.From == a.old {
				copy(to[from-at:end-at], have[from:])
				continue
			}
			if again[p.From] == nil {
				again[p.From] = &part{}
			}
			o := again[p.From]
			o.runs = append(o.runs, layout.Segment{FromAt: from, ToAt: p.ToAt*x.Bytes + from - at, Len: end - from})
			if len(o.runs) == mostRuns {
				if err := a.readAgain(r, array, p.From, whole, o.runs); err != nil {
					return err
				}
				o.runs = o.runs[:0]
			}
		}
		return nil
	}
	if x.Replicated {
		if err := piece(layout.Segment{From: a.replica(), Len: x.Rule.N}, x.Rule.N*x.Bytes); err != nil {
			return err
		}
	} else {
		for p := range layout.Receives(x.split, x.next, a.new) {
			if err := piece(p, x.split.Count(p.From)*x.Bytes); err != nil {
				return err
			}
		}
	}
	for rank, o := range again {
		whole := x.Rule.N * x.Bytes
		if !x.Replicated {
			whole = x.split.Count(rank) * x.Bytes
		}
		if err := a.readAgain(r, array, rank, whole, o.runs); err != nil {
			return err
		}
	}
	return nil
}

// mostRuns is how many runs are read again at once.
const mostRuns = 1 << 12

// setOf is what a source has written of its part, of so many bytes, since this process has
// read it; nil: all of it is to be read. The source's own is known; that of others is read
// once, and checked.
func (a *adoption) setOf(r *reader, array, rank int, whole int64, sets []byte) (*dirty.Set, error) {
	x := r.list[array]
	if !x.borrowed[rank] {
		return nil, nil
	}
	if rank == a.old {
		return x.own, nil
	}
	if s, known := x.sets[rank]; known {
		return s, nil
	}
	var set *dirty.Set
	if offer := sets[array*offerBytes:][:offerBytes]; rma.Key(offer) != (rma.Key{}) {
		want := dirty.SetBytes(whole)
		o, err := r.opens(offer, rank, want, x.Name)
		if err != nil {
			return nil, err
		}
		defer o.Close()
		b := make([]byte, want)
		if err := rma.Read(o, b, 0); err != nil {
			return nil, err
		}
		if set, err = dirty.ParseSet(whole, b); err != nil {
			return nil, fmt.Errorf("mam: what rank %d has written of %q: %w", rank, x.Name, err)
		}
	}
	if x.sets == nil {
		x.sets = map[int]*dirty.Set{}
	}
	x.sets[rank] = set
	return set, nil
}

// readAgain reads runs of bytes of what a source has lent.
func (a *adoption) readAgain(r *reader, array, rank int, whole int64, runs []layout.Segment) error {
	if len(runs) == 0 {
		return nil
	}
	x := r.list[array]
	if a.borrower != nil { // it is open there
		r, array = a.borrower, slices.Index(a.moves, x)
	}
	remote, err := r.open(array, rank, whole)
	if err != nil {
		return err
	}
	p := part{runs: runs}
	from, err := p.indexed(1, true)
	if err != nil {
		return err
	}
	to, err := p.indexed(1, false)
	if err != nil {
		return err
	}
	if err := remote.WithContext(a.m.ctx).ReadBuf(mpi.BufAs(to, x.fresh, 1), 0, 1, from); err != nil {
		return err
	}
	for _, run := range runs {
		x.from, x.again = x.from+run.Len, x.again+run.Len
	}
	return nil
}

// hot names data of which more than half was read twice.
func (a *adoption) hot() string {
	var names []string
	for _, x := range a.moves {
		if x.again > x.soon/2 {
			names = append(names, x.Name)
		}
	}
	return strings.Join(names, ", ")
}
