// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"bytes"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// TestBufferShrinks: a link over which nothing comes any more does not keep its full buffer, and
// one that is in use does.
func TestBufferShrinks(t *testing.T) {
	p, q := open(t, 1, Options{}), open(t, 2, Options{})
	slot, err := p.Connect(q.contact())
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the connection", func() bool { return p.at(slot).state == peerUp && q.count(transport.EvUp) == 1 }, p, q)
	in := q.byProc[p.env.Self].link
	payload := bytes.Repeat([]byte{7}, eagerLimit)
	got := 0
	send := func() {
		t.Helper()
		got++
		for p.Send(slot, &wire.Header{1}, payload, 0) == transport.Full {
			p.poll()
			q.poll()
		}
		until(t, "the message", func() bool { return q.count(transport.EvRecv) == got }, p, q)
	}
	for range 3 {
		send()
		if q.Check(); len(in.buf) != readBuffer {
			t.Fatalf("a link in use has %d bytes", len(in.buf))
		}
	}
	if q.Check(); len(in.buf) != firstBuffer {
		t.Errorf("a link that is not used has %d bytes", len(in.buf))
	}
	send()
	if len(in.buf) != readBuffer {
		t.Errorf("a link that is used again has %d bytes", len(in.buf))
	}
}
