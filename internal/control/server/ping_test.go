// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// A pair that cannot talk is told by way of the head.
func TestCut(t *testing.T) {
	r := newRig(t, 3, nil)
	ks := r.joinAll()
	ks[0].must(ks[0].Cut(ks[1].id, "no room"))
	ks[0].must(ks[0].Cut(wire.ProcID{Job: ks[0].id.Job, Serial: 99}, "nobody"))
	if ev := ks[1].expect(protocol.EvDisconnected, ks[0].id); ev.Text != "no room" {
		t.Errorf("event %+v", ev)
	}
}

// A process is asked by way of the head whether it takes part, unless it has not
// joined yet or asks itself. What was told before the question comes before the
// answer, and of one that has ended that is the answer.
func TestPing(t *testing.T) {
	r := newRig(t, 5, nil)
	a, b, dead, left := r.join(0), r.join(1), r.join(2), r.join(3)
	unborn := r.world.Members.At(4)
	pong := func(k *child, from wire.ProcID, id uint64) {
		t.Helper()
		if ev := k.expect(protocol.EvPong, from); ev.ID != id {
			t.Errorf("event %+v, want the number %d", ev, id)
		}
	}
	a.must(a.Ping(b.id, 7))
	if ev := b.expect(protocol.EvPing, a.id); ev.ID != 7 {
		t.Errorf("event %+v", ev)
	}
	b.must(b.Pong(a.id, 7))
	pong(a, b.id, 7)
	a.must(a.Ping(unborn, 8))
	pong(a, unborn, 8)

	a.must(a.Watch(r.world.Members))
	a.settle()
	r.Exited(dead.id, "signal: killed", false)
	left.must(left.Finalize())
	a.must(a.Ping(dead.id, 9))
	a.must(a.Ping(wire.ProcID{Job: a.id.Job, Serial: 99}, 10))
	a.must(a.Ping(a.id, 11))
	a.expect(protocol.EvDied, dead.id)
	a.expect(protocol.EvGone, left.id)
	pong(a, a.id, 11)
	a.must(a.Ping(left.id, 12))
	a.must(a.Ping(a.id, 13))
	pong(a, a.id, 13)
}
