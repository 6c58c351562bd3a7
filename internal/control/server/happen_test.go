// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"testing"

	"gompi/internal/control/protocol"
)

// A subscriber gets all events of the sets, in order. One that asks no more, or has ended,
// leaves nothing in the head.
func TestHappen(t *testing.T) {
	r := newRig(t, 3, nil)
	ks := r.joinAll()
	a, world := ks[0], r.world.Number
	next := func(m protocol.NextEvent) (b protocol.SetEvent) {
		t.Helper()
		m.On = true
		a.must(a.Ask(bg, &m, &b))
		return b
	}
	first := make(chan protocol.SetEvent, 1)
	go func() {
		var b protocol.SetEvent
		if err := a.Ask(bg, &protocol.NextEvent{Number: 1, On: true, Sets: []uint32{world, 0, 999}}, &b); err != nil {
			t.Error(err)
		}
		first <- b
	}()
	if b := <-first; b.What != protocol.SetEventGone || b.Set != 999 {
		t.Errorf("of no set: %+v", b)
	}
	pair, err := a.algebra(protocol.Algebra{Do: protocol.Split, In: []uint32{world}, Sizes: []uint32{2, 1}})
	a.must(err)
	go func() {
		var b protocol.SetEvent
		if err := a.Ask(bg, &protocol.NextEvent{Number: 2, On: true, Sets: []uint32{pair[0].Number}}, &b); err != nil {
			t.Error(err)
		}
		first <- b
	}()
	r.parked(1)
	if err := a.Ask(bg, &protocol.NextEvent{Number: 2, On: true}, &protocol.SetEvent{}); !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("two questions at once: %v", err)
	}
	a.must(ks[2].Finalize()) // is not in the pair
	r.parked(1)
	a.must(a.ReleaseSet(pair[0].Number))
	if b := <-first; b.What != protocol.SetEventGone || b.Set != pair[0].Number {
		t.Errorf("of a set that is gone: %+v", b)
	}
	if b := next(protocol.NextEvent{Number: 2}); b.What != protocol.SetEventEnd {
		t.Errorf("of nothing: %+v", b)
	}
	seen := map[uint32]bool{}
	for range 2 { // once for each name of the set
		b := next(protocol.NextEvent{Number: 1})
		if b.What != protocol.SetEventFinalized || b.Proc != ks[2].id || b.Rank != 2 {
			t.Errorf("of who has left: %+v", b)
		}
		seen[b.Set] = true
	}
	if !seen[world] || !seen[0] {
		t.Errorf("of the sets %v", seen)
	}
	a.must(a.Ask(bg, &protocol.NextEvent{Number: 1}, &protocol.SetEvent{}))
	r.reach("interests", 1)
	go a.Ask(bg, &protocol.NextEvent{Number: 3, On: true, Sets: []uint32{world}}, &protocol.SetEvent{})
	r.parked(1)
	r.reach("interests", 2)
	a.must(a.Finalize())
	r.reach("interests", 0)
}
