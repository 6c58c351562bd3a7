// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/host/wait"
	"gompi/transport"
	"gompi/transport/inproc"
)

// slowMemory is an inproc transport through whose memories nothing gets while
// the gate is shut, and that counts and checks the calls.
type slowMemory struct {
	*inproc.Transport
	inside, calls, most atomic.Int64
	gate                chan struct{} // nil: open
}

type slowView struct {
	transport.Memory
	s *slowMemory
}

func (s *slowMemory) Reach(c wire.Contact, key, value uint64) (transport.Memory, error) {
	m, err := s.Transport.Reach(c, key, value)
	return slowView{m, s}, err
}

func (v slowView) pass(n int) {
	v.s.calls.Add(1)
	v.s.most.Store(max(v.s.most.Load(), int64(n)))
	if v.s.gate != nil {
		v.s.inside.Add(1)
		<-v.s.gate
		v.s.inside.Add(-1)
	}
}

func (v slowView) Read(dst []byte, key uint64, off int64) error {
	v.pass(len(dst))
	return v.Memory.Read(dst, key, off)
}

func (v slowView) Write(src []byte, key uint64, off int64) error {
	v.pass(len(src))
	return v.Memory.Write(src, key, off)
}

func (v slowView) ReadRuns(runs []transport.Run, key uint64) error {
	v.pass(runBytes(runs))
	return v.Memory.ReadRuns(runs, key)
}

func (v slowView) WriteRuns(runs []transport.Run, key uint64) error {
	v.pass(runBytes(runs))
	return v.Memory.WriteRuns(runs, key)
}

func runBytes(runs []transport.Run) (n int) {
	if len(runs) > transport.MaxRuns {
		panic(fmt.Sprintf("%d runs in one call", len(runs)))
	}
	for _, r := range runs {
		n += len(r.Mem)
	}
	return n
}

// memoryJob is two nodes, of which the first reaches the second's memory.
func memoryJob(t testing.TB, exposed []byte) (ns []*node, hub *inproc.Hub, s *slowMemory, m *Memory, key uint64) {
	t.Helper()
	s = &slowMemory{}
	ns, hub = testJobOf(t, 2, nil, func(i int, c *Config) {
		if i == 0 {
			s.Transport = c.Transports[0].(*inproc.Transport)
			c.Transports[0] = s
		}
	})
	key, proof, ok := ns[1].Register(exposed)
	if !ok {
		t.Fatal("inproc exposes nothing")
	}
	m, err := ns[0].ReachMemory(ns[1].Self(), proof)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ns[0].ReachMemory(ns[1].Self(), proof); err != nil || again != m {
		t.Fatalf("reached twice: %v, %v", again, err)
	}
	return ns, hub, s, m, key
}

