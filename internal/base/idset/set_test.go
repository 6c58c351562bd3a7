// SPDX-License-Identifier: Apache-2.0

package idset

import "testing"

func TestSpans(t *testing.T) {
	var s Set
	slow := map[uint32]bool{}
	add := func(a, b uint32) {
		s.Add(a, b)
		for i := a; i <= b; i++ {
			slow[i] = true
		}
	}
	for _, v := range [][2]uint32{{10, 12}, {14, 14}, {13, 13}, {1, 2}, {30, 40}, {20, 22}, {5, 35}, {3, 3}, {50, 50}, {60, 70}, {49, 61}} {
		add(v[0], v[1])
		for i := range uint32(80) {
			if s.Has(i) != slow[i] {
				t.Fatalf("after %v: has(%d) is %v in %v", v, i, s.Has(i), s)
			}
		}
		for i := 1; i < len(s); i++ {
			if s[i].first <= s[i-1].last+1 {
				t.Errorf("spans not joined: %v", s)
			}
		}
	}
	for _, v := range []uint32{0, 1, 3, 2, 60, 70, 21, 22, 80, 5, 6, 30, 31, 33} {
		s.Remove(v)
		delete(slow, v)
		for i := range uint32(80) {
			if s.Has(i) != slow[i] {
				t.Fatalf("without %v: has(%d) is %v in %v", v, i, s.Has(i), s)
			}
		}
	}
	s.Add(1<<32-1, 1<<32-1)
	if !s.Has(1<<32-1) || s.Has(1<<32-2) {
		t.Error("the last serial")
	}
}
