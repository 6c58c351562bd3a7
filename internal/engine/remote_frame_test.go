// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/faulty"
)

// frames is a server that checks numbered frames of each process.
type frames struct {
	n    *node
	last map[wire.ProcID]uint64
	down map[wire.ProcID]int
	cut  map[wire.ProcID]int
	dead int // acknowledgements when Down was told
	bad  error
}

func (s *frames) Frame(from wire.ProcID, b []byte) error {
	k, err := checkFrame(b)
	if err != nil {
		return err
	}
	if s.last[from]++; k != s.last[from] {
		s.bad = fmt.Errorf("frame %d of %v, want %d", k, from, s.last[from])
	}
	return nil
}

func (s *frames) Close() {}

func (s *frames) Leave(context.Context) {}

func (s *frames) Forget(wire.ProcID) {}
func (s *frames) Ended(Handle)       {}

func (s *frames) Posted(transport.Token, bool, error) {}

func (s *frames) Down(p wire.ProcID, f *fault.Fault) {
	s.down[p]++
	s.dead = s.n.ctl.deaths()
}

func (s *frames) Cut(p wire.ProcID, f *fault.Fault) { s.cut[p]++ }

// serve gives a node its server.
func (n *node) serve() *frames {
	return n.Remote(func() RemoteServer {
		return &frames{n: n, last: map[wire.ProcID]uint64{}, down: map[wire.ProcID]int{}, cut: map[wire.ProcID]int{}}
	}).(*frames)
}

// got is how many frames of a process have come.
func (s *frames) got(p wire.ProcID) uint64 {
	s.n.iprobe()
	s.n.Lock()
	defer s.n.Unlock()
	return s.last[p]
}

// numbered is a frame of n bytes, at least 8.
func numbered(k uint64, n int) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, n), k)
	return append(b, pattern(make([]byte, n-8), int(k))...)
}

func checkFrame(b []byte) (uint64, error) {
	if len(b) < 8 {
		return 0, fmt.Errorf("frame of %d bytes", len(b))
	}
	k := binary.LittleEndian.Uint64(b)
	return k, checkPattern(b[8:], int(k))
}

func (n *node) sendFrame(to wire.ProcID, b []byte) *fault.Fault {
	n.Lock()
	defer n.Unlock()
	return n.SendFrame(to, b)
}

// narrow is a transport of short messages: frames go in parts.
type narrow struct {
	transport.Transport
	most int
}

func (n narrow) Caps() transport.Caps {
	c := n.Transport.Caps()
	c.EagerMax, c.EagerBest = n.most, min(n.most, c.EagerBest)
	return c
}

// Frames of all sizes keep their order over connecting, refusals and other
// traffic, between all pairs at once, over transports that take them whole or
// not.
func TestFramesInOrder(t *testing.T) {
	for _, c := range []struct {
		most int
		plan *faulty.Plan
	}{
		{1 << 20, nil},
		{1 << 20, &faulty.Plan{Seed: 5, Full: 0.3, Delay: 0.2}},
		{5000, nil},
		{300, &faulty.Plan{Seed: 6, Full: 0.2, Delay: 0.1}},
	} {
		ns, _ := testJobOf(t, 3, c.plan, func(_ int, cfg *Config) {
			tr := cfg.Transports[0]
			cfg.Transports[0] = narrow{tr, min(c.most, tr.Caps().EagerMax)}
		})
		const rounds = 300
		for _, n := range ns {
			n.serve()
		}
		together(t, ns, len(ns), func(g int) error {
			n := ns[g]
			for k := uint64(1); k <= rounds; k++ {
				for _, to := range ns { // itself, too
					b := numbered(k, 8+int(k*k*977)%(FrameMax-7))
					if f := n.sendFrame(to.Self(), b); f != nil {
						return f.Err
					}
					clear(b)
				}
				if k%50 == 0 {
					n.send((g+1)%3, 1, make([]byte, 100))
					if _, f := n.recv((g+2)%3, 1, make([]byte, 100)); f != nil {
						return f.Err
					}
				}
			}
			return nil
		})
		for _, n := range ns {
			s := n.serve()
			within(t, "the frames", func() bool {
				for _, m := range ns {
					m.iprobe()
				}
				for _, m := range ns {
					if s.got(m.Self()) != rounds {
						return false
					}
				}
				return true
			})
			if s.bad != nil {
				t.Fatal(s.bad)
			}
		}
		for _, n := range ns {
			n.Lock()
			for _, p := range n.peers {
				if p.frames.bytes != 0 || p.frames.first != nil || p.frameParts != nil {
					t.Errorf("%v: %d bytes are queued for %v", n.Self(), p.frames.bytes, p.proc)
				}
			}
			n.Unlock()
		}
	}
}

