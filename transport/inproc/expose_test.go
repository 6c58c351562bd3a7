// SPDX-License-Identifier: Apache-2.0

package inproc_test

import (
	"errors"
	"testing"

	"gompi/transport"
	"gompi/transport/inproc"
)

// Memory that its owner has taken back is hidden, that of who was killed is gone, and neither
// is for who reads it the fault of a peer that breaks the protocol.
func TestMemoryTakenBack(t *testing.T) {
	h := inproc.NewHub()
	ts := open(t, h, 2)
	key := ts[1].Register(make([]byte, 16))
	proof, value := ts[1].Proof()
	m, err := ts[0].Reach(contact(2), proof, value)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8)
	for _, x := range []struct {
		then func()
		want error
	}{
		{func() {}, nil},
		{func() { ts[1].Unregister(key) }, transport.ErrHidden},
		{func() { h.Kill(proc(2)) }, transport.ErrPeerGone},
	} {
		x.then()
		if err := m.Read(b, key, 8); !errors.Is(err, x.want) {
			t.Errorf("read: %v, want %v", err, x.want)
		}
		if err := m.WriteRuns([]transport.Run{{Mem: b}}, key); !errors.Is(err, x.want) {
			t.Errorf("write: %v, want %v", err, x.want)
		}
	}
}
