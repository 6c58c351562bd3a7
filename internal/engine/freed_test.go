// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"gompi/internal/base/idset"
	"gompi/internal/base/wire"
)

// A process that hears of every other context of a creator keeps a bounded
// record, and one of those that live long still gets its messages.
func TestSerialSetGaps(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	old := wire.ContextID{Creator: proc(1), Serial: 4}
	for _, n := range ns {
		n.ctx = n.world(t, old, n.ctx.Members)
		for i := range 3 * idset.MaxGaps {
			n.FreeContext(n.world(t, wire.ContextID{Creator: proc(1), Serial: uint32(1 + 2*i)}, n.ctx.Members))
		}
		if got := n.freed.Intervals(proc(1)); got > idset.MaxGaps {
			t.Fatalf("%d ranges are kept", got)
		}
		if len(n.contexts) != 2 || len(n.notices) != 0 {
			t.Fatalf("%d contexts, %d news", len(n.contexts), len(n.notices))
		}
	}
	if _, err := ns[0].NewContext(wire.ContextID{Creator: proc(1), Serial: 2}, ns[0].ctx.Members, nil); err == nil {
		t.Fatal("a context of long ago is made")
	}
	h := ns[0].isend(1, 3, []byte{7}, Standard)
	ns[1].arrived(t, 1, ns[0])
	in := make([]byte, 1)
	if _, f := ns[1].recv(0, 3, in); f != nil || in[0] != 7 {
		t.Fatalf("the old context's message is %v, %v", in, f)
	}
	ns[0].Wait(h)
}

// Of creators that have ended a bounded number is remembered, the latest.
func TestSerialSetOfTheEnded(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, nil)
	n := ns[0]
	const guests = 3 * idset.MaxPast
	made := func(i int) wire.ContextID { return wire.ContextID{Creator: proc(i), Serial: 1} }
	for i := 2; i < 2+guests; i++ {
		c := n.world(t, made(i), wire.MembersOf(n.Self(), proc(i)))
		if i%2 == 0 {
			n.ProcGone(proc(i), "")
		}
		n.FreeContext(c)
		n.ProcFailed(proc(i), "was killed")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.freed.Creators(); k > idset.MaxPast+1 || len(n.dead)+len(n.watched)+len(n.peers) > 1 {
		t.Errorf("of %d guests %d creators, %d who have ended, %d to hear of and %d peers are kept", guests, k, len(n.dead), len(n.watched), len(n.peers))
	}
	if !n.freed.Has(made(1+guests)) || n.freed.Has(made(2)) {
		t.Error("the latest is not kept, or the first is")
	}
}
