// SPDX-License-Identifier: Apache-2.0

package freelist

import (
	"math/rand/v2"
	"testing"
)

// TestList compares the list with a map of bytes.
func TestList(t *testing.T) {
	const space = 200
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var l List
		var free [space]bool
		var out []Span
		put := func(s Span) {
			l.Put(s.Off, s.Size)
			for i := s.Off; i < s.Off+s.Size; i++ {
				if free[i] {
					t.Fatalf("seed %d: byte %d is free twice", seed, i)
				}
				free[i] = true
			}
		}
		put(Span{0, space})
		for range 200 {
			if n := len(out); n > 0 && r.IntN(2) == 0 {
				i := r.IntN(n)
				put(out[i])
				out[i] = out[n-1]
				out = out[:n-1]
			} else {
				size := 1 + r.Int64N(40)
				off, ok := l.Take(size)
				if want := longest(free[:]) >= size; ok != want {
					t.Fatalf("seed %d: take(%d) is %v, want %v", seed, size, ok, want)
				}
				if ok {
					out = append(out, Span{off, size})
					for i := off; i < off+size; i++ {
						if !free[i] {
							t.Fatalf("seed %d: byte %d is given out twice", seed, i)
						}
						free[i] = false
					}
				}
			}
			for i, s := range l {
				if s.Size <= 0 || i > 0 && l[i-1].Off+l[i-1].Size >= s.Off {
					t.Fatalf("seed %d: %v", seed, l)
				}
			}
		}
	}
}

// longest is the length of the longest run of true.
func longest(b []bool) (most int64) {
	n := int64(0)
	for _, x := range b {
		if n++; !x {
			n = 0
		}
		most = max(most, n)
	}
	return most
}
