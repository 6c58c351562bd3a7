// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"

	"gompi/internal/host/dirty"
	"gompi/internal/resize/layout"
	"gompi/mpi"
	"gompi/rma"
)

// At the commit targets read what they do not have yet. Each source offers its part of each
// array, and, if the array was pre-copied, the delta: the set of chunks that were written
// since the snapshot. Targets read the sets they need, and then only those chunks.

// commitOfferBytes is what a source offers of an array at the commit: its part, and the delta.
// A delta of zeros says that all of the part is to be read.
const commitOfferBytes = 2 * offerBytes

// deltaReader reads the data of a list at the commit.
type deltaReader struct {
	*reader
	sets     map[int][]byte // offers of deltas, by rank before the change
	snapshot *reader        // has the memory of snapshots open already; nil: it is opened here
}

// readAtCommit moves the data of a list. All sources expose it until the decision, and offer
// it by an Allgather over the merged communicator; targets read. All call it with the same
// list. open is the reader of the snapshots; nil: there is none.
func (rc *reconfiguration) readAtCommit(list []*transfer, open *reader) error {
	var moving []*transfer
	for _, x := range list {
		if x.Replicated && rc.newcomers() == 0 {
			x.done = true // nobody needs it
			continue
		}
		moving = append(moving, x)
	}
	if len(moving) == 0 {
		return nil
	}
	r := &deltaReader{reader: rc.newReader(rc.m.ctx, moving), sets: map[int][]byte{}, snapshot: open}
	defer r.close()
	err := r.exchangeOffers()
	for i, x := range moving {
		if err == nil {
			err = rc.allocate(x, nil)
		}
		if err == nil && x.target != nil {
			err = r.complete(i)
		}
		if err != nil {
			return fmt.Errorf("mam: from %d to %d ranks: %w", rc.times.NS, rc.times.ND, err)
		}
		x.done = true
	}
	return nil
}

// exchangeOffers exposes the data of this source, and gets the offers of all.
func (r *deltaReader) exchangeOffers() error {
	rc := r.rc
	mine := make([]byte, commitOfferBytes*len(r.list))
	for i, x := range r.list {
		if rc.old < 0 {
			break
		}
		if err := rc.offerAtCommit(x, mine[i*commitOfferBytes:]); err != nil {
			return err
		}
	}
	all := make([]byte, len(mine)*rc.merged.Size())
	if err := mpi.Allgather(rc.merged, mine, all); err != nil {
		return err
	}
	for s, at := range rc.from {
		if at < 0 {
			continue
		}
		for i := range r.list {
			offer := all[at*len(mine)+i*commitOfferBytes:][:commitOfferBytes]
			r.offers[s] = append(r.offers[s], offer[:offerBytes]...)
			r.sets[s] = append(r.sets[s], offer[offerBytes:]...)
		}
	}
	return nil
}

// offerAtCommit offers what this source has of an array: the delta, if it is known for the
// memory that the program has now, or else all of it.
func (rc *reconfiguration) offerAtCommit(x *transfer, b []byte) error {
	memory := x.memory()
	if s := rc.snapshots[x.array]; s != nil {
		set, err := s.delta(rc.m.process, memory, x.Marked)
		if err == nil {
			e, err := rma.Expose(rc.m.process, set.Encoded())
			if err != nil {
				return err
			}
			rc.exposed, x.ownDelta = append(rc.exposed, e), set
			putOffer(b[offerBytes:], e.Key(), len(set.Encoded()))
			putOffer(b, s.exposed.Key(), len(memory))
			return nil
		}
		rc.m.printVerbose(rc.old, fmt.Sprintf("%q moves anew at the commit: %v", x.Name, err))
	}
	e, err := rma.Expose(rc.m.process, memory)
	if err != nil {
		return err
	}
	rc.exposed = append(rc.exposed, e)
	putOffer(b, e.Key(), len(memory))
	return nil
}

var errOtherMemory = errors.New("the program has assigned other memory to its variable")

// delta returns what was written since the snapshot, if memory is still the same.
func (s *snapshot) delta(p *mpi.Process, memory []byte, marked bool) (*dirty.Set, error) {
	switch {
	case !sameMemory(memory, s.memory):
		return nil, errOtherMemory
	case !marked && rma.Stored(p, memory):
		return nil, errSharedMemory
	}
	return s.watch.Written()
}

// maxRuns is how many runs are read at once.
const maxRuns = 1 << 12

