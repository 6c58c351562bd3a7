// SPDX-License-Identifier: Apache-2.0

package testlab

import "encoding/binary"

// MessageID numbers the messages of a program: part k of event id.
func MessageID(id, k int) uint64 { return uint64(id)<<16 | uint64(k) }

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Payload returns the n bytes of a message. From GroupHeader bytes on they
// begin with the message's id.
func Payload(seed, id uint64, n int) []byte {
	b := make([]byte, n)
	x := mix(seed ^ id*0x9e3779b97f4a7c15)
	i := 0
	if n >= GroupHeader {
		binary.LittleEndian.PutUint64(b, id)
		i = GroupHeader
	}
	for ; i+8 <= n; i += 8 {
		x += 0x9e3779b97f4a7c15
		binary.LittleEndian.PutUint64(b[i:], mix(x))
	}
	for x = mix(x + 1); i < n; i++ {
		b[i] = byte(x)
		x >>= 8
	}
	return b
}

// Sum is a hash of b, for comparing what was received with what was sent.
func Sum(b []byte) uint64 {
	h := uint64(len(b)) + 0x9e3779b97f4a7c15
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ binary.LittleEndian.Uint64(b)) * 0x100000001b3
		h ^= h >> 29
	}
	for _, c := range b {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return mix(h)
}

// Input is element i of what a rank contributes to a collective.
func Input(seed uint64, id, rank, i int) int64 {
	// Small enough that sums of all ranks are exact in a float64.
	return int64(mix(seed^uint64(id)<<40^uint64(rank)<<32^uint64(i)) >> 24)
}

// Affine is the map x -> A*x + B modulo 2^32: composition of such maps is
// associative and does not commute.
type Affine struct{ A, B uint32 }

// Then is the map "first f, then g".
func (f Affine) Then(g Affine) Affine { return Affine{f.A * g.A, g.A*f.B + g.B} }

// AffineOf is the map whose bits are those of w.
func AffineOf(w uint64) Affine { return Affine{uint32(w), uint32(w >> 32)} }

func (f Affine) word() uint64 { return uint64(f.B)<<32 | uint64(f.A) }

// AffineInput is Input as a map.
func AffineInput(seed uint64, id, rank, i int) Affine {
	v := uint64(Input(seed, id, rank, i))
	return Affine{uint32(v) | 1, uint32(v >> 8)}
}
