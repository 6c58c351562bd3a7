// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"math/rand/v2"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
	"gompi/transport"
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
	used := ta.unshared
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
	if grown := ta.unshared - used; grown > 4<<20 {
		t.Errorf("300 windows of at most 1 MiB have used %d bytes of addresses", grown)
	}
	ta.unshared = segment.SpanBytes - 2*pageBytes
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

// TestSharesAreCounted: a process has only so many pieces of shared memory, its
// own and others', as each is a mapping; those that it gives up count no more.
func TestSharesAreCounted(t *testing.T) {
	f := newFabric(nil)
	defer f.close()
	a, b := wire.ProcID{Job: 4, Serial: 1}, wire.ProcID{Job: 4, Serial: 2}
	ta, tb := f.open(t, a), f.open(t, b)
	defer ta.Close()
	defer tb.Close()
	tb.mostShared = 2
	for range 3 {
		_, place, err := ta.Share(100)
		if err != nil {
			t.Fatal(err)
		}
		own, at, err := tb.Share(100)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := tb.Join(f.Contact(b, a), place, 100)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := tb.Share(100); !errors.Is(err, transport.ErrUnavailable) {
			t.Errorf("a third piece: %v", err)
		}
		if _, err := tb.Join(f.Contact(b, a), place, 100); !errors.Is(err, transport.ErrUnavailable) {
			t.Errorf("another's as the third piece: %v", err)
		}
		tb.Leave(theirs)
		tb.Unshare(own, at)
	}
	if _, _, err := tb.Share(1 << 50); err == nil || tb.shared.Load() != 0 {
		t.Errorf("%d pieces are in use: %v", tb.shared.Load(), err)
	}
}
