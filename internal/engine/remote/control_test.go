// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/engine/shmem"
	"gompi/transport"
)

// fakeHost is the shared memory of several processes of a test.
type fakeHost struct {
	mu    sync.Mutex
	mem   map[fakePlace][]byte
	joins int
	left  int
}

type fakePlace struct {
	owner wire.ProcID
	place uint64
}

// fakeProcess is one of them.
type fakeProcess struct {
	host   *fakeHost
	self   wire.ProcID
	shares int
	none   bool // its memory cannot be shared
}

func (h *fakeHost) process(serial uint32) *fakeProcess {
	return &fakeProcess{host: h, self: wire.ProcID{Job: 7, Serial: serial}}
}

func (p *fakeProcess) Self() wire.ProcID { return p.self }

func (p *fakeProcess) Share(n int) ([]byte, uint64, error) {
	if p.none {
		return nil, 0, transport.ErrUnavailable
	}
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	if p.host.mem == nil {
		p.host.mem = map[fakePlace][]byte{}
	}
	p.shares++
	mem := shmem.Aligned(n, controlAlign)
	p.host.mem[fakePlace{p.self, uint64(p.shares)}] = mem
	return mem, uint64(p.shares), nil
}

func (p *fakeProcess) Unshare([]byte, uint64) {}

func (p *fakeProcess) Join(owner wire.ProcID, place uint64, n int) ([]byte, error) {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	mem := p.host.mem[fakePlace{owner, place}]
	if len(mem) != n {
		return nil, transport.ErrProtocol
	}
	p.host.joins++
	return mem, nil
}

func (p *fakeProcess) Leave([]byte) {
	p.host.mu.Lock()
	p.host.left++
	p.host.mu.Unlock()
}

// space is that of the process, which has no engine.
func (p *fakeProcess) space() *Space {
	s := &Space{self: p.self}
	s.heap.Sharing, s.cache.Heap = p, &s.heap
	return s
}

func (s *Space) mapped(n shmem.Name) (*control, error) {
	c := new(control)
	return c, s.mapControl(c, &n)
}

// named is a new control block and its name.
func (s *Space) named(t testing.TB, words int) (*control, shmem.Name) {
	t.Helper()
	c, err := s.newControl(words)
	if err != nil {
		t.Fatal(err)
	}
	return c, c.block.Name()
}