// A process that ends in order has sent its frames.
func TestFramesLeaveBeforeClose(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	hold := make(chan struct{})
	ns[0].ctl.contact = func(p wire.ProcID) (wire.Contact, error) {
		<-hold
		return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
	}
	s := ns[1].serve()
	const k = 50
	for i := range uint64(k) {
		if f := ns[0].sendFrame(ns[1].Self(), numbered(i+1, FrameMax)); f != nil {
			t.Fatal(f)
		}
	}
	ns[0].Lock()
	if n := ns[0].FramesQueued(ns[1].Self()); n != k*FrameMax {
		t.Fatalf("%d bytes are queued, want %d", n, k*FrameMax)
	}
	ns[0].Unlock()
	closed := make(chan error, 1)
	go func() { closed <- ns[0].Close(context.Background()) }()
	close(hold)
	within(t, "the frames", func() bool { return s.got(ns[0].Self()) == k })
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if f := ns[0].sendFrame(ns[1].Self(), nil); f.Code() != fault.Finalized {
		t.Fatalf("frame after Close: %+v", f)
	}
}

// Down is told once, before the death is acknowledged, and memory of the dead
// is not touched any more.
func TestDownOnce(t *testing.T) {
	for _, met := range []bool{false, true} {
		for _, order := range []string{"verdict", "gone first", "link first", "left"} {
			ns, hub := testJobOf(t, 2, nil, nil)
			n, id := ns[0], ns[1].Self()
			s := n.serve()
			ns[1].serve()
			key, proof, ok := ns[1].Register(make([]byte, 100))
			if !ok {
				t.Fatal("inproc exposes nothing")
			}
			m, err := n.ReachMemory(id, proof)
			if err != nil {
				t.Fatal(err)
			}
			if met {
				if f := n.sendFrame(id, numbered(1, 8)); f != nil {
					t.Fatal(f)
				}
			}
			hub.Kill(id)
			want := fault.ProcFailed
			switch order {
			case "gone first", "left":
				n.ProcGone(id, "")
				want = fault.Left // the first word is the last
			case "link first":
				within(t, "end of the link", func() bool {
					n.iprobe()
					n.mu.Lock()
					defer n.mu.Unlock()
					return !met || n.peers[id].state >= peerLost
				})
			}
			if order != "left" {
				n.ProcFailed(id, "was killed")
				within(t, "acknowledgement", func() bool { n.iprobe(); return n.ctl.deaths() > 0 })
			}
			within(t, "Down", func() bool { n.iprobe(); n.Lock(); defer n.Unlock(); return s.down[id] > 0 })
			if s.down[id] != 1 || s.dead != 0 {
				t.Errorf("met %v, %s: Down was told %d times, %d deaths were acknowledged before", met, order, s.down[id], s.dead)
			}
			if err := m.Read(make([]byte, 1), key, 0); !errors.Is(err, transport.ErrPeerGone) {
				t.Errorf("met %v, %s: reading its memory: %v", met, order, err)
			}
			if _, err := n.ReachMemory(id, proof); err == nil {
				t.Errorf("met %v, %s: reached the dead", met, order)
			}
			wantClass(t, "frame", n.sendFrame(id, nil), want)
		}
	}
}

// Frames allocate nothing once there was as much outstanding before.
func TestFramesAllocateNothing(t *testing.T) {
	for _, plan := range []*faulty.Plan{nil, {Seed: 2, Full: 0.3}} {
		ns, _ := testJobOf(t, 2, plan, nil)
		server := ns[1].serve()
		ns[0].serve()
		frames := [][]byte{make([]byte, 8), make([]byte, 700), make([]byte, FrameMax)}
		k := uint64(0)
		to := ns[1].Self()
		round := func() {
			for _, b := range frames {
				k++
				binary.LittleEndian.PutUint64(b, k)
				pattern(b[8:], int(k))
				if f := ns[0].sendFrame(to, b); f != nil {
					t.Fatal(f)
				}
			}
			for server.got(ns[0].Self()) != k {
				ns[0].iprobe()
			}
		}
		for range 100 {
			round()
		}
		if n := testing.AllocsPerRun(200, round); n > 0.05 {
			t.Errorf("%g allocations a round", n)
		}
		if server.bad != nil {
			t.Fatal(server.bad)
		}
	}
}

// TestDownWhileConnecting: a process that dies while this one waits for its
// contact is told to be down once that wait is over, whatever was asked of it in
// between.
func TestDownWhileConnecting(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	n, id := ns[0], ns[1].Self()
	s := n.serve()
	answer := make(chan error)
	n.ctl.mu.Lock()
	n.ctl.contact = func(wire.ProcID) (wire.Contact, error) { return wire.Contact{}, <-answer }
	n.ctl.mu.Unlock()
	if f := n.sendFrame(id, numbered(1, 8)); f != nil {
		t.Fatal(f)
	}
	n.ProcFailed(id, "was killed")
	n.sendFrame(id, numbered(2, 8))
	if n.ctl.deaths() != 0 {
		t.Error("the death was acknowledged before the contact came")
	}
	answer <- errors.New("it is gone")
	within(t, "Down", func() bool { n.iprobe(); n.Lock(); defer n.Unlock(); return s.down[id] == 1 })
	within(t, "acknowledgement", func() bool { return n.ctl.deaths() == 1 })
	wantClass(t, "frame", n.sendFrame(id, nil), fault.ProcFailed)
}
