// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"testing"

	"gompi/transport"
)

// TestChunks: no call copies more of a transfer than a chunk, as the engine's lock is held: both
// sides at once, the receiver alone, and pieces through the ring.
func TestChunks(t *testing.T) {
	const most = 128 << 10 // docs/design/001-engine.md
	for name, broken := range map[string]func(x *couple){
		"both":   func(*couple) {},
		"alone":  func(x *couple) { x.ba.blockBusy = [blockCount]bool{true, true, true, true, true, true, true, true} },
		"pieces": func(x *couple) { x.ba.cma = cmaBroken },
	} {
		t.Run(name, func(t *testing.T) {
			x := newCouple(t, nil)
			broken(x)
			src, dst := bytes.Repeat([]byte{1}, 4<<20), make([]byte, 4<<20)
			desc := make([]byte, transport.MaxDesc)
			n, err := x.a.Offer(x.ab.slot, src, 1, desc)
			if err != nil {
				t.Fatal(err)
			}
			copied := func() int { return bytes.Count(dst, []byte{1}) }
			before := 0
			look := func(what string) {
				t.Helper()
				now := copied()
				if now-before > most {
					t.Errorf("%s has copied %d bytes", what, now-before)
				}
				before = now
			}
			if err := x.b.Accept(x.ba.slot, desc[:n], dst, 2); err != nil {
				t.Fatal(err)
			}
			look("Accept")
			for range 1000 {
				for _, tr := range []*Transport{x.a, x.b} {
					takeEvents(tr)
					look("Poll")
				}
				if before == len(dst) {
					break
				}
			}
			if before != len(dst) {
				t.Errorf("%d of %d bytes were copied", before, len(dst))
			}
			x.a.Close()
			x.b.Close()
		})
	}
}