// A block that lies where a larger one had its words names nobody.
func TestControlOfPartIsZeroed(t *testing.T) {
	var h fakeHost
	s := h.process(1).space()
	const words = 64 << 10 / 8
	large, err := s.newControl(words)
	if err != nil {
		t.Fatal(err)
	}
	for i := range large.words {
		if i%3 == 0 { // not all: a place that seems used is cleared anyway
			large.words[i].Store(uint64(i + 1))
		}
	}
	mem := large.block.Mem()
	s.freeControl(large, false)
	for range len(mem) / controlAlign {
		c, err := s.newControl(0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.head.visits {
			if who := c.head.visits[i].who.Load(); who != 0 {
				t.Fatalf("place %d of a new block is taken by %d", i, who)
			}
		}
	}
}

func TestControlIsSharedAndRecycledZeroed(t *testing.T) {
	var h fakeHost
	p1, p2 := h.process(1), h.process(2)
	mine, theirs := p1.space(), p2.space()
	for round := range 3 {
		c, at := mine.named(t, 20)
		r, err := theirs.mapped(at)
		if err != nil {
			t.Fatal(err)
		}
		if r.head.ticket.Load() != 0 || r.head.guard.Load() != 0 || r.head.asleep.Load() != 0 || r.head.state.Load() != 0 {
			t.Fatalf("round %d: the head is not zero", round)
		}
		for i := range r.words {
			if v := r.words[i].Load(); v != 0 {
				t.Fatalf("round %d: word %d is %d", round, i, v)
			}
			r.words[i].Store(uint64(i + 1))
			if v := c.words[i].Load(); v != uint64(i+1) {
				t.Fatalf("round %d: the owner reads %d in word %d", round, v, i)
			}
		}
		r.head.ticket.Store(9)
		r.head.guard.Store(9)
		r.head.asleep.Store(9)
		r.head.state.Store(9)
		mine.freeControl(c, false)
		if _, err := theirs.mapped(at); !errors.Is(err, errStale) {
			t.Fatalf("a block that is free: %v", err)
		}
		if _, err := mine.mapped(at); !errors.Is(err, errStale) {
			t.Fatalf("an own block that is free: %v", err)
		}
		theirs.unmapControl(r)
	}
	if p1.shares != 1 || h.joins != 1 {
		t.Fatalf("%d arenas, joined %d times", p1.shares, h.joins)
	}
}

func TestControlBlocksDoNotOverlap(t *testing.T) {
	var h fakeHost
	s := h.process(1).space()
	type user struct {
		c    *control
		mark uint64
	}
	var live []user
	check := func() {
		for _, u := range live {
			if u.c.head.ticket.Load() != u.mark {
				t.Fatalf("block %d has the ticket of %d", u.mark, u.c.head.ticket.Load())
			}
			for i := range u.c.words {
				if v := u.c.words[i].Load(); v != u.mark {
					t.Fatalf("word %d of %d of block %d is that of %d", i, len(u.c.words), u.mark, v)
				}
			}
		}
	}
	seed := uint64(1)
	for n := range 3000 {
		seed = seed*6364136223846793005 + 1442695040888963407
		if k := int(seed >> 33); len(live) > 0 && k%5 < 2 {
			i := k / 5 % len(live)
			s.freeControl(live[i].c, k%50 == 0)
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		words := int(seed>>40) % 300
		if n%500 == 0 {
			words = 40000 // more than the first arena holds
		}
		c, _ := s.named(t, words)
		if len(c.words) != words {
			t.Fatalf("%d words: %d", words, len(c.words))
		}
		u := user{c, uint64(n + 1)}
		c.head.ticket.Store(u.mark)
		for i := range c.words {
			c.words[i].Store(u.mark)
		}
		live = append(live, u)
		if n%100 == 0 {
			check()
		}
	}
	check()
	if n := s.heap.Kept(); n > 8 {
		t.Fatalf("%d arenas", n)
	}
}

func TestControlWithoutSharedMemory(t *testing.T) {
	var h fakeHost
	p1 := h.process(1)
	p1.none = true
	s, other := p1.space(), h.process(2).space()
	_, at := s.named(t, 3)
	if _, err := other.mapped(at); !errors.Is(err, shmem.ErrPrivate) {
		t.Fatalf("private memory is mapped: %v", err)
	}
	if c, err := s.mapped(at); err != nil || len(c.words) != 3 {
		t.Fatalf("its owner reaches it with %v", err)
	}
}

func TestControlPlacesAreChecked(t *testing.T) {
	var h fakeHost
	p1, p2 := h.process(1), h.process(2)
	s, other := p1.space(), p2.space()
	_, good := s.named(t, 16)
	for name, change := range map[string]func(*shmem.Name){
		"owner":           func(n *shmem.Name) { n.Owner.Serial = 5 },
		"place":           func(n *shmem.Name) { n.Place = 77 },
		"length":          func(n *shmem.Name) { n.Total *= 2 },
		"no length":       func(n *shmem.Name) { n.Total = 0 },
		"odd length":      func(n *shmem.Name) { n.Total++ },
		"offset":          func(n *shmem.Name) { n.Off += controlAlign },
		"unaligned":       func(n *shmem.Name) { n.Off += 8 },
		"behind the end":  func(n *shmem.Name) { n.Off = n.Total },
		"last offset":     func(n *shmem.Name) { n.Off = 1<<63 - controlAlign },
		"no words":        func(n *shmem.Name) { n.Bytes = headBytes - 8 },
		"half a word":     func(n *shmem.Name) { n.Bytes += 4 },
		"words":           func(n *shmem.Name) { n.Bytes = n.Total + 8 },
		"too many words":  func(n *shmem.Name) { n.Bytes = controlBytes(maxWords + 1) },
		"generation":      func(n *shmem.Name) { n.Generation++ },
		"zero generation": func(n *shmem.Name) { n.Generation = 0 },
	} {
		at := good
		change(&at)
		for who, c := range map[string]*Space{"the owner": s, "another": other} {
			if _, err := c.mapped(at); err == nil {
				t.Errorf("%s: %s maps it", name, who)
			}
		}
	}
	for _, words := range []int{-1, maxWords + 1} {
		if _, err := s.newControl(words); err == nil {
			t.Errorf("a block of %d words", words)
		}
	}
	if c, err := s.newControl(0); err != nil || len(c.words) != 0 {
		t.Errorf("a block of 0 words: %v", err)
	}
}

func TestControlOfADeadProcessGoesWithItsLastUser(t *testing.T) {
	var h fakeHost
	p1 := h.process(1)
	s, other := p1.space(), h.process(2).space()
	_, at := s.named(t, 1)
	a, err := other.mapped(at)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := other.mapped(at)
	other.cache.Gone(p1.self)
	other.unmapControl(a)
	if h.left != 0 {
		t.Fatal("left in use")
	}
	b.words[0].Store(1)
	other.unmapControl(b)
	if n := other.cache.Len(); h.left != 1 || n != 0 {
		t.Fatalf("left %d times, %d arenas kept", h.left, n)
	}
}

func TestControlsGoWithTheLastBlock(t *testing.T) {
	var h fakeHost
	p1 := h.process(1)
	s, other := p1.space(), h.process(2).space()
	c, at := s.named(t, 1)
	r, err := other.mapped(at)
	if err != nil {
		t.Fatal(err)
	}
	s.heap.Close()
	other.cache.Close()
	if h.left != 0 {
		t.Fatal("left in use")
	}
	r.words[0].Store(1)
	other.unmapControl(r)
	if h.left != 1 {
		t.Fatal("what another has shared was not left")
	}
	s.freeControl(c, false)
	s.heap.Sweep()
	if h.left != 2 {
		t.Fatal("the arena was not left")
	}
}

func TestGuardIsTakenByOne(t *testing.T) {
	s := (&fakeHost{}).process(1).space()
	c, _ := s.newControl(0)
	const users, rounds = 6, 3000
	count := 0
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			for range rounds {
				c.guardLock(uint32(u+1), func(uint32, int) ownerState { runtime.Gosched(); return living })
				count++
				c.guardUnlock(uint32(u + 1))
			}
		})
	}
	wg.Wait()
	if count != users*rounds || c.head.guard.Load() != 0 {
		t.Fatalf("%d of %d, guard word %d", count, users*rounds, c.head.guard.Load())
	}
}

func TestGuardOfTheDeadAndOfNobody(t *testing.T) {
	s := (&fakeHost{}).process(1).space()
	c, _ := s.newControl(0)
	c.head.guard.Store(5)
	if c.guardTry(1) {
		t.Fatal("taken while held")
	}
	asked := fmt.Sprint()
	c.guardLock(1, func(owner uint32, n int) ownerState {
		asked += fmt.Sprint(owner, n, ";")
		if n == 3 {
			return ended
		}
		return living
	})
	if asked != "5 0;5 1;5 2;5 3;" {
		t.Fatalf("asked for %s", asked)
	}
	c.guardUnlock(5) // the dead one was not dead
	if c.guardTry(2) {
		t.Fatal("a late unlock of another gave it away")
	}
	c.guardUnlock(1)
	if !c.guardTry(2) {
		t.Fatal("not free")
	}
}

func BenchmarkControlNew(b *testing.B) {
	s := (&fakeHost{}).process(1).space()
	b.ReportAllocs()
	for b.Loop() {
		c, _ := s.newControl(8)
		s.freeControl(c, false)
	}
}
