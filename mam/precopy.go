// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"gompi/internal/host/dirty"
	"gompi/internal/resize/layout"
	"gompi/mpi"
	"gompi/rma"
	"gompi/sessions"
)

// Pre-copy moves variable data in the background, too:
//
//  1. A source that sees a change coming takes a snapshot of its part (snapshot.go): from then
//     on it knows what is written there, and readers may read it.
//  2. Targets read the snapshots while the sources compute. With methods of messages or
//     windows sources send copies instead (exchange.preCopy).
//  3. At the commit, after the last write, sources offer the delta, and only that is read
//     again (delta.go).
//
// A chunk is watched before anybody can read it, and checked after all have read it, so a
// read that a write has torn is always in the delta. Data that cannot be watched is read as a
// whole at the commit. docs/design/039-arrays-and-deltas.md

// minPreCopy is the size of data, of all ranks, from which on a pre-copy is worth it.
const minPreCopy = 64 << 10

// canPreCopy reports whether data may be pre-copied: the same on all.
func (e *entry) canPreCopy() bool {
	return e.Mode == Variable && !e.One && !e.Encoded && e.Shared == "" && e.Rule.N*e.Bytes >= minPreCopy
}

// notePreCopied notes that the part of a source was read in the background.
func (x *transfer) notePreCopied(rank int) {
	if x.preCopiedFrom == nil {
		x.preCopiedFrom = map[int]bool{}
	}
	x.preCopiedFrom[rank] = true
}

// snapshotKey is the key, in the store of the result, under which a source offers its
// snapshots; preCopiedKey the one under which a newcomer says that it has read them.
func snapshotKey(rank int) string  { return fmt.Sprintf("gompi.mam.lent.%d", rank) }
func preCopiedKey(rank int) string { return fmt.Sprintf("gompi.mam.read.%d", rank) }

// snapshotHeader is the length of the header of a source's offers: the edition of the
// registrations and the number of data, each a uint32.
const snapshotHeader = 8

// preCopy is the part of a process in the background: a source offers its snapshots, a target
// reads those of others. The first source returns when newcomers have read, too, so that the
// change is delivered to no member before.
func (m *pull) preCopy(ctx context.Context) error {
	rc := m.rc
	store, err := rc.m.s.Store(rc.change.Result)
	if err != nil {
		return err
	}
	start := time.Now()
	if rc.old >= 0 {
		rc.takeSnapshots()
		if err := store.Put(snapshotKey(rc.old), rc.snapshotOffers()); err != nil {
			return err
		}
	}
	if rc.new >= 0 {
		if err := m.readSnapshots(ctx, store); err != nil {
			return err
		}
	}
	rc.times.Async += rc.times.spent(Background, start)
	switch {
	case rc.old < 0:
		return store.Put(preCopiedKey(rc.new), nil)
	case rc.from[rc.old] == rc.first():
		return rc.awaitPreCopied(ctx, store)
	}
	return nil
}

// snapshotOffers encodes the offers of this source's snapshots.
func (rc *reconfiguration) snapshotOffers() []byte {
	b := make([]byte, snapshotHeader+offerBytes*len(rc.transfers))
	binary.LittleEndian.PutUint32(b, uint32(rc.edition))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(rc.transfers)))
	for i, x := range rc.transfers {
		if s := rc.snapshots[x.array]; s != nil {
			putOffer(b[snapshotHeader+i*offerBytes:], s.exposed.Key(), len(s.memory))
		}
	}
	return b
}

// checkOffers checks the offers of another source's snapshots, and returns them without their
// header.
func (rc *reconfiguration) checkOffers(rank int, v []byte) ([]byte, error) {
	le := binary.LittleEndian
	switch {
	case len(v) < snapshotHeader:
		return nil, fmt.Errorf("mam: rank %d offers snapshots by %d bytes", rank, len(v))
	case le.Uint32(v) != uint32(rc.edition) || le.Uint32(v[4:]) != uint32(len(rc.transfers)):
		return nil, rc.m.refuse("Checkpoint", mpi.ErrMismatch, fmt.Errorf("rank %d: %w", rank, errStaleRegistry))
	case len(v) != snapshotHeader+offerBytes*len(rc.transfers):
		return nil, fmt.Errorf("mam: rank %d offers snapshots of %d data by %d bytes", rank, len(rc.transfers), len(v))
	}
	return v[snapshotHeader:], nil
}

// awaitPreCopied waits until all newcomers have read the snapshots.
func (rc *reconfiguration) awaitPreCopied(ctx context.Context, store *sessions.Store) error {
	for d := len(rc.stay); d < len(rc.to); {
		var keys []string
		for ; d < len(rc.to) && len(keys) < sessions.MaxKeys; d++ {
			keys = append(keys, preCopiedKey(d))
		}
		if _, err := store.Get(ctx, true, keys...); err != nil {
			return err
		}
	}
	return nil
}

// readSnapshots reads the snapshots of the data that this process is to have. The reader
// stays open for the delta.
func (m *pull) readSnapshots(ctx context.Context, store *sessions.Store) error {
	rc := m.rc
	r := rc.newReader(ctx, rc.transfers)
	m.open = r
	r.limit = rc.newRateLimit(ctx)
	for i, x := range rc.transfers {
		if !x.canPreCopy() || x.Replicated && rc.old >= 0 {
			continue
		}
		if err := rc.allocate(x, r.limit); err != nil {
			return err
		}
		if x.target == nil {
			continue
		}
		if err := r.fetchOffers(store, i, snapshotKey, rc.checkOffers); err != nil {
			return err
		}
		before := x.received
		if err := r.readSnapshot(i); err != nil {
			return transferError(x, rc, err)
		}
		x.earlyBytes = x.received - before
		rc.times.Early += x.earlyBytes
	}
	return nil
}

// offeredBy reports whether a source offers a snapshot of its part of an array.
func (r *reader) offeredBy(array, rank int) bool {
	if rank == r.rc.old {
		return r.rc.snapshots[r.list[array].array] != nil
	}
	b := r.offers[rank]
	return len(b) >= (array+1)*offerBytes && rma.Key(b[array*offerBytes:]) != rma.Key{}
}

// readSnapshot reads this process's part of an array from the sources that offer it.
func (r *reader) readSnapshot(array int) error {
	x, rc := r.list[array], r.rc
	if x.Replicated {
		if rank := rc.replicaSource(); r.offeredBy(array, rank) {
			x.notePreCopied(rank)
			return r.readBytes(array, rank, x.Rule.N*x.Bytes, x.target, 0)
		}
		return nil
	}
	for p := range layout.Receives(x.split, x.nextSplit, rc.new) {
		if !r.offeredBy(array, p.From) {
			continue
		}
		x.notePreCopied(p.From)
		to, at := x.target[p.ToAt*x.Bytes:(p.ToAt+p.Len)*x.Bytes], p.FromAt*x.Bytes
		if p.From != rc.old {
			if err := r.readBytes(array, p.From, x.split.Count(p.From)*x.Bytes, to, at); err != nil {
				return err
			}
			continue
		}
		mine := rc.snapshots[x.array].memory
		if err := r.limit.inPieces(to, at, func(to []byte, at int64) error { return dirty.Copy(to, mine[at:]) }); err != nil {
			return err
		}
	}
	return nil
}