// Copies of any length are cut, and runs gathered, so that no call copies more
// than it should, and none is wasted.
func TestMemoryCopies(t *testing.T) {
	there := make([]byte, 3*transport.MaxRead)
	_, _, s, m, key := memoryJob(t, there)
	want := bytes.Clone(there)
	rnd := rand.New(rand.NewPCG(1, 1))
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(what, err)
		}
		if !bytes.Equal(there, want) {
			t.Fatal(what, "wrote something else")
		}
	}
	for _, n := range []int{0, 1, 7, transport.MaxRead - 1, transport.MaxRead, transport.MaxRead + 1, 2*transport.MaxRead + 5, len(there)} {
		off := rnd.IntN(len(there) - n + 1)
		b := pattern(make([]byte, n), n)
		copy(want[off:], b)
		s.calls.Store(0)
		check("Write", m.Write(b, key, int64(off)))
		clear(b)
		check("Read", m.Read(b, key, int64(off)))
		if !bytes.Equal(b, want[off:][:n]) {
			t.Fatalf("Read of %d bytes at %d", n, off)
		}
		if calls := s.calls.Load(); calls != 2*int64(max(1, (n+transport.MaxRead-1)/transport.MaxRead)) {
			t.Errorf("%d calls for %d bytes", calls, n)
		}
	}
	for _, longest := range []int{1, 100, 10_000, transport.MaxRead} {
		for _, count := range []int{0, 1, 2, 63, 64, 65, 500} {
			var runs []transport.Run
			var lens []int
			for at := rnd.IntN(10); len(runs) < count; {
				n := rnd.IntN(longest + 1)
				if at+n > len(there) {
					break
				}
				runs = append(runs, transport.Run{Mem: pattern(make([]byte, n), at), Off: int64(at)})
				lens = append(lens, n)
				copy(want[at:], runs[len(runs)-1].Mem)
				at += n + rnd.IntN(longest+1)
			}
			rnd.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
			s.calls.Store(0)
			check("WriteRuns", m.WriteRuns(runs, key))
			if longest <= 100 && s.calls.Load() != int64(len(runs)+transport.MaxRuns-1)/transport.MaxRuns {
				t.Errorf("%d calls for %d short runs", s.calls.Load(), len(runs))
			}
			for _, r := range runs {
				clear(r.Mem)
			}
			check("ReadRuns", m.ReadRuns(runs, key))
			for _, r := range runs {
				if !bytes.Equal(r.Mem, want[r.Off:][:len(r.Mem)]) {
					t.Fatalf("run of %d bytes at %d", len(r.Mem), r.Off)
				}
			}
		}
	}
	if n := s.most.Load(); n > transport.MaxRead {
		t.Errorf("%d bytes in one call", n)
	}
	for _, off := range []int64{-1, int64(len(there)), 1 << 62} {
		if err := m.Read(make([]byte, 1), key, off); !errors.Is(err, transport.ErrProtocol) {
			t.Errorf("Read at %d: %v", off, err)
		}
	}
}

// No end is acknowledged while a copy is under way, whatever copies.
func TestMemoryHoldsOffEnds(t *testing.T) {
	ends := map[string]func(t *testing.T, ns []*node, hub *inproc.Hub){
		"death": func(t *testing.T, ns []*node, hub *inproc.Hub) { kill(t, ns, hub, 1) },
		"leave": func(t *testing.T, ns []*node, hub *inproc.Hub) {
			ns[0].ProcGone(ns[1].Self(), "left in order")
		},
	}
	for name, copies := range map[string]func(m *Memory, key uint64, at int64) error{
		"Read":  func(m *Memory, key uint64, at int64) error { return m.Read(make([]byte, 8), key, at) },
		"Write": func(m *Memory, key uint64, at int64) error { return m.Write(make([]byte, 8), key, at) },
		"ReadRuns": func(m *Memory, key uint64, at int64) error {
			return m.ReadRuns([]transport.Run{{Mem: make([]byte, 8), Off: at}, {Mem: make([]byte, 8), Off: at + 20}}, key)
		},
		"WriteRuns": func(m *Memory, key uint64, at int64) error {
			return m.WriteRuns([]transport.Run{{Mem: make([]byte, 8), Off: at}, {Mem: make([]byte, 8), Off: at + 20}}, key)
		},
		"long Read": func(m *Memory, key uint64, at int64) error { return m.Read(make([]byte, 2*transport.MaxRead), key, 0) },
	} {
		for how, end := range ends {
			t.Run(name+" "+how, func(t *testing.T) { memoryHoldsOff(t, name == "long Read", copies, end) })
		}
	}
}

