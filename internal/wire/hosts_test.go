// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"testing"
)

func TestHosts(t *testing.T) {
	var h Hosts
	for _, host := range []uint32{0, 0, 2, 2, 2, NoHost, 0} {
		h = h.Add(host, 1)
	}
	if want := (Hosts{{0, 2}, {2, 3}, {NoHost, 1}, {0, 1}}); !slices.Equal(h, want) || h.Len() != 7 {
		t.Errorf("%v, %d members", h, h.Len())
	}
	for i, want := range []uint32{0, 0, 2, 2, 2, NoHost, 0, NoHost} {
		if got := h.At(i); got != want {
			t.Errorf("member %d is on host %d, not %d", i, got, want)
		}
	}
}

func TestHostsOfSome(t *testing.T) {
	at := func(serials ...uint32) Members {
		var b MembersBuilder
		for _, n := range serials {
			b.Add(Range{First: ProcID{Job: 1, Serial: n}, Count: 1})
		}
		return b.Members()
	}
	all := at(1, 2, 3, 4)
	for _, x := range []struct {
		hosts Hosts
		some  Members
		want  Hosts
		known []uint32
	}{
		{Hosts{{7, 4}}, at(4, 2), Hosts{{7, 2}}, []uint32{7, 7}},
		{Hosts{{0, 2}, {1, 2}}, at(4, 1, 2), Hosts{{1, 1}, {0, 2}}, []uint32{1, 0, 0}},
		{Hosts{{0, 3}, {NoHost, 1}}, at(4, 1), Hosts{{NoHost, 1}, {0, 1}}, nil},
		{Hosts{{0, 3}, {1, 1}}, at(9), nil, nil},
		{nil, at(1), nil, nil},
	} {
		got := x.hosts.Of(all, x.some)
		if !slices.Equal(got, x.want) || !slices.Equal(got.All(), x.known) {
			t.Errorf("of %v: %v, %v", x.hosts, got, got.All())
		}
	}
}
