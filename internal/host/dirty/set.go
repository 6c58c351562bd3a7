// SPDX-License-Identifier: Apache-2.0

package dirty

import (
	"encoding/binary"
	"fmt"
	"iter"
)

// ChunkBytes is the unit of tracking: the smallest size of a page.
const ChunkBytes = 4096

// Set is a set of chunks of a memory. The first chunk may be shorter, so that the others
// begin at pages. A Set serves one goroutine at a time. The zero value is the set of a
// memory without bytes.
type Set struct {
	bytes int64
	skew  int64 // bytes of the first chunk that lie before the memory
	// bits has setHead bytes of header and then a bit for each chunk, the lowest first.
	bits []byte
}

// setHead is the size of the header of an encoded set: skew (uint16), then zeros.
const setHead = 8

// SetBytes returns the size of an encoded set for a memory of so many bytes.
func SetBytes(bytes int64) int64 { return setHead + ((bytes+ChunkBytes-1)/ChunkBytes+1+7)/8 }

// newSet returns the empty set of a memory. skew is its address modulo ChunkBytes.
func newSet(bytes, skew int64) *Set {
	s := &Set{bytes: bytes, skew: skew, bits: make([]byte, SetBytes(bytes))}
	binary.LittleEndian.PutUint16(s.bits, uint16(skew))
	return s
}

// ParseSet decodes a set that Encoded returned in another process, and checks it. The set
// keeps b.
func ParseSet(bytes int64, b []byte) (*Set, error) {
	if bytes < 0 || int64(len(b)) != SetBytes(bytes) {
		return nil, fmt.Errorf("a set of %d bytes for a memory of %d bytes, which needs %d", len(b), bytes, SetBytes(max(bytes, 0)))
	}
	head := binary.LittleEndian.Uint64(b)
	if head >= ChunkBytes {
		return nil, fmt.Errorf("a set whose first chunk begins at %#x", head)
	}
	return &Set{bytes: bytes, skew: int64(head), bits: b}, nil
}

// Encoded returns the encoding of the set, of SetBytes bytes. It shares memory with s.
func (s *Set) Encoded() []byte { return s.bits }

// Add adds the chunks of the bytes [from, to) of the memory. It ignores bytes outside of the
// memory.
func (s *Set) Add(from, to int64) {
	from, to = max(from, 0), min(to, s.bytes)
	if from >= to {
		return
	}
	for c := (from + s.skew) / ChunkBytes; c <= (to-1+s.skew)/ChunkBytes; {
		if last := (to - 1 + s.skew) / ChunkBytes; c%8 == 0 && c+7 <= last {
			s.bits[setHead+c/8] = 0xff
			c += 8
			continue
		}
		s.bits[setHead+c/8] |= 1 << (c % 8)
		c++
	}
}

// Has reports whether the byte at position at of the memory is in the set.
func (s *Set) Has(at int64) bool {
	c := (at + s.skew) / ChunkBytes
	return s.bits[setHead+c/8]&(1<<(c%8)) != 0
}

// Runs iterates over the maximal runs of bytes of the set within [from, to), in ascending
// order. It yields the beginning and the end of each run.
func (s *Set) Runs(from, to int64) iter.Seq2[int64, int64] {
	return func(yield func(from, to int64) bool) {
		from, to := max(from, 0), min(to, s.bytes)
		begin := int64(-1)
		for at := from; at < to; {
			c := (at + s.skew) / ChunkBytes
			b := s.bits[setHead+c/8]
			end := (c+1)*ChunkBytes - s.skew
			if c%8 == 0 && (b == 0 || b == 0xff) {
				end += 7 * ChunkBytes
			}
			switch in := b&(1<<(c%8)) != 0; {
			case in && begin < 0:
				begin = at
			case !in && begin >= 0:
				if !yield(begin, at) {
					return
				}
				begin = -1
			}
			at = end
		}
		if begin >= 0 {
			yield(begin, to)
		}
	}
}

// Bytes returns the number of bytes of the memory that are in the set.
func (s *Set) Bytes() (n int64) {
	for from, to := range s.Runs(0, s.bytes) {
		n += to - from
	}
	return n
}
