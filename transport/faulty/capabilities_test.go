// SPDX-License-Identifier: Apache-2.0

package faulty_test

import (
	"bytes"
	"errors"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/faulty"
	"gompi/transport/inproc"
)

// abilities are the optional capabilities that a wrapper has only from below.
func abilities(t transport.Transport) (a [3]bool) {
	_, a[0] = t.(transport.Reserver)
	_, a[1] = t.(transport.Sharer)
	_, a[2] = t.(transport.SingleCopy)
	return a
}

// places is a transport.Reserver that nobody calls.
type places struct{ transport.Reserver }

// TestAbilities: a wrapper can what the transport below can, no more.
func TestAbilities(t *testing.T) {
	plain, err := inproc.NewHub().Open(transport.Env{Self: wire.ProcID{Job: 1, Serial: 1}, Wake: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	type (
		base   = transport.Transport
		share  = transport.Sharer
		expose = transport.SingleCopy
	)
	for _, below := range []transport.Transport{
		plain,
		struct{ base }{plain},
		struct {
			base
			share
		}{plain, plain},
		struct {
			base
			expose
		}{plain, plain},
		struct {
			base
			places
		}{plain, places{}},
		struct {
			base
			places
			share
		}{plain, places{}, plain},
		struct {
			base
			places
			expose
		}{plain, places{}, plain},
		struct {
			base
			places
			share
			expose
		}{plain, places{}, plain, plain},
	} {
		above, err := faulty.New(below, faulty.Plan{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := abilities(above), abilities(below); got != want {
			t.Errorf("reserves, shares, exposes: %v over %v", got, want)
		}
		if l := above.(transport.FastBoxes).FastBox(0); l != nil {
			t.Errorf("a fast box %v over a transport without", l)
		}
	}
}

// TestMemoryFaults: memory is refused and accesses fail by plan, the tally counts
// them, and what fails has not been done whole.
func TestMemoryFaults(t *testing.T) {
	hub, tally := inproc.NewHub(), &faulty.Counters{}
	self := wire.ProcID{Job: 1, Serial: 1}
	below, err := hub.Open(transport.Env{Self: self, Wake: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := faulty.New(below, faulty.Plan{Seed: 1, Refuse: 0.5, Break: 0.5, Counters: tally})
	if err != nil {
		t.Fatal(err)
	}
	const times = 200
	contact := wire.Contact{Proc: self, Segment: -1, Bell: -1}
	s, x := tr.(transport.Sharer), tr.(transport.SingleCopy)
	there := bytes.Repeat([]byte{7}, 64)
	key := x.Register(there)
	counts := map[string]int{}
	count := func(what string, err error) bool {
		if err != nil {
			counts[what]++
		}
		return err == nil
	}
	for range times {
		if mem, place, err := s.Share(64); count("Share", err) {
			view, err := s.Join(contact, place, 64)
			if count("Join", err) {
				s.Leave(view)
			}
			s.Unshare(mem, place)
		} else if !errors.Is(err, transport.ErrUnavailable) {
			t.Fatal(err)
		}
		k, v := x.Proof()
		m, err := x.Reach(contact, k, v)
		if !count("Reach", err) {
			continue
		}
		if _, ok := m.(transport.Direct); ok {
			t.Fatal("memory whose accesses are to fail is before everybody's eyes")
		}
		if !m.Writable() {
			counts["ReadOnly"]++
		}
		in := make([]byte, 64)
		if whole := count("Read", m.Read(in, key, 0)); whole != bytes.Equal(in, there) {
			t.Fatalf("Read without an error: %v; got %x", whole, in)
		}
		clear(in)
		if whole := count("Runs", m.ReadRuns([]transport.Run{{Mem: in[:32]}, {Mem: in[32:], Off: 32}}, key)); whole != bytes.Equal(in, there) {
			t.Fatalf("ReadRuns without an error: %v; got %x", whole, in)
		}
		count("Write", m.Write(there[:8], key, 0))
	}
	for _, what := range []string{"Share", "Join", "Reach", "ReadOnly", "Read", "Runs", "Write"} {
		if n := counts[what]; n < 20 || n > times*3/4 {
			t.Errorf("%s: %d faults in %d rounds", what, n, times)
		}
	}
	if tally.Refused.Load() == 0 || tally.Broken.Load() == 0 || tally.Read.Load() == 0 || tally.Written.Load() == 0 || tally.Shared.Load() == 0 {
		t.Errorf("the tally has missed something: %+v", tally)
	}
	// Without accesses that fail it is passed on as it is.
	if tr, err = faulty.New(below, faulty.Plan{}); err != nil {
		t.Fatal(err)
	}
	k, v := tr.(transport.SingleCopy).Proof()
	m, err := tr.(transport.SingleCopy).Reach(contact, k, v)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.(transport.Direct); !ok {
		t.Error("a plan without faults takes a capability away")
	}
}