func memoryHoldsOff(t *testing.T, long bool, copies func(m *Memory, key uint64, at int64) error, end func(*testing.T, []*node, *inproc.Hub)) {
	ns, hub, s, m, key := memoryJob(t, make([]byte, 2*transport.MaxRead))
	s.gate = make(chan struct{})
	const users = 3
	errs := make(chan error, users)
	for i := range users {
		go func() { errs <- copies(m, key, 100*int64(i)) }()
	}
	within(t, "the copies", func() bool { return s.inside.Load() == users })
	told := make(chan struct{})
	go func() { end(t, ns, hub); close(told) }()
	for range 20 {
		yield()
		if ns[0].ctl.deaths() != 0 {
			t.Fatal("acknowledged while copies are under way")
		}
	}
	close(s.gate)
	soon(t, "acknowledgement", func() bool { <-told; return true })
	for range users {
		// A long one ends before its next piece.
		if err := <-errs; err != nil && !(long && errors.Is(err, transport.ErrPeerGone)) {
			t.Error(err)
		}
	}
	if ns[0].ctl.deaths() != 1 {
		t.Errorf("%d ends are acknowledged", ns[0].ctl.deaths())
	}
	if err := copies(m, key, 0); !errors.Is(err, transport.ErrPeerGone) {
		t.Errorf("after the end: %v", err)
	}
}

// Who is finalized has let go of everybody's memory.
func TestMemoryEndsWithClose(t *testing.T) {
	ns, _, _, m, key := memoryJob(t, make([]byte, 8))
	if err := ns[0].Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(make([]byte, 8), key, 0); !errors.Is(err, transport.ErrPeerGone) {
		t.Errorf("written after Close: %v", err)
	}
}

// The process dies while it is being reached for, also if no communicator has
// it.
func TestReachTheDying(t *testing.T) {
	for _, stranger := range []bool{false, true} {
		ns, hub := testJobOf(t, 2, nil, nil)
		n := ns[0]
		if stranger {
			n.FreeContext(n.ctx)
		}
		asked, hold := make(chan struct{}), make(chan struct{})
		n.ctl.contact = func(p wire.ProcID) (wire.Contact, error) {
			close(asked)
			<-hold
			return wire.Contact{Proc: p, SameHost: true, Segment: -1, Bell: -1}, nil
		}
		_, proof, _ := ns[1].Register(make([]byte, 8))
		got := make(chan error, 1)
		go func() {
			_, err := n.ReachMemory(ns[1].Self(), proof)
			got <- err
		}()
		<-asked
		kill(t, ns, hub, 1)
		close(hold)
		if err := <-got; !errors.Is(err, transport.ErrPeerGone) {
			t.Fatalf("stranger %v: %v", stranger, err)
		}
		n.Lock()
		if len(n.memories)+len(n.asked) != 0 || stranger && len(n.dead) != 0 {
			t.Errorf("stranger %v: kept: %d memories, %d asked for, %d ends", stranger, len(n.memories), len(n.asked), len(n.dead))
		}
		n.Unlock()
	}
}

// Sharing over transports that can, and the answers where none can.
func TestSharing(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	mine, place, err := ns[0].Share(1000)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := ns[1].Join(ns[0].Self(), place, len(mine))
	if err != nil {
		t.Fatal(err)
	}
	mine[999] = 7
	if theirs[999] != 7 {
		t.Error("not the same memory")
	}
	if _, err := ns[1].Join(ns[0].Self(), place+1, len(mine)); err == nil {
		t.Error("joined what was not shared")
	}
	ns[1].Leave(theirs)
	ns[0].Unshare(mine, place)

	key, _, _ := ns[0].Register(mine)
	ns[0].Unregister(key)

	alone, _ := testJobOf(t, 1, nil, func(_ int, c *Config) { c.Transports = nil })
	if _, _, err := alone[0].Share(8); !errors.Is(err, transport.ErrUnavailable) {
		t.Error(err)
	}
	if _, err := alone[0].Join(proc(9), 0, 8); !errors.Is(err, transport.ErrUnavailable) {
		t.Error(err)
	}
	if _, _, ok := alone[0].Register(mine); ok {
		t.Error("exposed by nothing")
	}
	if _, err := alone[0].ReachMemory(proc(9), [2]uint64{}); !errors.Is(err, transport.ErrUnavailable) {
		t.Error(err)
	}
}

