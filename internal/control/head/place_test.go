// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	starts "gompi/internal/control/spawn"
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
	set, err := h.Join(make([][]string, 4), first)
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
	if _, err := h.Join(make([][]string, 1), late); err == nil {
		t.Error("a process joins on a host that is lost")
	}
	one := New(Config{Job: 1, HostSlots: []int{2}}, 1)
	if got, err := one.Place(9); err != nil || !slices.Equal(got, []Place{{Host: 0, Count: 9}}) {
		t.Errorf("on one host: %v, %v", got, err)
	}
}

// Newcomers that are wanted on some hosts go there, in the same way; where slots are
// strict they wait for them.
func TestPlaceOn(t *testing.T) {
	h := New(Config{Job: 1, HostSlots: []int{2, 1, 4}, HostNames: []string{"a", "b", "C"}}, 3)
	on, err := h.hostsNamed([]string{"c", "b", "C"})
	if err != nil || !slices.Equal(on, []uint32{2, 1}) {
		t.Fatal(on, err)
	}
	want := func(h *Head, n int, on []uint32, want ...Place) {
		t.Helper()
		if got, err := h.placeOn(n, on, starts.Compact); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d processes on %v go to %v, %v; want %v", n, on, got, err, want)
		}
	}
	want(h, 7, on, Place{Host: 1, Count: 2}, Place{Host: 2, Count: 5})
	if _, err := h.hostsNamed([]string{"b", "d"}); !errors.Is(err, protocol.ErrRefused) || !strings.Contains(err.Error(), `no host "d": its hosts are a, b, C`) {
		t.Error(err)
	}
	h.HostLost(2, "gone")
	if _, err := h.hostsNamed([]string{"c"}); err == nil {
		t.Error("a host that is lost")
	}
	want(h, 1, []uint32{2, 1}, Place{Host: 1, Count: 1})
	if _, err := h.placeOn(1, []uint32{2}, starts.Compact); !errors.Is(err, protocol.ErrRefused) {
		t.Error(err)
	}

	h = New(Config{Job: 1, HostSlots: []int{2, 1, 4}, Strict: true}, 3)
	want(h, 4, []uint32{2}, Place{Host: 2, Count: 4})
	if _, err := h.placeOn(1, []uint32{2}, starts.Compact); !errors.Is(err, change.ErrBusy) {
		t.Error(err)
	}
	if _, err := h.placeOn(4, []uint32{0, 1}, starts.Compact); !errors.Is(err, change.ErrTooMany) {
		t.Error(err)
	}
	h.cfg.Launches = true
	for _, c := range []struct {
		n    int
		on   []uint32
		want error
	}{{4, []uint32{0, 1}, change.ErrTooMany}, {3, []uint32{0, 1}, nil}, {4, []uint32{2}, nil}, {7, nil, nil}, {8, nil, change.ErrTooMany}} {
		if err := (owner{h}).Starts([]change.Want{{N: c.n, On: c.on}}); !errors.Is(err, c.want) {
			t.Errorf("%d processes could start on %v: %v, want %v", c.n, c.on, err, c.want)
		}
	}
	want(h, 3, []uint32{0, 1, 2}, Place{Host: 0, Count: 2}, Place{Host: 1, Count: 1})
	if _, err := h.Place(1); !errors.Is(err, protocol.ErrRefused) {
		t.Error(err)
	}
}