// complete reads what this process does not have yet of an array: all that it needs of a
// source, or what was written since it was read.
func (r *deltaReader) complete(array int) error {
	x, rc := r.list[array], r.rc
	var have []byte
	if rc.old >= 0 {
		have = x.memory()
	}
	runs := map[int][]layout.Segment{} // to read again, by source
	flush := func(rank int) error {
		err := r.readRuns(array, rank, partBytes(x, rank), runs[rank])
		runs[rank] = runs[rank][:0]
		return err
	}
	piece := func(p layout.Segment) error {
		to, at := x.target[p.ToAt*x.Bytes:(p.ToAt+p.Len)*x.Bytes], p.FromAt*x.Bytes
		set, err := r.deltaOf(array, p.From)
		switch {
		case err != nil:
			return err
		case set == nil && p.From == rc.old:
			rc.copyLocal(to, have[at:], nil)
			return nil
		case set == nil:
			if x.preCopiedFrom[p.From] {
				x.deltaBytes += int64(len(to))
			}
			return r.readBytes(array, p.From, partBytes(x, p.From), to, at)
		}
		for from, end := range set.Runs(at, at+int64(len(to))) {
			if p.From == rc.old {
				copy(to[from-at:end-at], have[from:])
				continue
			}
			runs[p.From] = append(runs[p.From], layout.Segment{FromAt: from, ToAt: p.ToAt*x.Bytes + from - at, Len: end - from})
			if len(runs[p.From]) == maxRuns {
				if err := flush(p.From); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if x.Replicated {
		if err := piece(layout.Segment{From: rc.replicaSource(), Len: x.Rule.N}); err != nil {
			return err
		}
	} else {
		for p := range layout.Receives(x.split, x.nextSplit, rc.new) {
			if err := piece(p); err != nil {
				return err
			}
		}
	}
	for rank := range runs {
		if err := flush(rank); err != nil {
			return err
		}
	}
	return nil
}

// partBytes returns the size of a source's part of an array.
func partBytes(x *transfer, rank int) int64 {
	if x.Replicated {
		return x.Rule.N * x.Bytes
	}
	return x.split.Count(rank) * x.Bytes
}

// deltaOf returns what a source has written to its part since this process has read it; nil:
// all of it is to be read. A source knows its own delta; those of others are read once, and
// checked.
func (r *deltaReader) deltaOf(array, rank int) (*dirty.Set, error) {
	x := r.list[array]
	if !x.preCopiedFrom[rank] {
		return nil, nil
	}
	if rank == r.rc.old {
		return x.ownDelta, nil
	}
	if s, known := x.deltas[rank]; known {
		return s, nil
	}
	var set *dirty.Set
	if offer := r.sets[rank][array*offerBytes:][:offerBytes]; rma.Key(offer) != (rma.Key{}) {
		want := dirty.SetBytes(partBytes(x, rank))
		o, err := r.openKey(offer, rank, want, x.Name)
		if err != nil {
			return nil, err
		}
		defer o.Close()
		b := make([]byte, want)
		if err := rma.Read(o, b, 0); err != nil {
			return nil, err
		}
		if set, err = dirty.ParseSet(partBytes(x, rank), b); err != nil {
			return nil, fmt.Errorf("mam: what rank %d has written of %q: %w", rank, x.Name, err)
		}
	}
	if x.deltas == nil {
		x.deltas = map[int]*dirty.Set{}
	}
	x.deltas[rank] = set
	return set, nil
}

// readRuns reads runs of bytes of a source's snapshot.
func (r *deltaReader) readRuns(array, rank int, whole int64, runs []layout.Segment) error {
	if len(runs) == 0 {
		return nil
	}
	x, from := r.list[array], r.reader
	if r.snapshot != nil {
		from, array = r.snapshot, x.tag
	}
	remote, err := from.openOffer(array, rank, whole)
	if err != nil {
		return err
	}
	s := segment{runs: runs}
	source, err := s.indexedType(1, true)
	if err != nil {
		return err
	}
	target, err := s.indexedType(1, false)
	if err != nil {
		return err
	}
	if err := remote.WithContext(r.rc.m.ctx).ReadBuf(mpi.BufAs(target, x.target, 1), 0, 1, source); err != nil {
		return err
	}
	for _, run := range runs {
		x.received, x.deltaBytes = x.received+run.Len, x.deltaBytes+run.Len
	}
	return nil
}
