// SPDX-License-Identifier: Apache-2.0

package shmem

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// fakeHost is the memory that the processes of a test share.
type fakeHost struct {
	mu     sync.Mutex
	mem    map[fakePlace][]byte
	places uint64
}

type fakePlace struct {
	owner wire.ProcID
	place uint64
}

// fakeProcess is one of them.
type fakeProcess struct {
	host *fakeHost
	self wire.ProcID
	none error // why its memory cannot be shared
	// before is called by each Join, which counts for itself.
	before func()

	mu     sync.Mutex
	shared int // pieces, and their bytes
	bytes  int
	mapped map[*byte]int // of others
	joins  int
}

func (h *fakeHost) process(serial uint32) *fakeProcess {
	return &fakeProcess{host: h, self: wire.ProcID{Job: 7, Serial: serial}, mapped: map[*byte]int{}, before: func() {}}
}

func (p *fakeProcess) Self() wire.ProcID { return p.self }

func (p *fakeProcess) Share(n int) ([]byte, uint64, error) {
	if p.none != nil {
		return nil, 0, p.none
	}
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	if p.host.mem == nil {
		p.host.mem = map[fakePlace][]byte{}
	}
	p.host.places++
	mem := make([]byte, n)
	p.host.mem[fakePlace{p.self, p.host.places}] = mem
	p.mu.Lock()
	p.shared, p.bytes = p.shared+1, p.bytes+n
	p.mu.Unlock()
	return mem, p.host.places, nil
}

func (p *fakeProcess) Unshare(mem []byte, place uint64) {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	delete(p.host.mem, fakePlace{p.self, place})
	p.mu.Lock()
	p.shared, p.bytes = p.shared-1, p.bytes-len(mem)
	p.mu.Unlock()
}

func (p *fakeProcess) Join(owner wire.ProcID, place uint64, n int) ([]byte, error) {
	p.before()
	p.host.mu.Lock()
	mem := p.host.mem[fakePlace{owner, place}]
	p.host.mu.Unlock()
	if len(mem) < n {
		return nil, fmt.Errorf("%w: %d bytes of %d", transport.ErrProtocol, n, len(mem))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joins++
	p.mapped[&mem[0]]++
	return mem[:n], nil
}

// Leave ends a Join, or a Share.
func (p *fakeProcess) Leave(mem []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, ok := p.mapped[&mem[0]]; !ok {
		p.shared, p.bytes = p.shared-1, p.bytes-len(mem)
	} else if n > 1 {
		p.mapped[&mem[0]]--
	} else {
		delete(p.mapped, &mem[0])
	}
}

// arena shares an arena and names a block in it.
func (p *fakeProcess) arena(t testing.TB, n int, kept bool) Name {
	t.Helper()
	_, place, err := p.Share(n)
	if err != nil {
		t.Fatal(err)
	}
	return Name{Owner: p.self, Place: place, Total: int64(n), Off: 128, Bytes: 64, Generation: 1, Kept: kept}
}

// Users come and go at random, with deaths: what is mapped is what a model says.
func TestCacheOfManyUsers(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var h fakeHost
		me := h.process(1)
		c := Cache{Heap: &Heap{Sharing: me}}
		type place struct {
			name  Name
			users []*Mapping
			dead  bool
			there bool // mapped
		}
		var places []*place
		for serial := range uint32(4) {
			for range 4 {
				places = append(places, &place{name: h.process(serial+2).arena(t, 512, rnd.IntN(2) == 0)})
			}
		}
		later := false
		for turn := range 500 {
			x := places[rnd.IntN(len(places))]
			switch k := rnd.IntN(100); {
			case k < 50 && !x.dead:
				m, mem, err := c.Map(&x.name)
				if err != nil || len(mem) != 64 || cap(mem) != 64 {
					t.Fatalf("seed %d: %d bytes, %v", seed, len(mem), err)
				}
				x.users, x.there = append(x.users, m), true
			case k < 95 && len(x.users) > 0:
				i := rnd.IntN(len(x.users))
				m := x.users[i]
				x.users = append(x.users[:i], x.users[i+1:]...)
				if later = rnd.IntN(2) == 0; later {
					c.UnmapLater(m)
				} else {
					c.Unmap(m)
				}
			case k == 99:
				c.Gone(x.name.Owner)
				for _, y := range places {
					y.dead = y.dead || y.name.Owner == x.name.Owner
				}
			}
			if rnd.IntN(3) > 0 {
				continue
			}
			c.Sweep()
			want := 0
			for _, y := range places {
				if y.there = y.there && (len(y.users) > 0 || y.name.Kept && !y.dead); y.there {
					want++
				}
			}
			if c.Len() != want || len(me.mapped) != want {
				t.Fatalf("seed %d, turn %d: %d in the cache, %d mapped, want %d", seed, turn, c.Len(), len(me.mapped), want)
			}
		}
		c.Close()
		for _, x := range places {
			for _, m := range x.users {
				c.Unmap(m)
			}
		}
		if c.Len()+len(me.mapped) > 0 {
			t.Fatalf("seed %d: %d in the cache, %d mapped at the end", seed, c.Len(), len(me.mapped))
		}
	}
}