func TestMemoryAllocatesNothing(t *testing.T) {
	_, _, _, m, key := memoryJob(t, make([]byte, 4096))
	b := make([]byte, 100)
	runs := []transport.Run{{Mem: b[:10]}, {Mem: b[10:], Off: 1000}, {Mem: b[:5], Off: 2000}}
	for what, f := range map[string]func() error{
		"Read":      func() error { return m.Read(b, key, 1) },
		"Write":     func() error { return m.Write(b, key, 1) },
		"ReadRuns":  func() error { return m.ReadRuns(runs, key) },
		"WriteRuns": func() error { return m.WriteRuns(runs, key) },
	} {
		if n := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %g allocations", what, n)
		}
	}
}

// slowSharer is an inproc transport that shares memory, and takes it back, only
// once the gate is open.
type slowSharer struct {
	*inproc.Transport
	inside atomic.Int64
	gate   chan struct{}
	closed atomic.Bool
}

func (s *slowSharer) pass() {
	s.inside.Add(1)
	<-s.gate
	s.inside.Add(-1)
}

func (s *slowSharer) Share(n int) ([]byte, uint64, error) {
	s.pass()
	if s.closed.Load() {
		panic("shared after Close")
	}
	return s.Transport.Share(n)
}

func (s *slowSharer) Unshare(mem []byte, place uint64) {
	s.pass()
	s.Transport.Unshare(mem, place)
}

func (s *slowSharer) Close() error {
	s.closed.Store(true)
	return s.Transport.Close()
}

// oversubscriber notes what it is told.
type oversubscriber struct {
	*inproc.Transport
	told []bool
}

func (c *oversubscriber) Oversubscribed(yes bool) { c.told = append(c.told, yes) }

// Transports hear whether ranks outnumber processors, and when that changes.
func TestOversubscriptionIsTold(t *testing.T) {
	var c oversubscriber
	ns, _ := testJobOf(t, 1, nil, func(_ int, cfg *Config) {
		c.Transport = cfg.Transports[0].(*inproc.Transport)
		cfg.Transports[0] = &c
		cfg.Policy = wait.ForOS(3, 2)
	})
	ns[0].SetPolicy(wait.ForOS(2, 2))
	if !slices.Equal(c.told, []bool{true, false}) {
		t.Errorf("told %v", c.told)
	}
}

// Messages go on while the operating system makes memory, and an engine that is
// closed waits for it.
func TestSharingHoldsOffNobody(t *testing.T) {
	s := &slowSharer{gate: make(chan struct{})}
	ns, _ := testJobOf(t, 2, nil, func(i int, c *Config) {
		if i == 0 {
			s.Transport = c.Transports[0].(*inproc.Transport)
			c.Transports[0] = s
		}
	})
	shared := make(chan error, 2)
	mem, place, _ := s.Transport.Share(10)
	go func() { _, _, err := ns[0].Share(100); shared <- err }()
	go func() { ns[0].Unshare(mem, place); shared <- nil }()
	within(t, "sharing", func() bool { return s.inside.Load() == 2 })
	ns[0].Lock()
	ns[0].Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		none, cancel := context.WithCancel(context.Background())
		cancel()
		ns[0].Close(none)
	}()
	within(t, "the end", func() bool {
		ns[0].Lock()
		defer ns[0].Unlock()
		return ns[0].closed
	})
	for range 20 {
		yield()
		if s.closed.Load() {
			t.Fatal("the transport was closed while it shares")
		}
	}
	close(s.gate)
	for range 2 {
		if err := <-shared; err != nil {
			t.Error(err)
		}
	}
	<-ended
	if _, _, err := ns[0].Share(100); !errors.Is(err, transport.ErrUnavailable) {
		t.Errorf("shared after the end: %v", err)
	}
}
