// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
	"gompi/internal/engine"
	"gompi/internal/engine/match"
)

// What others write into a control block may be anything. Nobody panics, and
// whoever has a way out can take it.
func TestHostileLockWords(t *testing.T) {
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			const n = 4
			ps := testParties(t, n, way.isServed)
			head, words := ps[0].region.ctl.head, ps[0].region.ctl.words
			var stop atomic.Bool
			var hostile sync.WaitGroup
			hostile.Go(func() {
				r := rand.New(rand.NewPCG(1, 1))
				for !stop.Load() {
					w := r.Uint64()
					switch r.IntN(4) {
					case 0:
						w = uint64(lockHeld | lockExclusive | lockAsleep)
					case 1:
						w &= 0xff
					}
					words[r.IntN(len(words))].Store(w)
					head.ticket.Store(r.Uint64() >> r.IntN(64))
					head.asleep.Store(r.Uint32())
					<-time.After(time.Duration(r.IntN(300)) * time.Microsecond)
				}
			})
			all(t, ps, func(p *party) {
				for range 60 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
					if f := p.lock(0, p.rank%2 == 0, ctx); f == nil {
						p.targets[0].Unlock(n, n, p.rank) // an error, or not
					}
					p.targets[0].Signal(p.rank, 1)
					cancel()
				}
			})
			stop.Store(true)
			hostile.Wait()
			for i := range words {
				words[i].Store(0)
			}
			head.ticket.Store(0)
			for _, p := range ps {
				if f := p.lock(0, true, nil); f != nil {
					t.Fatalf("afterwards: %v", f.Err)
				}
				p.unlock(t, 0)
			}
		})
	}
}

// A ticket that cannot be is refused, and leaves nothing behind.
func TestHostileTicket(t *testing.T) {
	for _, way := range servings {
		ps := testParties(t, 2, way.isServed)
		c := ps[1].region.ctl
		c.head.ticket.Store(maxTicket - 1)
		for i, want := range []bool{true, false, false} {
			if f := ps[0].lock(1, true, nil); (f == nil) != want {
				t.Fatalf("%s: lock %d: %+v", way.name, i, f)
			} else if f == nil {
				ps[0].unlock(t, 1)
			}
			within(t, "leaving", ps[1].idle)
		}
	}
}

// A party whose word another has changed is told, and gets on.
func TestLostLockWord(t *testing.T) {
	ps := testParties(t, 2, never)
	if f := ps[0].lock(1, true, nil); f != nil {
		t.Fatal(f.Err)
	}
	ps[1].region.ctl.words[2].Store(77)
	if f := ps[0].targets[1].Unlock(2, 2, 0); f == nil || f.Class != fault.Unreachable {
		t.Fatalf("fault %+v", f)
	}
	if f := ps[0].lock(1, true, nil); f != nil {
		t.Fatal(f.Err)
	}
}