// Two that want the same arena at once map it once, and see its failure both.
func TestCacheMapsOnce(t *testing.T) {
	for _, there := range []bool{true, false} {
		var h fakeHost
		me := h.process(1)
		c := Cache{Heap: &Heap{Sharing: me}}
		n := h.process(2).arena(t, 512, false)
		if !there {
			n.Place = 77
		}
		const users = 8
		begun, joins := make(chan struct{}), 0
		me.before = func() { joins++; <-begun }
		var group sync.WaitGroup
		var all [users]*Mapping
		for i := range all {
			group.Go(func() {
				m, _, err := c.Map(&n)
				if all[i] = m; (err == nil) != there {
					t.Errorf("there %v: %v", there, err)
				}
			})
		}
		for waiting := 0; waiting < users; { // all have found the one mapping
			runtime.Gosched()
			c.mu.Lock()
			waiting = 0
			for _, m := range c.all {
				waiting = m.users
			}
			c.mu.Unlock()
		}
		close(begun)
		group.Wait()
		if joins != 1 {
			t.Errorf("mapped %d times", joins)
		}
		for _, m := range all {
			if m != all[0] {
				t.Error("two mappings of one arena")
			} else if m != nil {
				c.Unmap(m)
			}
		}
		if c.Len()+len(me.mapped) > 0 {
			t.Errorf("there %v: %d in the cache, %d mapped at the end", there, c.Len(), len(me.mapped))
		}
	}
}

// A death while an arena is being mapped: it goes with its last user.
func TestCacheOwnerDiesWhileMapping(t *testing.T) {
	var h fakeHost
	me, other := h.process(1), h.process(2)
	c := Cache{Heap: &Heap{Sharing: me}}
	n := other.arena(t, 512, true)
	me.before = func() { c.Gone(other.self) }
	m, _, err := c.Map(&n)
	if err != nil {
		t.Fatal(err)
	}
	c.Unmap(m)
	if c.Len() > 0 {
		t.Error("memory of the dead is kept")
	}
}

// A name of which another process has changed a field maps nothing outside of the
// arena, and spoils nothing for those who have the right one.
func TestCacheChecksNames(t *testing.T) {
	var h fakeHost
	me, other := h.process(1), h.process(2)
	c := Cache{Heap: &Heap{Sharing: me}}
	good := other.arena(t, 4096, true)
	for what, change := range map[string]func(*Name){
		"owner":          func(n *Name) { n.Owner.Serial++ },
		"place":          func(n *Name) { n.Place++ },
		"this process":   func(n *Name) { n.Owner = me.self },
		"no generation":  func(n *Name) { n.Generation = 0 },
		"private place":  func(n *Name) { n.Place |= privatePlace },
		"length":         func(n *Name) { n.Total++ },
		"no length":      func(n *Name) { n.Total = 0 },
		"negative":       func(n *Name) { n.Total = -1 },
		"before":         func(n *Name) { n.Off = -1 },
		"behind":         func(n *Name) { n.Off = n.Total - 63 },
		"far behind":     func(n *Name) { n.Off = 1<<63 - 1 },
		"bytes":          func(n *Name) { n.Bytes = n.Total - 127 },
		"negative bytes": func(n *Name) { n.Bytes = -1 },
		"all bytes":      func(n *Name) { n.Bytes = 1<<63 - 1 },
	} {
		bad := good
		change(&bad)
		if _, _, err := c.Map(&bad); err == nil {
			t.Errorf("%s: mapped", what)
		} else if private := errors.Is(err, ErrPrivate); private != (what == "private place") || !private && !errors.Is(err, transport.ErrProtocol) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if c.Len() > 0 {
		t.Errorf("%d mappings are left of names that cannot be", c.Len())
	}
	// What can be, but is not so, stands beside the right one.
	liar := good
	liar.Total, liar.Kept = 512, false
	l, _, err := c.Map(&liar)
	if err != nil {
		t.Fatal(err)
	}
	m, mem, err := c.Map(&good)
	if err != nil || len(mem) != 64 {
		t.Fatalf("%d bytes, %v", len(mem), err)
	}
	c.Unmap(l)
	c.Unmap(m)
	if c.Len() != 1 {
		t.Errorf("%d mappings, want the one that is kept", c.Len())
	}
}
