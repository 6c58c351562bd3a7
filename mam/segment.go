// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"iter"

	"gompi/internal/resize/layout"
	"gompi/mpi"
)

// segment is the part of an array that goes between this process and another: bytes side by
// side, or runs of them.
type segment struct {
	at, n int64 // the offset of the first run, and the bytes of all
	runs  []layout.Segment
}

// segments returns what this process sends, as a source, or receives, as a target, by ranks
// of the merged communicator.
func (rc *reconfiguration) segments(x *transfer, sends bool) []segment {
	list := make([]segment, rc.merged.Size())
	note := func(rank int, at int64, p layout.Segment) {
		s := &list[rank]
		if s.n == 0 {
			s.at = at * x.Bytes
		}
		s.n += p.Len * x.Bytes
		s.runs = append(s.runs, p)
	}
	switch {
	case sends && rc.old >= 0:
		for p := range layout.Sends(x.split, x.nextSplit, rc.old) {
			note(rc.to[p.To], p.FromAt, p)
		}
	case !sends && rc.new >= 0:
		for p := range layout.Receives(x.split, x.nextSplit, rc.new) {
			note(rc.from[p.From], p.ToAt, p)
			if rc.from[p.From] != rc.merged.Rank() {
				x.received += p.Len * x.Bytes
			}
		}
	}
	return list
}

// segmentsOf is segments for replicated data, too.
func (rc *reconfiguration) segmentsOf(x *transfer, sends bool) []segment {
	if !x.Replicated {
		return rc.segments(x, sends)
	}
	list := make([]segment, rc.merged.Size())
	whole := segment{n: x.Rule.N * x.Bytes, runs: []layout.Segment{{Len: x.Rule.N}}}
	for d, source := range rc.newcomerSources() {
		switch {
		case sends && rc.merged.Rank() == source:
			list[rc.to[d]] = whole
		case !sends && d == rc.new:
			list[source] = whole
			x.received += whole.n
		}
	}
	return list
}

// pieces returns segments of about the given number of bytes that make up this one.
func (s *segment) pieces(elem, bytes int64) iter.Seq[segment] {
	most := max(1, bytes/elem) // elements
	return func(yield func(segment) bool) {
		var next segment
		left := most
		for _, r := range s.runs {
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
					next, left = segment{}, most
				}
			}
		}
		if len(next.runs) > 0 {
			yield(next)
		}
	}
}

// buf returns the segment, in the memory of its source or its target, as one buffer.
func (s *segment) buf(memory []byte, elem int64, sends bool) (mpi.Buf, error) {
	switch len(s.runs) {
	case 0:
		return mpi.BufOf[byte](nil), nil
	case 1:
		at := s.runs[0].ToAt * elem
		if sends {
			at = s.runs[0].FromAt * elem
		}
		return mpi.BufOf(memory[at : at+s.n]), nil
	}
	dt, err := s.indexedType(elem, sends)
	if err != nil {
		return mpi.Buf{}, err
	}
	b := mpi.BufAs(dt, memory, 1)
	return b, b.Err()
}

// indexedType returns the type of the segment among the bytes of its source or its target.
func (s *segment) indexedType(elem int64, sends bool) (mpi.Datatype, error) {
	lengths, displs := make([]int, len(s.runs)), make([]int, len(s.runs))
	for i, r := range s.runs {
		at := r.ToAt
		if sends {
			at = r.FromAt
		}
		lengths[i], displs[i] = int(r.Len*elem), int(at*elem)
	}
	return mpi.TypeIndexed(lengths, displs, mpi.TypeOf[byte]())
}

// remoteType returns the segment in the window of its source: one element of a type, and its
// offset in bytes.
func (s *segment) remoteType(elem int64) (mpi.Datatype, int, error) {
	if len(s.runs) == 1 {
		dt, err := mpi.TypeContiguous(int(s.n), mpi.TypeOf[byte]())
		return dt, int(s.runs[0].FromAt * elem), err
	}
	dt, err := s.indexedType(elem, true)
	return dt, 0, err
}
