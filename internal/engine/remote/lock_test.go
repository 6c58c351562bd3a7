// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
	"gompi/internal/engine/match"
)

// testWait bounds everything that must happen soon.
const testWait = 30 * time.Second

// party is a rank of a test: it has a region whose words are signals by rank,
// then lock words by rank, and targets of those of all ranks.
type party struct {
	*Space
	rank    int
	ctx     *engine.Context
	region  *Region
	targets []*Target
	await   engine.Await
}

// testParties starts n ranks. isServed says whether what one does at another
// goes by frames.
func testParties(t testing.TB, n int, isServed func(from, to int) bool) []*party {
	t.Helper()
	spaces := testJobOf(t, n)
	members := wire.NewMembers(wire.Range{First: wire.ProcID{Job: testJob, Serial: 1}, Count: n})
	ps := make([]*party, n)
	for i, s := range spaces {
		ctx, err := s.e.NewContext(wire.ContextID{Creator: wire.ProcID{Job: testJob}, Serial: 1}, members, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Allocate(64, 2*n)
		if err != nil {
			t.Fatal(err)
		}
		r.SetMembers(members)
		ps[i] = &party{Space: s, rank: i, ctx: ctx, region: r}
		ps[i].await = engine.Await{Op: "test", Ctx: ctx}
	}
	for i, p := range ps {
		for j, q := range ps {
			p.onlyServed = isServed(i, j)
			d := q.region.Desc()
			target, f := p.Reach(q.self, &d)
			if f != nil {
				t.Fatal(f.Err)
			}
			p.targets = append(p.targets, target)
		}
	}
	return ps
}

func never(int, int) bool     { return false }
func always(i, j int) bool    { return i != j }
func sometimes(i, j int) bool { return (i+j)%2 == 1 }

var servings = []struct {
	name     string
	isServed func(from, to int) bool
}{{"mapped", never}, {"served", always}, {"mixed", sometimes}}

func (p *party) lock(rank int, exclusive bool, user context.Context) *fault.Fault {
	w := engine.Await{Op: "Lock", Ctx: p.ctx, Rank: int32(rank), User: user}
	n := len(p.targets)
	return p.targets[rank].Lock(n, n, p.rank, exclusive, &w)
}

func (p *party) unlock(t testing.TB, rank int) {
	n := len(p.targets)
	if f := p.targets[rank].Unlock(n, n, p.rank); f != nil {
		t.Errorf("rank %d unlocks %d: %v", p.rank, rank, f.Err)
	}
}

// waits reports whether rank i is in the line for the lock of this rank.
func (p *party) waits(i int) bool {
	return lockWord(p.region.Word(len(p.targets)+i)).phase() == lockWaiting
}

func within(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(testWait); !cond(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %v", what, testWait)
		}
	}
}

// all runs f for every rank and waits.
func all(t testing.TB, ps []*party, f func(p *party)) {
	t.Helper()
	var wg sync.WaitGroup
	for _, p := range ps {
		wg.Go(func() { f(p) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testWait):
		for i, p := range ps {
			for j := range ps {
				t.Logf("rank %d: word of %d: %#x", i, j, p.region.Word(len(ps)+j))
			}
		}
		buf := make([]byte, 1<<20)
		t.Fatalf("hangs\n%s", buf[:runtime.Stack(buf, true)])
	}
}

func TestLockExcludes(t *testing.T) {
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			const n, rounds = 6, 300
			ps := testParties(t, n, way.isServed)
			var readers, writers [n]atomic.Int32
			var count [n]int
			all(t, ps, func(p *party) {
				seed := uint64(p.rank + 1)
				for range rounds {
					seed = seed*6364136223846793005 + 1442695040888963407
					at, alone := int(seed>>33)%n, seed>>50&3 != 0
					if f := p.lock(at, alone, nil); f != nil {
						t.Errorf("rank %d locks %d: %v", p.rank, at, f.Err)
						return
					}
					if alone {
						if w, r := writers[at].Add(1), readers[at].Load(); w != 1 || r != 0 {
							t.Errorf("%d writers, %d readers", w, r)
						}
						count[at]++
						if seed>>60 == 0 {
							runtime.Gosched()
						}
						writers[at].Add(-1)
					} else {
						readers[at].Add(1)
						if w := writers[at].Load(); w != 0 {
							t.Errorf("%d writers beside a reader", w)
						}
						runtime.Gosched()
						readers[at].Add(-1)
					}
					p.unlock(t, at)
				}
			})
			for _, p := range ps {
				within(t, "unlocking", func() bool { return p.idle() })
			}
		})
	}
}

