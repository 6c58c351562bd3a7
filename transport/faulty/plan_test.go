// SPDX-License-Identifier: Apache-2.0

package faulty_test

import (
	"fmt"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/faulty"
	"gompi/transport/inproc"
)

func TestPlanRefused(t *testing.T) {
	below, err := inproc.NewHub().Open(transport.Env{Self: wire.ProcID{Job: 1, Serial: 1}, Wake: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []faulty.Plan{
		{Delay: -0.1}, {Delay: 1.1}, {Full: 1}, {Full: -1}, {Down: 2}, {DelayPolls: -1}, {MaxEvents: -1},
		{Refuse: 1.1}, {Break: -0.1},
	} {
		if _, err := faulty.New(below, p); err == nil {
			t.Errorf("New accepts %+v", p)
		}
	}
}

// scene is a receiver under a plan and senders without one.
type scene struct {
	t       *testing.T
	recv    transport.Transport
	senders []transport.Transport
	slots   []transport.Slot
	log     []string
	// next[i] is the number of the message expected from sender i.
	next []uint64
	down []bool
	// from is the sender of each of recv's slots.
	from map[transport.Slot]int
}

func newScene(t *testing.T, p faulty.Plan, senders int) *scene {
	t.Helper()
	h := inproc.NewHub()
	open := func(serial uint32) transport.Transport {
		tr, err := h.Open(transport.Env{Self: wire.ProcID{Job: 1, Serial: serial}, Wake: func() {}})
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	recv, err := faulty.New(open(1), p)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, recv: recv, next: make([]uint64, senders), down: make([]bool, senders), from: map[transport.Slot]int{}}
	for i := range senders {
		tr := open(uint32(i + 2))
		slot, err := tr.Connect(wire.Contact{Proc: wire.ProcID{Job: 1, Serial: 1}})
		if err != nil {
			t.Fatal(err)
		}
		s.senders, s.slots = append(s.senders, tr), append(s.slots, slot)
	}
	return s
}

// play sends count messages from each sender in turn, polling between, then
// polls until nothing is held; it logs what the receiver saw.
func (s *scene) play(count int) {
	s.t.Helper()
	ev := make([]transport.Event, 16)
	for k := range uint64(count) {
		for i, tr := range s.senders {
			h := wire.Header{k}
			if st := tr.Send(s.slots[i], &h, fmt.Appendf(nil, "%d of %d", k, i), 0); st > transport.Broken {
				s.t.Fatalf("Send: %d", st)
			}
		}
		s.poll(ev)
	}
	for turns := 0; !s.recv.Arm(); turns++ {
		if turns > 10000 {
			s.t.Fatal("Arm refuses for ever")
		}
		s.poll(ev)
	}
	s.recv.Disarm()
}

func (s *scene) poll(ev []transport.Event) {
	s.t.Helper()
	for _, e := range ev[:s.recv.Poll(ev)] {
		switch e.Kind {
		case transport.EvUp:
			s.from[e.Slot] = int(e.Proc.Serial) - 2
			s.log = append(s.log, fmt.Sprintf("up %d", e.Slot))
		case transport.EvRecv:
			i, ok := s.from[e.Slot]
			if !ok || s.down[i] {
				s.t.Fatalf("message in slot %d before EvUp or after EvDown", e.Slot)
			}
			if e.Header[0] != s.next[i] || string(e.Payload) != fmt.Sprintf("%d of %d", s.next[i], i) {
				s.t.Fatalf("sender %d: got %d %q, want %d", i, e.Header[0], e.Payload, s.next[i])
			}
			s.next[i]++
			s.log = append(s.log, fmt.Sprintf("%d.%d", i, e.Header[0]))
		case transport.EvDown:
			s.down[s.from[e.Slot]] = true
			s.log = append(s.log, fmt.Sprintf("down %d", e.Slot))
		default:
			s.t.Fatalf("event %+v", e)
		}
	}
}

// TestDelayReorders: with delays the peers overtake one another, nothing is
// lost, and the same seed gives the same order.
func TestDelayReorders(t *testing.T) {
	run := func(seed uint64) string {
		s := newScene(t, faulty.Plan{Seed: seed, Delay: 0.3, DelayPolls: 10}, 3)
		s.play(100)
		for i, n := range s.next {
			if n != 100 {
				t.Fatalf("sender %d: %d of 100 messages", i, n)
			}
		}
		return fmt.Sprint(s.log)
	}
	straight := newScene(t, faulty.Plan{}, 3)
	straight.play(100)
	one, again, other := run(1), run(1), run(2)
	if one != again {
		t.Error("the same seed gives another order")
	}
	if one == other {
		t.Error("another seed gives the same order")
	}
	if one == fmt.Sprint(straight.log) {
		t.Error("delays change nothing")
	}
}

// TestDownInjected: peers die by plan, behind a message, both sides learn it.
func TestDownInjected(t *testing.T) {
	s := newScene(t, faulty.Plan{Seed: 3, Down: 0.02, Delay: 0.1}, 4)
	s.play(500)
	ev := make([]transport.Event, 4)
	for i := range s.senders {
		if !s.down[i] {
			t.Errorf("sender %d has survived 500 messages", i)
			continue
		}
		if s.next[i] == 0 || s.next[i] == 500 {
			t.Errorf("sender %d went down after %d messages", i, s.next[i])
		}
		if k := s.senders[i].Poll(ev); k != 1 || ev[0].Kind != transport.EvDown {
			t.Errorf("sender %d: %d events, first %+v; want EvDown", i, k, ev[0])
		}
	}
}

// TestFullInjected: a refusal is followed by EvWritable, and only after one.
func TestFullInjected(t *testing.T) {
	s := newScene(t, faulty.Plan{Seed: 5, Full: 0.5}, 1)
	s.play(1)
	slot, ev := transport.Slot(0), make([]transport.Event, 4)
	refused := 0
	for range 200 {
		h := wire.Header{}
		if s.recv.Send(slot, &h, nil, 0) != transport.Full {
			continue
		}
		refused++
		for turn := 0; ; turn++ {
			if turn > 100 {
				t.Fatal("no EvWritable")
			}
			if s.recv.Poll(ev) == 1 {
				break
			}
			if s.recv.Arm() {
				t.Fatal("Arm lets the process sleep over an EvWritable")
			}
		}
		if ev[0].Kind != transport.EvWritable || ev[0].Slot != slot {
			t.Fatalf("got %+v, want EvWritable", ev[0])
		}
	}
	if refused < 50 || refused > 150 {
		t.Errorf("%d of 200 refused, want about half", refused)
	}
}

// TestFullWhileArmed: an owner that sleeps while one of its goroutines sends
// is woken for the Poll that ends the refusal; one that cannot be woken is
// refused nothing.
func TestFullWhileArmed(t *testing.T) {
	for _, can := range []bool{true, false} {
		wakes := 0
		p := faulty.Plan{Seed: 6, Full: 0.5}
		if can {
			p.Wake = func() { wakes++ }
		}
		s := newScene(t, p, 1)
		s.play(1)
		slot, ev := transport.Slot(0), make([]transport.Event, 4)
		refused := 0
		for range 200 {
			if !s.recv.Arm() {
				t.Fatal("Arm refuses with nothing to poll for")
			}
			h, before := wire.Header{}, wakes
			if s.recv.Send(slot, &h, nil, 0) != transport.Full {
				if wakes != before {
					t.Fatal("woken for nothing")
				}
				s.recv.Disarm()
				continue
			}
			refused++
			if wakes == before {
				t.Fatal("Full while armed, and nobody is woken for the EvWritable")
			}
			s.recv.Disarm()
			for turn := 0; s.recv.Poll(ev) == 0; turn++ {
				if turn > 100 || s.recv.Arm() {
					t.Fatalf("no EvWritable after %d Polls, or Arm lets the process sleep over it", turn)
				}
			}
			if ev[0].Kind != transport.EvWritable || ev[0].Slot != slot {
				t.Fatalf("got %+v, want EvWritable", ev[0])
			}
		}
		if can && (refused < 50 || refused > 150) || !can && refused != 0 {
			t.Errorf("can be woken: %v; %d of 200 refused", can, refused)
		}
	}
}
