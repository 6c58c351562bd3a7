// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// TestStretch sends payloads of all lengths, first to a peer that keeps up and then
// to one that does not: all come as they were sent, and only the second stream takes
// memory for all of the ring.
func TestStretch(t *testing.T) {
	f := newFabric(nil)
	defer f.close()
	a, b := wire.ProcID{Job: 5, Serial: 1}, wire.ProcID{Job: 5, Serial: 2}
	ta, tb := f.open(t, a), f.open(t, b)
	defer ta.Close()
	defer tb.Close()
	slot, err := ta.Connect(f.Contact(b, a))
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 2*maxEager)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	payload := func(i, n uint64) []byte { return noise[i%maxEager:][:n] }
	var sent, got uint64
	send := func() bool {
		n := uint64(rnd.IntN(maxEager + 1))
		if rnd.IntN(2) == 0 {
			n >>= rnd.IntN(12)
		}
		if ta.Send(slot, &wire.Header{sent, n}, payload(sent, n), 0) != transport.Sent {
			return false
		}
		sent++
		return true
	}
	receive := func() {
		t.Helper()
		ev := make([]transport.Event, 1+rnd.IntN(16))
		for _, e := range ev[:tb.Poll(ev)] {
			if e.Kind != transport.EvRecv {
				continue
			}
			if e.Header[0] != got || !bytes.Equal(e.Payload, payload(got, e.Header[1])) {
				t.Fatalf("message %d came as %d with %d bytes", got, e.Header[0], len(e.Payload))
			}
			got++
		}
	}
	out := &ta.conn(slot).out
	out.streamingDecided = true // not what this is about
	for range 5000 {
		if !send() {
			t.Fatalf("no room for message %d", sent)
		}
		for got < sent {
			receive()
		}
	}
	held := blocks(t, f.files[b][0])
	if out.span != firstData {
		t.Fatalf("%d bytes of the ring are in use", out.span)
	}
	for range 5000 {
		for k := rnd.IntN(40); k > 0 && send(); k-- {
		}
		receive()
	}
	if more := blocks(t, f.files[b][0]) - held; out.span != streamBytes || more != streamBytes-firstData {
		t.Errorf("%d bytes of the ring are in use, %d more have memory", out.span, more)
	}
	for got < sent {
		receive()
	}
}
