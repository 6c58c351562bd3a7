// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/rand/v2"
	"testing"

	"gompi/internal/wire"
)

// TestSpans compares the list with a map of bytes.
func TestSpans(t *testing.T) {
	const space = 200
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var l spans
		var free [space]bool
		var out []span
		put := func(s span) {
			l.put(s.off, s.size)
			for i := s.off; i < s.off+s.size; i++ {
				if free[i] {
					t.Fatalf("seed %d: byte %d is free twice", seed, i)
				}
				free[i] = true
			}
		}
		put(span{0, space})
		for range 200 {
			if n := len(out); n > 0 && r.IntN(2) == 0 {
				i := r.IntN(n)
				put(out[i])
				out[i] = out[n-1]
				out = out[:n-1]
			} else {
				size := 1 + r.Int64N(40)
				off, ok := l.take(size)
				if want := longest(free[:]) >= size; ok != want {
					t.Fatalf("seed %d: take(%d) is %v, want %v", seed, size, ok, want)
				}
				if ok {
					out = append(out, span{off, size})
					for i := off; i < off+size; i++ {
						if !free[i] {
							t.Fatalf("seed %d: byte %d is given out twice", seed, i)
						}
						free[i] = false
					}
				}
			}
			for i, s := range l {
				if s.size <= 0 || i > 0 && l[i-1].off+l[i-1].size >= s.off {
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

// TestShareLeavesRoom: a process that shares all it can, of sizes that fit and
// do not, is still reached by others.
func TestShareLeavesRoom(t *testing.T) {
	f := newFabric(nil)
	defer f.close()
	a, b := wire.ProcID{Job: 4, Serial: 1}, wire.ProcID{Job: 4, Serial: 2}
	ta, tb := f.open(t, a), f.open(t, b)
	defer ta.Close()
	defer tb.Close()
	// Windows of ever other sizes, two at a time, use the same addresses.
	used := ta.own.bump.Load()
	r := rand.New(rand.NewPCG(1, 2))
	var mem []byte
	var place uint64
	for range 300 {
		m, p, err := ta.Share(1 + r.IntN(1<<20))
		if err != nil {
			t.Fatal(err)
		}
		if mem != nil {
			ta.Unshare(mem, place)
		}
		mem, place = m, p
	}
	ta.Unshare(mem, place)
	if grown := ta.own.bump.Load() - used; grown > 4<<20 {
		t.Errorf("300 windows of at most 1 MiB have used %d bytes of addresses", grown)
	}
	ta.own.bump.Store(lanesBytes - laneRoom - 2*pageBytes)
	ta.spans = nil
	if _, _, err := ta.Share(lanesBytes / 2); err == nil {
		t.Error("shared more than there are addresses")
	}
	for i := range 4 {
		if _, _, err := ta.Share(pageBytes); (err == nil) != (i < 2) {
			t.Errorf("page %d of two: %v", i, err)
		}
	}
	if _, err := tb.Connect(f.Contact(a, b)); err != nil {
		t.Fatal(err)
	}
}
