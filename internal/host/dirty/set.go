// SPDX-License-Identifier: Apache-2.0

package dirty

import (
	"encoding/binary"
	"fmt"
	"iter"
)

// ChunkBytes is how much is written or not: a page of the smallest size.
const ChunkBytes = 4096

// Set is some of the chunks of a memory. The first chunk may be shorter, so that the
// others begin where pages do. For one goroutine at a time; the zero value is of no bytes.
type Set struct {
	bytes int64
	skew  int64 // how much of the first chunk is before the memory
	// bits has a bit for each chunk, the lowest first, behind setHead bytes.
	bits []byte
}

// setHead is before the bits of a set that travels: skew (uint16), zeros.
const setHead = 8

// SetBytes is the length of a set of a memory of so many bytes, as it travels.
func SetBytes(bytes int64) int64 { return setHead + ((bytes+ChunkBytes-1)/ChunkBytes+1+7)/8 }

// newSet is the empty set of a memory that begins at an address modulo ChunkBytes.
func newSet(bytes, skew int64) *Set {
	s := &Set{bytes: bytes, skew: skew, bits: make([]byte, SetBytes(bytes))}
	binary.LittleEndian.PutUint16(s.bits, uint16(skew))
	return s
}

// ParseSet reads what Encoded has given in another process, which is not believed; it
// keeps b.
func ParseSet(bytes int64, b []byte) (*Set, error) {
	if bytes < 0 || int64(len(b)) != SetBytes(bytes) {
		return nil, fmt.Errorf("a set of %d bytes, of a memory of %d bytes, which has %d", len(b), bytes, SetBytes(max(bytes, 0)))
	}
	head := binary.LittleEndian.Uint64(b)
	if head >= ChunkBytes {
		return nil, fmt.Errorf("a set whose first chunk begins at %#x", head)
	}
	return &Set{bytes: bytes, skew: int64(head), bits: b}, nil
}

// Encoded is the set as it travels: SetBytes, the set's own.
func (s *Set) Encoded() []byte { return s.bits }

// Add adds the chunks of bytes [from, to) of the memory; what is outside of it is left
// out.
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

// Has reports whether byte at of the memory is in the set.
func (s *Set) Has(at int64) bool {
	c := (at + s.skew) / ChunkBytes
	return s.bits[setHead+c/8]&(1<<(c%8)) != 0
}

// Runs are the bytes of [from, to), which are in the memory, that are in the set: where
// they begin and end, in order, none beside the one before.
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

// Bytes is how many bytes of the memory are in the set.
func (s *Set) Bytes() (n int64) {
	for from, to := range s.Runs(0, s.bytes) {
		n += to - from
	}
	return n
}