// Somebody who waits for a guard that nobody has does so until the end of the
// process, and no longer.
func TestHostileGuard(t *testing.T) {
	ps := testParties(t, 2, never)
	c := ps[1].region.ctl
	c.head.guard.Store(99)
	got := make(chan struct{})
	go func() {
		ps[0].Space.lock(c)
		close(got)
	}()
	select {
	case <-got:
		t.Fatal("taken")
	case <-time.After(20 * time.Millisecond):
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	ps[0].e.Close(ended)
	select {
	case <-got:
	case <-time.After(testWait):
		t.Fatal("still waits")
	}
}

// The serial of a process that never was, in a guard or a visit: whoever would
// wait for it gets an error, and goes on when it is gone.
func TestGuardOfNobody(t *testing.T) {
	eachAccess(t, 64, func(a access) {
		head, s := a.region.ctl.head, a.target.s
		number := basicOf(dtype.Complex128)
		src, was := strided(make([]byte, 16), 0, 1, number), strided(make([]byte, 16), 0, 1, number)
		flushed := func(f *fault.Fault) *fault.Fault {
			if f == nil {
				f = a.target.Flush(nil)
			}
			return f
		}
		ops := map[string]func() *fault.Fault{
			"Accumulate":     func() *fault.Fault { return flushed(a.target.Accumulate(src, Layout{0, number, 1}, kernel.Sum)) },
			"CompareAndSwap": func() *fault.Fault { return flushed(a.target.CompareAndSwap(src, src, was, 0)) },
		}
		for name, op := range ops {
			for _, visit := range []bool{false, true} {
				if visit {
					head.visits[3].who.Store(4711)
					head.visited.Store(1 << 3)
				} else {
					head.guard.Store(4711)
				}
				f := soon(t, name, op)
				if f == nil || f.Class != fault.Unreachable || !errors.Is(f.Err, fault.Unreachable) {
					t.Errorf("%s, %s, visit %v: %+v", a.name, name, visit, f)
				}
				if visit {
					head.visits[3].who.Store(0)
				} else {
					head.guard.Store(0)
				}
				ok(t, soon(t, name, op))
			}
		}
		s.e.Lock()
		defer s.e.Unlock()
		if len(s.queried) > 0 || len(s.peers) > 1 || s.gone(wire.ProcID{Job: testJob, Serial: 4711}) != nil {
			t.Errorf("%s: kept of one that never was: %v, %d peers", a.name, s.queried, len(s.peers))
		}
	})
}

// A visitor of one number meets the guard of one that never was.
func TestFetchUnderTheGuardOfNobody(t *testing.T) {
	ss := testJobOf(t, 2)
	r, err := ss[1].Allocate(64, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := r.Desc()
	target, f := ss[0].Reach(ss[1].self, &d)
	ok(t, f)
	r.ctl.head.guard.Store(4711)
	one := make([]byte, 8)
	did, f := target.Combine(0, dtype.Int64, kernel.Sum, one, nil)
	if !did || f == nil || f.Class != fault.Unreachable {
		t.Errorf("Combine: %v, %+v", did, f)
	}
	if target.FetchOp(0, dtype.Int64, kernel.NoOp, nil, nil) {
		t.Error("fetched")
	}
}

// FuzzSyncFrame gives frames of synchronisation to a process that waits in a
// lock of another and has one waiting in its own.
func FuzzSyncFrame(f *testing.F) {
	f.Add(byte(frameSignal), []byte{8: 1, 31: 0})
	f.Add(byte(frameLock), []byte{1: 4, 16: 2, 20: 2, 39: 0})
	f.Add(byte(frameUnlock), []byte{8: 1, 15: 0})
	f.Add(byte(frameAnswer), []byte{1: 1, 8: 1, 15: 0})
	ps := testParties(f, 2, always)
	p := ps[0]
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		if len(b) == 0 || kind < frameSignal || kind > frameAnswer+1 {
			return
		}
		b[0] = kind
		if (kind == frameSignal || kind == frameLock) && len(b) > 16 && b[4]&1 == 0 {
			copy(b[4:8], []byte{byte(p.region.handle), byte(p.region.handle >> 8), 0, 0})
			for i := range 8 {
				b[8+i] = byte(p.region.nonce >> (8 * i))
			}
		}
		p.e.Lock()
		p.frameSync(ps[1].self, kind, b)
		p.stepLine()
		n := len(p.locks.proxies)
		p.e.Unlock()
		if n > len(p.region.ctl.words) {
			t.Fatalf("%d places in the line for %d words", n, len(p.region.ctl.words))
		}
	})
}

// Many fall asleep and are woken, by signals and locks at once.
func TestSleepStorm(t *testing.T) {
	rounds := uint64(60)
	if testing.Short() {
		rounds = 10
	}
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			const n = 5
			ps := testParties(t, n, way.isServed)
			all(t, ps, func(p *party) {
				r := rand.New(rand.NewPCG(uint64(p.rank), 3))
				w := engine.Await{Op: "test", Ctx: p.ctx, Rank: match.Any}
				for round := uint64(1); round <= rounds; round++ {
					if f := p.lock(0, r.IntN(2) == 0, nil); f != nil {
						t.Error(f.Err)
						return
					}
					if r.IntN(3) == 0 {
						<-time.After(time.Duration(r.IntN(1500)) * time.Microsecond)
					}
					p.unlock(t, 0)
					for _, q := range p.targets {
						if r.IntN(8) == 0 {
							<-time.After(time.Duration(r.IntN(500)) * time.Microsecond)
						}
						if f := q.Signal(p.rank, round); f != nil {
							t.Error(f.Err)
							return
						}
					}
					w.Asleep = p.region.Asleep
					w.Ready = func() (bool, *fault.Fault) {
						for i := range n {
							if p.region.Word(i) < round {
								return false, nil
							}
						}
						return true, nil
					}
					if f := p.region.s.e.Await(&w); f != nil {
						t.Error(f.Err)
						return
					}
				}
			})
		})
	}
}
