// SPDX-License-Identifier: Apache-2.0

package head

import (
	"slices"
	"testing"

	"gompi/internal/wire"
)

// TestPlace: hosts are filled in order, what is beyond their slots is spread, and
// what was placed counts until it is taken back or has ended.
func TestPlace(t *testing.T) {
	h := New(Config{Job: 1, HostSlots: []int{2, 1, 4}}, 3)
	place := func(n int, want ...Place) []Place {
		t.Helper()
		got, err := h.Place(n)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d processes go to %v, %v; want %v", n, got, err, want)
		}
		return got
	}
	first := place(4, Place{Host: 0, Count: 2}, Place{Host: 1, Count: 1}, Place{Host: 2, Count: 1})
	set, err := h.Join(make([][]string, 4), nil, first)
	if err != nil || !slices.Equal(set.Hosts, wire.Hosts{{Host: 0, Count: 2}, {Host: 1, Count: 1}, {Host: 2, Count: 1}}) {
		t.Fatalf("%v, %v", set, err)
	}
	h.Unplace(place(6, Place{Host: 0, Count: 1}, Place{Host: 1, Count: 1}, Place{Host: 2, Count: 4}))
	place(2, Place{Host: 2, Count: 2})
	h.HostLost(2, "gone")
	place(3, Place{Host: 0, Count: 2}, Place{Host: 1, Count: 1})
	h.HostLost(0, "gone")
	late := place(1, Place{Host: 1, Count: 1})
	h.HostLost(1, "gone")
	if got, err := h.Place(1); err == nil {
		t.Errorf("no host is left, and yet %v", got)
	}
	if _, err := h.Join(make([][]string, 1), nil, late); err == nil {
		t.Error("a process joins on a host that is lost")
	}
	one := New(Config{Job: 1, HostSlots: []int{2}}, 1)
	if got, err := one.Place(9); err != nil || !slices.Equal(got, []Place{{Host: 0, Count: 9}}) {
		t.Errorf("on one host: %v, %v", got, err)
	}
}
