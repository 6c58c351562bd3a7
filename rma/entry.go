// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gompi/internal/engine/remote"
	"gompi/mpi"
)

// entry is what a rank tells the others of its part of a window to be made.
//
//	0   version
//	4   flavor
//	5   class of the error for which the rank cannot make its part, or 0
//	8   the window's context, of rank 0
//	16  unit of offsets in bytes
//	24  size in bytes
//	32  description of the region
type entry struct {
	flavor Flavor
	wrong  mpi.Class
	offer  uint64
	unit   int64
	bytes  int64
}

const (
	entryVersion = 1
	entryHead    = 32
	entryBytes   = entryHead + remote.DescBytes
)

func (e *entry) put(b []byte, desc remote.Desc) {
	le := binary.LittleEndian
	le.PutUint32(b, entryVersion)
	b[4], b[5], b[6], b[7] = byte(e.flavor), byte(e.wrong), 0, 0
	le.PutUint64(b[8:], e.offer)
	le.PutUint64(b[16:], uint64(e.unit))
	le.PutUint64(b[24:], uint64(e.bytes))
	copy(b[entryHead:entryBytes], desc[:])
}

// parseEntry reads what another rank wrote.
func parseEntry(b []byte) (e entry, err error) {
	le := binary.LittleEndian
	if v := le.Uint32(b); v != entryVersion {
		return e, fmt.Errorf("it describes its memory in version %d, this process in %d", v, entryVersion)
	}
	e.flavor, e.wrong = Flavor(b[4]), mpi.Class(b[5])
	e.offer, e.unit, e.bytes = le.Uint64(b[8:]), int64(le.Uint64(b[16:])), int64(le.Uint64(b[24:]))
	if e.wrong == 0 && (e.unit <= 0 || e.unit > math.MaxInt32 || e.bytes < 0) {
		return e, fmt.Errorf("it describes %d bytes in units of %d", e.bytes, e.unit)
	}
	return e, nil
}

// table is what all ranks have said, an entry each.
type table struct{ b []byte }

// newTable is a table for size ranks, which goes back to s.Tables.
func newTable(s *remote.Space, size int) *table {
	t, ok := s.Tables.Get().(*table)
	if !ok {
		t = new(table)
	}
	t.b = slices.Grow(t.b[:0], size*entryBytes)[:size*entryBytes]
	return t
}

// of is the entry of a rank.
func (t *table) of(rank int) []byte { return t.b[rank*entryBytes:][:entryBytes] }

// told is what a rank said of its memory; it was parsed before.
func (t *table) told(rank int) (unit, bytes int64, desc *remote.Desc) {
	b := t.of(rank)
	le := binary.LittleEndian
	return int64(le.Uint64(b[16:])), int64(le.Uint64(b[24:])), (*remote.Desc)(b[entryHead:])
}
