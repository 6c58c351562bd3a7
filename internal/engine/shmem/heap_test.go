// SPDX-License-Identifier: Apache-2.0

package shmem

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"gompi/transport"
)

// pattern fills a block with bytes of its own.
func pattern(b []byte, seed uint64) {
	for i := range b {
		b[i] = byte(seed + uint64(i)*7)
	}
}

func hasPattern(b []byte, seed uint64) bool {
	for i := range b {
		if b[i] != byte(seed+uint64(i)*7) {
			return false
		}
	}
	return true
}

// Blocks of both sorts come and go at random: each begins on a line, has what its
// user wrote and nobody else, is where its name says, and what others may still
// use is not given out again. Where a stable block has begun nothing else is ever
// but the beginning of another, of another generation.
func TestHeapAgainstAModel(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var host fakeHost
		p := host.process(1)
		h := Heap{Sharing: p}
		own, other := Cache{Heap: &h}, Cache{Heap: &Heap{Sharing: host.process(2)}}
		type user struct {
			Block
			mark   uint64
			stable bool
		}
		type begin struct {
			place uint64
			off   int64
		}
		var live, lost []user
		begun := map[begin]uint32{} // the last generation at the beginning of a stable block
		for turn := range uint64(600) {
			if n := len(live); n > 0 && rnd.IntN(9) < 4 {
				i := rnd.IntN(n)
				u, used := live[i], rnd.IntN(15) == 0
				if !hasPattern(u.Mem(), u.mark) {
					t.Fatalf("seed %d, turn %d: somebody wrote into a block of %d bytes", seed, turn, u.bytes)
				}
				if h.Put(u.Block, used); used && u.arena.kept {
					lost = append(lost, u)
				}
				live[i] = live[n-1]
				live = live[:n-1]
				continue
			}
			n := int64(1 + rnd.IntN(1<<rnd.IntN(19)))
			u := user{stable: rnd.IntN(2) == 0, mark: turn}
			var err error
			if u.stable {
				u.Block, err = h.TakeStable(n%20000 + 1)
			} else if u.Block, err = h.Take(n, rnd.IntN(20) == 0); err == nil && bytes.Count(u.Mem(), []byte{0}) != int(n) {
				t.Fatalf("seed %d: %d bytes are not zero", seed, n)
			}
			if err != nil {
				t.Fatal(err)
			}
			pattern(u.Mem(), u.mark)
			name := u.Name()
			if name.Off%Line != 0 || name.Generation == 0 || int64(cap(u.Mem())) != name.Bytes {
				t.Fatalf("seed %d: %+v, %d bytes", seed, name, cap(u.Mem()))
			}
			for at, g := range begun {
				if at.place != name.Place || at.off < name.Off || at.off >= name.Off+name.Bytes {
					continue
				}
				if !u.stable || at.off != name.Off || g == name.Generation {
					t.Fatalf("seed %d: stable memory at %d is part of %+v", seed, at.off, name)
				}
			}
			if u.stable {
				begun[begin{name.Place, name.Off}] = name.Generation
			}
			b := make([]byte, NameBytes)
			name.Put(b)
			for _, c := range []*Cache{&own, &other} {
				got := GetName(b, p.self)
				m, mem, err := c.Map(&got)
				if err != nil || &mem[0] != &u.Mem()[0] || len(mem) != int(name.Bytes) {
					t.Fatalf("seed %d: its name maps something else: %v", seed, err)
				}
				c.Unmap(m)
			}
			live = append(live, u)
		}
		for _, u := range append(live, lost...) {
			if !hasPattern(u.Mem(), u.mark) {
				t.Fatalf("seed %d: a block of %d bytes was given out twice", seed, u.bytes)
			}
		}
		for _, u := range live {
			h.Put(u.Block, false)
		}
		if h.Live() != 0 || len(h.whole) != 0 || h.bytes > keptBytes {
			t.Errorf("seed %d: %d blocks in use, %d arenas of their own, %d bytes kept", seed, h.Live(), len(h.whole), h.bytes)
		}
		h.Close()
		if p.shared > 0 {
			t.Errorf("seed %d: %d arenas at the end", seed, p.shared)
		}
	}
}

