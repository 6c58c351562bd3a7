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
		got := x.hosts.Subset(all, x.some)
		if !slices.Equal(got, x.want) || !slices.Equal(got.All(), x.known) {
			t.Errorf("of %v: %v, %v", x.hosts, got, got.All())
		}
	}
}

func TestHostsCodec(t *testing.T) {
	for _, h := range []Hosts{nil, {{3, 4}}, {{0, 1}, {NoHost, 2}, {0, 1}}} {
		b := AppendHosts([]byte{9}, h)
		got, rest, err := ReadHosts(append(b[1:], 7), 4, 3)
		if err != nil || !slices.Equal(got, h) || !slices.Equal(rest, []byte{7}) || len(b)-1 > HostsBytes(4) {
			t.Errorf("%v: %v, %v, %v", h, got, rest, err)
		}
		for i := range b[1:] {
			if _, _, err := ReadHosts(b[1:1+i], 4, 3); err == nil {
				t.Errorf("%v cut after %d bytes is accepted", h, i)
			}
		}
	}
	for _, bad := range []Hosts{{{0, 3}}, {{0, 5}}, {{0, 2}, {0, 2}}, {{0, 0}, {1, 4}}, {{0, 1}, {1, 1}, {0, 1}, {1, 1}}, {{0, 4}, {1, 1<<32 - 1}}} {
		if got, _, err := ReadHosts(AppendHosts(nil, bad), 4, 3); err == nil {
			t.Errorf("%v is accepted as %v", bad, got)
		}
	}
	if got := (Hosts{{0, 2}}).Concat(Hosts{{0, 1}, {1, 1}}); !slices.Equal(got, Hosts{{0, 3}, {1, 1}}) || got.Concat(nil) != nil {
		t.Errorf("together: %v", got)
	}
}

func FuzzReadHosts(f *testing.F) {
	f.Add(AppendHosts(nil, Hosts{{0, 2}, {1, 2}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, _, err := ReadHosts(b, 4, 8); err == nil && len(h) > 0 && h.Len() != 4 {
			t.Errorf("%v", h)
		}
	})
}
