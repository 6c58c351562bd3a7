// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/dtype"
)

// TestRetireWaitsForAccessors: processes that come one after the other write
// to regions until they are told that these are gone. After Retire nobody does.
func TestRetireWaitsForAccessors(t *testing.T) {
	const others, rounds = 5, 60
	spaces := testJobOf(t, 1+others)
	owner := spaces[0]
	for round := range rounds {
		mem := make([]byte, 64)
		var key Key
		r, err := owner.Publish(mem, &key)
		if err != nil {
			t.Fatal(err)
		}
		var users sync.WaitGroup
		begun := make(chan bool, 1)
		for i, s := range spaces {
			if i > round { // its pair is not claimed yet
				continue
			}
			users.Go(func() {
				a, f := s.Open(&key)
				if f != nil {
					return // it was too late
				}
				defer a.Close()
				src := buffer.Of(bytes.Repeat([]byte{byte(i + 1)}, 8))
				for f == nil {
					f = a.Put(src, Layout{Off: int64(8 * i), Type: dtype.Byte, Count: 8}, nil)
					select {
					case begun <- true:
					default:
					}
				}
				if f.Class != fault.Closed {
					t.Error(f.Class, f.Err)
				}
			})
		}
		<-begun
		if f := r.Retire("test"); f != nil {
			t.Fatal(f.Err)
		}
		was := bytes.Clone(mem)
		for range 20 {
			runtime.Gosched()
		}
		users.Wait()
		if !bytes.Equal(mem, was) {
			t.Fatalf("round %d: written after Retire", round)
		}
		if f := r.Retire("test"); f == nil || f.Class != fault.Closed {
			t.Fatal("retired twice")
		}
	}
	c := owner.marks.own.Load()
	if n := c.claimed(); n > 1+others {
		t.Errorf("%d pairs were claimed, of %d processes", n, 1+others)
	}
	for i := 1; i < c.claimed(); i++ {
		if w := c.pair(i); w[0].Load() != 0 || w[1].Load() != 0 {
			t.Errorf("pair %d is %x, %x, and nothing is open", i, w[0].Load(), w[1].Load())
		}
	}
}

// TestLeaveWaitsForAccessors: the end of a process waits for accesses under way
// to what it has published, and refuses later ones. What never ends it waits for
// as long as the job goes on.
func TestLeaveWaitsForAccessors(t *testing.T) {
	for _, late := range []bool{false, true} {
		spaces := testJobOf(t, 2)
		owner, s := spaces[0], spaces[1]
		var key Key
		mem := make([]byte, 8)
		if _, err := owner.Publish(mem, &key); err != nil {
			t.Fatal(err)
		}
		a, f := s.Open(&key)
		ok(t, f)
		defer a.Close()
		w, in := a.mark.enter(s, owner.self, a.t.ctl, a.generation)
		if !in {
			t.Fatal("refused")
		}
		job, end := context.WithCancel(context.Background())
		defer end()
		closed := make(chan error, 1)
		go func() { closed <- owner.e.Close(job) }()
		put := func() *fault.Fault {
			return a.Put(buffer.Of(make([]byte, 8)), Layout{Type: dtype.Byte, Count: 8}, nil)
		}
		for f = put(); f == nil; f = put() {
			runtime.Gosched() // it has not begun to close
		}
		if f.Class != fault.Closed {
			t.Errorf("access beside the end: %+v", f)
		}
		select {
		case <-closed:
			t.Fatal("closed while an access is under way")
		default:
		}
		if late {
			end()
		} else {
			a.mark.leave(s, owner.self, w)
		}
		<-closed
		if f = put(); f == nil || f.Class != fault.Closed {
			t.Errorf("access after the end: %+v", f)
		}
	}
}

// TestMarksOfTheDead: what a process counted in that has died is not waited for.
func TestMarksOfTheDead(t *testing.T) {
	spaces := testJobOf(t, 3)
	owner, dead := spaces[0], spaces[2]
	var key Key
	r, err := owner.Publish(make([]byte, 8), &key)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range spaces[1:] {
		a, f := s.Open(&key)
		if f != nil {
			t.Fatal(f.Err)
		}
		if _, ok := a.mark.enter(s, owner.self, a.t.ctl, a.generation); !ok {
			t.Fatal("refused")
		}
		if s != dead {
			defer a.mark.leave(s, owner.self, &a.mark.words[0])
		}
	}
	c := owner.marks.own.Load()
	if i := owner.unmarked(c, 0, 0, c.claimed()); i != 1 {
		t.Fatalf("pair %d is the first marked", i)
	}
	if i := owner.unmarked(c, 0, 2, c.claimed()); i != 2 {
		t.Fatalf("pair %d is marked by one that may live", i)
	}
	owner.e.Lock()
	owner.Down(dead.self, &fault.Fault{Class: fault.ProcFailed})
	owner.e.Unlock()
	if i := owner.unmarked(c, 0, 2, c.claimed()); i != 3 || c.pair(2)[0].Load() != 0 {
		t.Fatalf("pair %d is the first marked, that of the dead is %x", i, c.pair(2)[0].Load())
	}
	c.words[1].Store(1 << 60) // nobody's doing but an evil peer's
	if n := c.claimed(); n != markPairs {
		t.Errorf("%d pairs", n)
	}
	r.Close()
}