// idle reports whether the lock of this rank is free and nothing is left of
// those who had it.
func (p *party) idle() bool {
	p.e.Lock()
	defer p.e.Unlock()
	for i := range p.targets {
		if p.region.Word(len(p.targets)+i) != 0 {
			return false
		}
	}
	return len(p.locks.asked)+len(p.locks.proxies)+len(p.locks.line) == 0
}

func TestLockIsFirstComeFirstServed(t *testing.T) {
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			const n = 7
			ps := testParties(t, n, way.isServed)
			if f := ps[0].lock(0, true, nil); f != nil {
				t.Fatal(f.Err)
			}
			// Ranks 3 and 4 share: they may come in either order.
			kinds := []bool{false, true, true, false, false, true, true}
			var mu sync.Mutex
			var got []int
			var wg sync.WaitGroup
			for i := 1; i < n; i++ {
				wg.Go(func() {
					if f := ps[i].lock(0, kinds[i], nil); f != nil {
						t.Error(f.Err)
						return
					}
					mu.Lock()
					got = append(got, i)
					mu.Unlock()
					ps[i].unlock(t, 0)
				})
				within(t, "standing in line", func() bool { return ps[0].waits(i) })
			}
			ps[0].unlock(t, 0)
			wg.Wait()
			for k, i := range got {
				if i != k+1 && i+k+1 != 7 {
					t.Fatalf("order %v", got)
				}
			}
		})
	}
}

func TestLockIsWithdrawn(t *testing.T) {
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			ps := testParties(t, 4, way.isServed)
			if f := ps[0].lock(0, true, nil); f != nil {
				t.Fatal(f.Err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			faults := make(chan *fault.Fault)
			go func() { faults <- ps[1].lock(0, true, ctx) }()
			within(t, "waiting", func() bool { return ps[0].waits(1) })
			go func() { faults <- ps[2].lock(0, false, nil) }()
			within(t, "waiting", func() bool { return ps[0].waits(2) })
			cancel()
			if f := <-faults; f == nil || f.Class != fault.Cancelled {
				t.Fatalf("withdrawn: %+v", f)
			}
			within(t, "the word to go", func() bool { return ps[0].region.Word(4+1) == 0 })
			ps[0].unlock(t, 0)
			if f := <-faults; f != nil {
				t.Fatal(f.Err)
			}
			ps[2].unlock(t, 0)
			if f := ps[1].lock(0, true, nil); f != nil {
				t.Fatal(f.Err)
			}
			ps[1].unlock(t, 0)
		})
	}
}

// die makes a rank dead for all others.
func die(ps []*party, rank int) {
	for i, p := range ps {
		if i != rank {
			p.e.ProcFailed(ps[rank].self, "was killed")
		}
	}
}

func TestLockOfADeadHolder(t *testing.T) {
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			ps := testParties(t, 6, way.isServed)
			// Rank 5 stands in line and dies; rank 4 holds the lock and dies.
			if f := ps[4].lock(0, true, nil); f != nil {
				t.Fatal(f.Err)
			}
			faults := make(chan *fault.Fault, 4)
			go ps[5].lock(0, true, nil)
			within(t, "waiting", func() bool { return ps[0].waits(5) })
			for i := range 4 {
				go func() { faults <- ps[i].lock(0, i%2 == 0, nil) }()
				within(t, "waiting", func() bool { return ps[0].waits(i) })
			}
			die(ps, 5)
			die(ps, 4)
			for range 4 {
				f := <-faults
				if f == nil || f.Class != fault.ProcFailed || f.Peer != 4 {
					t.Fatalf("fault %+v", f)
				}
			}
			for i := range 4 {
				within(t, "the word to go", func() bool { return ps[0].region.Word(6+i) == 0 })
				if f := ps[i].lock(0, true, nil); f == nil || f.Class != fault.ProcFailed || f.Peer != 4 {
					t.Fatalf("later: %+v", f)
				}
				if f := ps[i].lock(1, true, nil); f != nil {
					t.Fatalf("another lock: %+v", f)
				}
				ps[i].unlock(t, 1)
			}
		})
	}
}

