// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"gompi/internal/shmem"
	"gompi/internal/wire"
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
	mem := alignedBytes(n, controlAlign)
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

// controls are those of the process.
func (p *fakeProcess) controls() *controls {
	return &controls{share: p, cache: &shmem.Cache{Sharing: p}}
}

func (s *controls) mapped(p wire.ProcID, at place) (*control, error) {
	c := new(control)
	return c, s.mapControl(c, p, at)
}

func TestControlIsSharedAndRecycledZeroed(t *testing.T) {
	var h fakeHost
	p1, p2 := h.process(1), h.process(2)
	mine, theirs := p1.controls(), p2.controls()
	for round := range 3 {
		c, at, err := mine.newControl(20)
		if err != nil {
			t.Fatal(err)
		}
		var b [placeBytes]byte
		at.put(b[:])
		r, err := theirs.mapped(p1.self, getPlace(b[:]))
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
		if _, err := theirs.mapped(p1.self, at); !errors.Is(err, errStale) {
			t.Fatalf("a block that is free: %v", err)
		}
		if _, err := mine.mapped(p1.self, at); !errors.Is(err, errStale) {
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
	s := h.process(1).controls()
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
		c, at, err := s.newControl(words)
		if err != nil {
			t.Fatal(err)
		}
		if err := at.check(); err != nil || len(c.words) != words {
			t.Fatalf("%d words: %d, %v", words, len(c.words), err)
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
	if len(s.arenas) > 8 {
		t.Fatalf("%d arenas", len(s.arenas))
	}
}

func TestControlWithoutSharedMemory(t *testing.T) {
	var h fakeHost
	p1 := h.process(1)
	p1.none = true
	s, other := p1.controls(), h.process(2).controls()
	_, at, err := s.newControl(3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.mapped(p1.self, at); !errors.Is(err, shmem.ErrPrivate) {
		t.Fatalf("private memory is mapped: %v", err)
	}
	if c, err := s.mapped(p1.self, at); err != nil || len(c.words) != 3 {
		t.Fatalf("its owner reaches it with %v", err)
	}
}

func TestControlPlacesAreChecked(t *testing.T) {
	var h fakeHost
	p1, p2 := h.process(1), h.process(2)
	s, other := p1.controls(), p2.controls()
	_, good, err := s.newControl(16)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*place){
		"arena":           func(p *place) { p.arena = 77 },
		"length":          func(p *place) { p.bytes *= 2 },
		"no length":       func(p *place) { p.bytes = 0 },
		"odd length":      func(p *place) { p.bytes++ },
		"huge":            func(p *place) { p.bytes = 1 << 31 },
		"offset":          func(p *place) { p.off += controlAlign },
		"unaligned":       func(p *place) { p.off += 8 },
		"behind the end":  func(p *place) { p.off = p.bytes },
		"last offset":     func(p *place) { p.off = 1<<32 - controlAlign },
		"words":           func(p *place) { p.words = p.bytes / 8 },
		"too many words":  func(p *place) { p.words = 1<<32 - 1 },
		"generation":      func(p *place) { p.generation++ },
		"zero generation": func(p *place) { p.generation = 0 },
	} {
		at := good
		change(&at)
		for who, c := range map[string]*controls{"the owner": s, "another": other} {
			if _, err := c.mapped(p1.self, at); err == nil {
				t.Errorf("%s: %s maps it", name, who)
			}
		}
	}
	for _, words := range []int{-1, maxWords + 1} {
		if _, _, err := s.newControl(words); err == nil {
			t.Errorf("a block of %d words", words)
		}
	}
	if c, _, err := s.newControl(0); err != nil || len(c.words) != 0 {
		t.Errorf("a block of 0 words: %v", err)
	}
}

func TestControlOfADeadProcessGoesWithItsLastUser(t *testing.T) {
	var h fakeHost
	p1 := h.process(1)
	s, other := p1.controls(), h.process(2).controls()
	_, at, _ := s.newControl(1)
	a, err := other.mapped(p1.self, at)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := other.mapped(p1.self, at)
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
	s, other := p1.controls(), h.process(2).controls()
	c, at, _ := s.newControl(1)
	r, err := other.mapped(p1.self, at)
	if err != nil {
		t.Fatal(err)
	}
	s.close()
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
	s.sweep()
	if h.left != 2 {
		t.Fatal("the arena was not left")
	}
}

func TestGuardIsTakenByOne(t *testing.T) {
	var s controls
	s.share = (&fakeHost{}).process(1)
	c, _, _ := s.newControl(0)
	const users, rounds = 6, 3000
	count := 0
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			for range rounds {
				c.guardLock(uint32(u+1), func(uint32, int) verdict { runtime.Gosched(); return living })
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
	var s controls
	s.share = (&fakeHost{}).process(1)
	c, _, _ := s.newControl(0)
	c.head.guard.Store(5)
	if c.guardTry(1) {
		t.Fatal("taken while held")
	}
	asked := fmt.Sprint()
	c.guardLock(1, func(owner uint32, n int) verdict {
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
	var s controls
	s.share = (&fakeHost{}).process(1)
	b.ReportAllocs()
	for b.Loop() {
		c, _, _ := s.newControl(8)
		s.freeControl(c, false)
	}
}