// A mark of a process that never was, or of none, is damage: Retire says so.
func TestMarkOfNobody(t *testing.T) {
	for _, serial := range []uint64{0, 4711} {
		owner := testJobOf(t, 2)[0]
		var key Key
		r, err := owner.Publish(make([]byte, 8), &key)
		if err != nil {
			t.Fatal(err)
		}
		c := owner.marks.own.Load()
		c.announce(7)
		c.pair(7)[0].Store(serial<<32 | 1)
		f := soon(t, "Retire", func() *fault.Fault { return r.Retire("test") })
		if f == nil || f.Class != fault.Unreachable {
			t.Errorf("serial %d: %+v", serial, f)
		}
	}
}

// What is kept of a process that has ended goes with the last accessor of what
// it had published.
func TestEndedAreForgotten(t *testing.T) {
	const others = 40
	spaces := testJobOf(t, 1+others)
	s := spaces[0]
	for i, owner := range spaces[1:] {
		var key Key
		if _, err := owner.Publish(make([]byte, 8), &key); err != nil {
			t.Fatal(err)
		}
		s.onlyServed = i%2 == 1
		a, f := s.Open(&key)
		ok(t, f)
		b, f := s.Open(&key)
		ok(t, f)
		src := buffer.Of(make([]byte, 8))
		ok(t, a.Put(src, Layout{Type: dtype.Byte, Count: 8}, nil))
		ok(t, b.Put(src, Layout{Type: dtype.Byte, Count: 8}, nil))
		a.Close()
		a.Close()
		s.e.ProcFailed(owner.self, "was killed")
		within(t, "the end", func() bool { return s.gone(owner.self) != nil })
		if f := b.Put(src, Layout{Type: dtype.Byte, Count: 8}, nil); f == nil || f.Class != fault.ProcFailed {
			t.Errorf("after the end: %+v", f)
		}
		b.Close()
	}
	s.e.Lock()
	defer s.e.Unlock()
	s.cache.Sweep()
	if n := len(*s.departed.Load()); n+len(s.peers)+len(s.marks.held)+s.cache.Len() > 0 {
		t.Errorf("kept of %d that have ended: %d ends, %d peers, %d marks, %d arenas", others, n, len(s.peers), len(s.marks.held), s.cache.Len())
	}
}

// A process in whose life more others have had something open than there are pairs
// is accessed by all of them without its help: they give their pairs back, at the
// end as well, and those of the killed are cleared.
func TestManyAccessors(t *testing.T) {
	const others = markPairs + 20
	spaces := testJobOf(t, 1+others)
	owner := spaces[0]
	var key Key
	mem := make([]byte, 8*(1+others))
	r, err := owner.Publish(mem, &key)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range spaces[1:] {
		a, f := s.Open(&key)
		ok(t, f)
		b, f := s.Open(&key)
		ok(t, f)
		a.Close()
		if b.mark == nil {
			t.Fatalf("process %d is served", 1+i)
		}
		ok(t, b.Put(buffer.Of([]byte{1, 2, 3, 4, 5, 6, 7, byte(i)}), Layout{Off: int64(8 * i), Type: dtype.Byte, Count: 8}, nil))
		switch i % 3 {
		case 0:
			b.Close()
		case 1:
			if _, in := b.mark.enter(s, owner.self, b.t.ctl, b.generation); !in {
				t.Fatal("refused")
			}
			owner.e.ProcFailed(s.self, "was killed")
			within(t, "the end", func() bool { return b.mark.words[0].Load() == 0 })
		case 2:
			b.Close()
			if err := s.e.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if mem[8*i+7] != byte(i) {
			t.Fatalf("%d was not written", i)
		}
	}
	if n := owner.marks.own.Load().claimed(); n != 2 {
		t.Errorf("%d pairs were claimed by processes that came one after the other", n)
	}
	ok(t, r.Retire("test"))
}