func TestLockPassesOverDeadWaiters(t *testing.T) {
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			ps := testParties(t, 5, way.isServed)
			if f := ps[0].lock(1, true, nil); f != nil {
				t.Fatal(f.Err)
			}
			// Rank 2 gets in line, and never does anything again.
			if c := ps[2].targets[1].ctl; c == nil {
				go ps[2].lock(1, true, nil)
			} else if err := (&attempt{ticket: &c.head.ticket, words: c.words[5:], me: 2}).begin(lockExclusive); err != nil {
				t.Fatal(err)
			}
			within(t, "waiting", func() bool { return ps[1].waits(2) })
			faults := make(chan *fault.Fault, 2)
			for i := 3; i < 5; i++ {
				go func() {
					f := ps[i].lock(1, true, nil)
					if f == nil {
						ps[i].unlock(t, 1)
					}
					faults <- f
				}()
				within(t, "waiting", func() bool { return ps[1].waits(i) })
			}
			die(ps, 2)
			ps[0].unlock(t, 1)
			for range 2 {
				if f := <-faults; f != nil {
					t.Fatalf("fault %+v", f)
				}
			}
		})
	}
}

func TestLockOfADeadOwner(t *testing.T) {
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			ps := testParties(t, 3, way.isServed)
			if f := ps[1].lock(2, true, nil); f != nil {
				t.Fatal(f.Err)
			}
			faults := make(chan *fault.Fault, 1)
			go func() { faults <- ps[0].lock(2, true, nil) }()
			within(t, "waiting", func() bool { return ps[2].waits(0) })
			die(ps, 2)
			if f := <-faults; f == nil || f.Class != fault.ProcFailed {
				t.Fatalf("fault %+v", f)
			}
			if f := ps[0].lock(2, false, nil); f == nil || f.Class != fault.ProcFailed {
				t.Fatalf("afterwards: %+v", f)
			}
		})
	}
}

func TestLockMisuse(t *testing.T) {
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			ps := testParties(t, 2, way.isServed)
			p := ps[0]
			for at := range 2 {
				if f := p.targets[at].Unlock(2, 2, 0); f == nil || f.Class != fault.InUse {
					t.Fatalf("unlock of what is not locked: %+v", f)
				}
				if f := p.lock(at, false, nil); f != nil {
					t.Fatal(f.Err)
				}
				if f := p.lock(at, false, nil); f == nil || f.Class != fault.InUse {
					t.Fatalf("locked twice: %+v", f)
				}
				p.unlock(t, at)
				if f := p.targets[at].Unlock(2, 2, 0); f == nil || f.Class != fault.InUse {
					t.Fatalf("unlocked twice: %+v", f)
				}
				for _, bad := range [][3]int{{-1, 2, 0}, {2, 2, 2}, {2, 2, -1}, {2, 0, 0}, {2, 1, 0}} {
					w := engine.Await{Ctx: p.ctx}
					if f := p.targets[at].Lock(bad[0], bad[1], bad[2], true, &w); f == nil {
						t.Fatalf("lock of %v", bad)
					}
				}
			}
			w := engine.Await{Ctx: p.ctx}
			if f := p.targets[0].Lock(3, 2, 0, true, &w); f == nil {
				t.Fatal("lock of words that are not there")
			}
		})
	}
}

