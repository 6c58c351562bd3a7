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
