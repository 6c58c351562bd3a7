// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/rand/v2"
	"testing"

	"gompi/internal/segment"
	"gompi/internal/wire"
)

// TestShareLeavesRoom: a process that shares all it can, of sizes that fit and
// do not, is still reached by others.
func TestShareLeavesRoom(t *testing.T) {
	f := newFabric(nil)
	defer f.close()
	a, b := wire.ProcID{Job: 4, Serial: 1}, wire.ProcID{Job: 4, Serial: 2}
	ta, tb := f.open(t, a), f.open(t, b)
	defer ta.Close()
	defer tb.Close()
	// Windows of ever other sizes, two at a time, use the same addresses.
	used := ta.own.bump.Load()
	r := rand.New(rand.NewPCG(1, 2))
	var mem []byte
	var place uint64
	for range 300 {
		m, p, err := ta.Share(1 + r.IntN(1<<20))
		if err != nil {
			t.Fatal(err)
		}
		if mem != nil {
			ta.Unshare(mem, place)
		}
		mem, place = m, p
	}
	ta.Unshare(mem, place)
	if grown := ta.own.bump.Load() - used; grown > 4<<20 {
		t.Errorf("300 windows of at most 1 MiB have used %d bytes of addresses", grown)
	}
	ta.own.bump.Store(segment.SpanBytes - lanes - laneRoom - 2*pageBytes)
	ta.spans = nil
	if _, _, err := ta.Share(segment.SpanBytes / 2); err == nil {
		t.Error("shared more than there are addresses")
	}
	for i := range 4 {
		if _, _, err := ta.Share(pageBytes); (err == nil) != (i < 2) {
			t.Errorf("page %d of two: %v", i, err)
		}
	}
	if _, err := tb.Connect(f.Contact(a, b)); err != nil {
		t.Fatal(err)
	}
}