func TestLockOfARegionThatIsClosed(t *testing.T) {
	ps := testParties(t, 3, always)
	if f := ps[1].lock(0, true, nil); f != nil {
		t.Fatal(f.Err)
	}
	faults := make(chan *fault.Fault, 1)
	go func() { faults <- ps[2].lock(0, true, nil) }()
	within(t, "waiting", func() bool { return ps[0].waits(2) })
	ps[0].region.Close()
	if f := <-faults; f == nil || !errors.Is(f.Err, fault.Closed) {
		t.Fatalf("fault %+v", f)
	}
	ps[1].unlock(t, 0)
	if f := ps[1].lock(0, true, nil); f == nil || !errors.Is(f.Err, fault.Closed) {
		t.Fatalf("fault %+v", f)
	}
}

func TestSignalsArrive(t *testing.T) {
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			const n, rounds = 5, 200
			ps := testParties(t, n, way.isServed)
			all(t, ps, func(p *party) {
				for round := uint64(1); round <= rounds; round++ {
					for _, q := range p.targets {
						if f := q.Signal(p.rank, round); f != nil {
							t.Error(f.Err)
						}
					}
					p.await.Rank = match.Any
					p.await.Asleep = p.region.Asleep
					p.await.Ready = func() (bool, *fault.Fault) {
						for i := range n {
							if p.region.Word(i) < round {
								return false, nil
							}
						}
						return true, nil
					}
					if f := p.region.s.e.Await(&p.await); f != nil {
						t.Error(f.Err)
					}
				}
			})
		})
	}
}

func TestSignalOfNoWord(t *testing.T) {
	ps := testParties(t, 2, never)
	for _, word := range []int{-1, 4, 1 << 40} {
		if f := ps[0].targets[1].Signal(word, 1); f == nil {
			t.Errorf("word %d", word)
		}
	}
}

// Several wait for different words of one region, and fall asleep between.
func TestSignalsForSeveralWhoWait(t *testing.T) {
	for _, way := range servings {
		t.Run(way.name, func(t *testing.T) {
			const rounds = 60
			ps := testParties(t, 2, way.isServed)
			var wg sync.WaitGroup
			for word := range 4 {
				wg.Go(func() {
					w := engine.Await{Op: "test", Ctx: ps[0].ctx, Rank: 1, Asleep: ps[0].region.Asleep}
					for round := uint64(1); round <= rounds; round++ {
						w.Ready = func() (bool, *fault.Fault) { return ps[0].region.Word(word) >= round, nil }
						ps[0].region.s.e.Await(&w)
					}
				})
			}
			seed := uint64(1)
			for round := uint64(1); round <= rounds; round++ {
				for word := range 4 {
					seed = seed*6364136223846793005 + 1442695040888963407
					if seed>>62 == 0 {
						<-time.After(time.Duration(seed >> 40 % 2000000))
					}
					ps[1].targets[0].Signal(int((round+uint64(word))%4), round)
				}
			}
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(testWait):
				t.Fatal(fmt.Sprint("hangs: ", ps[0].region.Word(0), ps[0].region.Word(1), ps[0].region.Word(2), ps[0].region.Word(3)))
			}
		})
	}
}

func TestSyncAllocatesNothing(t *testing.T) {
	for _, way := range servings[:2] {
		ps := testParties(t, 2, way.isServed)
		p := ps[0]
		w := engine.Await{Op: "Lock", Ctx: p.ctx, Rank: 1}
		if n := testing.AllocsPerRun(100, func() {
			p.targets[1].Lock(2, 2, 0, true, &w)
			p.targets[1].Unlock(2, 2, 0)
			p.targets[1].Signal(0, 1)
		}); n != 0 {
			t.Errorf("%s: %v allocations", way.name, n)
		}
	}
}

func BenchmarkLock(b *testing.B) {
	for _, n := range []int{2, 8, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ps := testParties(b, n, never)
			p := ps[0]
			w := engine.Await{Op: "Lock", Ctx: p.ctx, Rank: 1}
			b.ReportAllocs()
			for b.Loop() {
				p.targets[1].Lock(n, n, 0, true, &w)
				p.targets[1].Unlock(n, n, 0)
			}
		})
	}
}

func BenchmarkSignal(b *testing.B) {
	ps := testParties(b, 2, never)
	for b.Loop() {
		ps[0].targets[1].Signal(0, 1)
	}
}
