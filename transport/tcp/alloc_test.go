// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// TestBulkAllocatesNothing: a warm transfer costs no allocation on either
// side.
func TestBulkAllocatesNothing(t *testing.T) {
	a, b := open(t, 1, Options{}), open(t, 2, Options{})
	s, err := a.Connect(b.contact())
	if err != nil {
		t.Fatal(err)
	}
	a.Send(s, &wire.Header{}, nil, 1)
	until(t, "the connection", func() bool { return b.count(transport.EvRecv) == 1 }, a, b)
	from := b.first(transport.EvUp).Slot
	src, dst := make([]byte, 1<<20), make([]byte, 1<<20)
	d := make([]byte, transport.MaxDesc)
	transfer := func() {
		n, err := a.Offer(s, src, 1, d)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Accept(from, d[:n], dst, 2); err != nil {
			t.Fatal(err)
		}
		for open := 2; open > 0; {
			open -= a.Poll(a.ev) + b.Poll(b.ev)
		}
	}
	transfer()
	if n := testing.AllocsPerRun(100, transfer); n != 0 {
		t.Errorf("%v allocations in a transfer, want 0", n)
	}
}