// What is kept is bounded: what does not fit has an arena of its own, which goes
// with it, and what was given back is joined again. Stable blocks have room
// nevertheless.
func TestHeapIsBounded(t *testing.T) {
	var host fakeHost
	p := host.process(1)
	h := Heap{Sharing: p}
	for _, n := range []int64{100, maxArena, 50_000, 1 << 20, maxArena + 1} {
		var all []Block
		for sum := int64(0); sum < 2*keptBytes && len(all) < 20_000; sum += n {
			b, err := h.Take(n, false)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
		if h.bytes > keptBytes {
			t.Errorf("blocks of %d bytes: %d bytes are kept", n, h.bytes)
		}
		if n == maxArena {
			s, err := h.TakeStable(1 << 20)
			if err != nil {
				t.Error(err)
			}
			h.Put(s, false)
		}
		for _, b := range all {
			h.Put(b, false)
		}
		if p.shared != h.Kept() || int64(p.bytes) != h.bytes {
			t.Errorf("blocks of %d bytes: %d arenas of %d bytes are shared, %d of %d kept", n, p.shared, p.bytes, h.Kept(), h.bytes)
		}
	}
	for _, n := range []int64{-1, 0, MaxStable + 1} {
		if _, err := h.TakeStable(n); err == nil {
			t.Errorf("%d bytes of stable memory", n)
		}
	}
}

// Where nothing is shared there is stable memory, of this process alone.
func TestHeapWithoutSharedMemory(t *testing.T) {
	var host fakeHost
	p := host.process(1)
	p.none = transport.ErrUnavailable
	h := Heap{Sharing: p}
	if _, err := h.Take(8, false); !errors.Is(err, transport.ErrUnavailable) || h.bytes != 0 {
		t.Errorf("%v, %d bytes are booked", err, h.bytes)
	}
	b, err := h.TakeStable(1000)
	if err != nil {
		t.Fatal(err)
	}
	n := b.Name()
	own, other := Cache{Heap: &h}, Cache{Heap: &Heap{Sharing: host.process(2)}}
	if _, mem, err := own.Map(&n); err != nil || &mem[0] != &b.Mem()[0] {
		t.Errorf("its owner: %v", err)
	}
	if _, _, err := other.Map(&n); !errors.Is(err, ErrPrivate) {
		t.Errorf("another: %v", err)
	}
	p.none = errors.New("refused")
	if _, err := h.TakeStable(MaxStable); !errors.Is(err, p.none) {
		t.Errorf("what is refused: %v", err)
	}
}

// The arenas go with the last block of a process that ends.
func TestHeapEnds(t *testing.T) {
	var host fakeHost
	p := host.process(1)
	h := Heap{Sharing: p}
	var all []Block
	for _, n := range []int64{8, maxArena, maxArena + 1} {
		b, err := h.Take(n, false)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	s, err := h.TakeStable(8)
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	for _, b := range all {
		h.Put(b, true)
		h.Sweep()
	}
	if p.shared == 0 {
		t.Fatal("left in use")
	}
	h.Put(s, false)
	h.Sweep()
	if p.shared != 0 {
		t.Errorf("%d arenas were not left", p.shared)
	}
}

// Several goroutines take and put, and what one of them has is nobody else's.
func TestHeapOfMany(t *testing.T) {
	var host fakeHost
	h := Heap{Sharing: host.process(1)}
	var users sync.WaitGroup
	for u := range uint64(6) {
		users.Go(func() {
			for i := range int64(200) {
				b, err := h.Take(1+1000*i, false)
				if err != nil {
					t.Error(err)
					return
				}
				s, err := h.TakeStable(1 + 100*i)
				if err != nil {
					t.Error(err)
					return
				}
				pattern(b.Mem(), u)
				pattern(s.Mem(), u+9)
				if !hasPattern(b.Mem(), u) || !hasPattern(s.Mem(), u+9) {
					t.Error("a block was given out twice")
				}
				h.Put(b, false)
				h.Put(s, false)
			}
		})
	}
	users.Wait()
	if h.Live() != 0 || h.bytes > keptBytes {
		t.Errorf("%d blocks in use, %d bytes", h.Live(), h.bytes)
	}
}

func BenchmarkHeapStable(b *testing.B) {
	var host fakeHost
	h := Heap{Sharing: host.process(1)}
	b.ReportAllocs()
	for b.Loop() {
		s, _ := h.TakeStable(1216)
		h.Put(s, false)
	}
}

func BenchmarkHeapTake(b *testing.B) {
	var host fakeHost
	h := Heap{Sharing: host.process(1)}
	b.ReportAllocs()
	for b.Loop() {
		x, _ := h.Take(8, false)
		h.Put(x, false)
	}
}
