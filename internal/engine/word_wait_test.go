// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/engine/match"
	"gompi/internal/host/wait"
)

// spot is a word that one process waits for and others write.
type spot struct {
	n      *node // who waits
	word   atomic.Uint64
	asleep atomic.Uint32
	sleeps atomic.Int64
	want   uint64
	await  Await
}

func newSpot(n *node) *spot {
	s := &spot{n: n}
	s.await = Await{Op: "Await", Ctx: n.ctx, Rank: match.Any,
		Ready: func() (bool, *fault.Fault) { return s.word.Load() >= s.want, nil },
		Asleep: func(asleep bool) {
			if asleep {
				s.sleeps.Add(1)
				s.asleep.Swap(1)
			} else {
				s.asleep.Store(0)
			}
		}}
	return s
}

// wait waits until the word is at least v.
func (s *spot) wait(v uint64) *fault.Fault {
	s.n.Lock()
	s.want = v
	s.n.Unlock()
	return s.n.Await(&s.await)
}

// set writes the word on behalf of a process.
func (s *spot) set(from *node, v uint64) {
	s.word.Store(v)
	if s.asleep.Load() != 0 && s.asleep.Swap(0) != 0 {
		from.Lock()
		from.WakeProcess(s.n.Self())
		from.Unlock()
	}
}

// add is set of one more.
func (s *spot) add(from *node) {
	s.word.Add(1)
	if s.asleep.Swap(0) != 0 {
		from.Lock()
		from.WakeProcess(s.n.Self())
		from.Unlock()
	}
}

// Tokens go round among processes and goroutines, with and without pauses that
// make everybody sleep. No wake-up is lost.
func TestAwaitStorm(t *testing.T) {
	overPolicies(t, func(t *testing.T, pol wait.Policy) {
		const procs, lanes, rounds = 3, 4, 150
		ns, _ := testJobOf(t, procs, nil, func(_ int, c *Config) { c.Policy = pol })
		var spots [lanes][procs]*spot
		for l := range spots {
			for p := range ns {
				spots[l][p] = newSpot(ns[p])
			}
		}
		together(t, ns, lanes*procs, func(g int) error {
			l, p := g/procs, g%procs
			n, mine, next := ns[p], spots[l][p], spots[l][(p+1)%procs]
			rnd := rand.New(rand.NewPCG(uint64(g), 3))
			for k := uint64(1); k <= rounds; k++ {
				if p == 0 {
					next.set(n, k)
				}
				if f := mine.wait(k); f != nil {
					return fmt.Errorf("round %d: %+v", k, f)
				}
				if p != 0 {
					next.set(n, k)
				}
				switch rnd.IntN(8) {
				case 0:
					yield()
				case 1: // messages beside it
					n.Free(n.isend(int(rnd.Uint32()%procs), 7, nil, Standard))
					n.iprobe()
				}
			}
			return nil
		})
		for _, n := range ns {
			n.Lock()
			if len(n.prog.Hooks()) != 0 {
				t.Errorf("%d hooks are left", len(n.prog.Hooks()))
			}
			n.Unlock()
		}
	})
}

// Waits that are given up at any moment, among others that are not, and deaths
// in between.
func TestAwaitCancelStorm(t *testing.T) {
	overPolicies(t, func(t *testing.T, pol wait.Policy) {
		ns, hub := testJobOf(t, 3, nil, func(_ int, c *Config) { c.Policy = pol })
		steady, back := newSpot(ns[0]), newSpot(ns[1])
		steady.await.Rank, back.await.Rank = 1, 0
		const rounds = 200
		var over atomic.Bool
		together(t, ns, 6, func(g int) error {
			rnd := rand.New(rand.NewPCG(uint64(g), 11))
			switch g {
			case 0, 1: // a ping-pong that nothing may disturb
				mine, other := steady, back
				if g == 1 {
					mine, other = back, steady
				}
				defer over.Store(true)
				for k := uint64(1); k <= rounds; k++ {
					if g == 0 {
						other.set(ns[g], k)
					}
					if f := mine.wait(k); f != nil {
						return fmt.Errorf("round %d: %+v", k, f)
					}
					if g == 1 {
						other.set(ns[g], k)
						if k == rounds/2 {
							kill(t, ns, hub, 2)
						}
					}
				}
				return nil
			}
			s := newSpot(ns[g%2])
			for k := uint64(1); !over.Load(); k++ {
				ctx, cancel := context.WithCancel(context.Background())
				s.await.User, s.await.Rank = ctx, []int32{match.Any, int32(1 - g%2)}[rnd.IntN(2)]
				switch d := rnd.IntN(200); {
				case d < 20:
					cancel()
				case d < 40:
					s.add(ns[1-g%2])
				default:
					timer := time.AfterFunc(time.Duration(d)*time.Microsecond, cancel)
					defer timer.Stop()
				}
				f := s.wait(k)
				cancel()
				if c := f.Code(); c != fault.OK && c != fault.Cancelled && !(c == fault.ProcFailed && s.await.Rank == match.Any) {
					return fmt.Errorf("class %d: %v", c, f.Err)
				}
				s.word.Store(k)
			}
			return nil
		})
		for _, n := range ns[:2] {
			n.Lock()
			left := len(n.prog.Hooks())
			n.Unlock()
			if left != 0 || n.Live() != 0 {
				t.Errorf("%d hooks are left, %d requests", left, n.Live())
			}
		}
	})
}

// A process whose goroutines all wait sleeps, and looks once more before.
func TestAwaitSleeps(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	s := newSpot(ns[0])
	for _, who := range []int{1, 0} { // from another process, and from its own
		for k := range uint64(20) {
			v := s.word.Load() + 1
			got := make(chan *fault.Fault, 1)
			go func() { got <- s.wait(v) }()
			if k%2 == 0 {
				ns[0].asleep(t)
				if s.asleep.Load() == 0 {
					t.Fatal("sleeps without having said so")
				}
			}
			s.set(ns[who], v)
			if f := soon(t, "Await", func() *fault.Fault { return <-got }); f != nil {
				t.Fatal(f)
			}
			if s.asleep.Load() != 0 || s.await.told {
				t.Fatal("does not sleep any more, and has not said so")
			}
		}
	}
	if s.sleeps.Load() < 20 {
		t.Fatalf("dozed %d times", s.sleeps.Load())
	}
}

// A wait for others that have to be started sleeps at once where many share a
// processor, whatever yields are allowed.
func TestAwaitSlow(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, func(_ int, c *Config) { c.Policy = wait.Policy{Yield: 1 << 30, PerCPU: 56} })
	s := newSpot(ns[0])
	s.await.Slow = true
	got := make(chan *fault.Fault, 1)
	go func() { got <- s.wait(1) }()
	ns[0].asleep(t)
	s.set(ns[0], 1)
	if f := soon(t, "Await", func() *fault.Fault { return <-got }); f != nil {
		t.Fatal(f)
	}
}

// What ends a wait, whether it has just begun or sleeps.
func TestAwaitFaults(t *testing.T) {
	one := func(rank int32, _ bool) bool { return rank == 1 }
	for _, c := range []struct {
		name  string
		rank  int32
		needs func(rank int32, failed bool) bool
		end   func(t *testing.T, ns []*node, hub interface{ Kill(wire.ProcID) }, cancel func())
		want  fault.Class // OK: it goes on
	}{
		{"death of any", match.Any, nil, func(t *testing.T, ns []*node, hub interface{ Kill(wire.ProcID) }, _ func()) { kill(t, ns, hub, 2) }, fault.ProcFailed},
		{"death of that rank", 2, nil, func(t *testing.T, ns []*node, hub interface{ Kill(wire.ProcID) }, _ func()) { kill(t, ns, hub, 2) }, fault.ProcFailed},
		{"death of another rank", 1, nil, func(t *testing.T, ns []*node, hub interface{ Kill(wire.ProcID) }, _ func()) { kill(t, ns, hub, 2) }, fault.OK},
		{"that rank left", 2, nil, func(_ *testing.T, ns []*node, _ interface{ Kill(wire.ProcID) }, _ func()) {
			ns[0].ProcGone(proc(3), "")
		}, fault.Left},
		{"a rank left", match.Any, nil, func(_ *testing.T, ns []*node, _ interface{ Kill(wire.ProcID) }, _ func()) {
			ns[0].ProcGone(proc(3), "left")
		}, fault.OK},
		{"death of a needed rank", 2, one, func(t *testing.T, ns []*node, hub interface{ Kill(wire.ProcID) }, _ func()) { kill(t, ns, hub, 1) }, fault.ProcFailed},
		{"death of a rank that is not needed", match.Any, one, func(t *testing.T, ns []*node, hub interface{ Kill(wire.ProcID) }, _ func()) { kill(t, ns, hub, 2) }, fault.OK},
		{"a needed rank left", match.Any, one, func(_ *testing.T, ns []*node, _ interface{ Kill(wire.ProcID) }, _ func()) {
			ns[0].ProcGone(proc(2), "")
		}, fault.Left},
		{"revoked", match.Any, nil, func(_ *testing.T, ns []*node, _ interface{ Kill(wire.ProcID) }, _ func()) { ns[1].Revoke(ns[1].ctx) }, fault.Revoked},
		{"freed", match.Any, nil, func(_ *testing.T, ns []*node, _ interface{ Kill(wire.ProcID) }, _ func()) {
			ns[0].FreeContext(ns[0].ctx)
		}, fault.Comm},
		{"cancelled", match.Any, nil, func(_ *testing.T, _ []*node, _ interface{ Kill(wire.ProcID) }, cancel func()) { cancel() }, fault.Cancelled},
		{"closed", match.Any, nil, func(t *testing.T, ns []*node, _ interface{ Kill(wire.ProcID) }, _ func()) {
			if err := ns[0].Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}, fault.Finalized},
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/early %v", c.name, early), func(t *testing.T) {
				ns, hub := testJobOf(t, 3, nil, nil)
				if c.name == "revoked" { // the news has to come first
					if f := ns[0].send(1, 1, nil); f != nil {
						t.Fatal(f)
					}
				}
				s := newSpot(ns[0])
				user, cancel := context.WithCancel(context.Background())
				s.await.User, s.await.Rank, s.await.Needs = user, c.rank, c.needs
				got := make(chan *fault.Fault, 1)
				if early {
					c.end(t, ns, hub, cancel)
				}
				go func() { got <- s.wait(1) }()
				if !early {
					ns[0].asleep(t)
					c.end(t, ns, hub, cancel)
				}
				if c.want == fault.OK {
					ns[0].asleep(t)
					s.set(ns[1], 1)
				}
				f := soon(t, "Await", func() *fault.Fault { return <-got })
				wantClass(t, "Await", f, c.want)
				cancel()
				if f := s.wait(0); f != nil {
					t.Fatalf("what is ready is not: %+v", f)
				}
				if n := ns[0].Live(); n != 0 {
					t.Errorf("%d requests are left", n)
				}
			})
		}
	}
}

// Waits without a communicator end with the process only.
func TestAwaitAlone(t *testing.T) {
	ns, _ := testJobOf(t, 1, nil, nil)
	n := ns[0]
	s := newSpot(n)
	s.await.Ctx = nil
	s.set(n, 3)
	if f := s.wait(3); f != nil {
		t.Fatal(f)
	}
	got := make(chan *fault.Fault, 1)
	go func() { got <- s.wait(4) }()
	n.asleep(t)
	n.FreeContext(n.ctx)
	ended := make(chan *fault.Fault, 1)
	other := newSpot(n)
	other.await.Ctx = nil
	go func() { ended <- other.wait(1) }()
	s.set(n, 4)
	if f := soon(t, "Await", func() *fault.Fault { return <-got }); f != nil {
		t.Fatal(f)
	}
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	wantClass(t, "Await", soon(t, "Await", func() *fault.Fault { return <-ended }), fault.Finalized)
}

// A long wait stands in the registry, with its caller.
func TestAwaitRollCall(t *testing.T) {
	mem := make([]byte, callreg.Bytes)
	book, err := callreg.Open(mem)
	if err != nil {
		t.Fatal(err)
	}
	ns, _ := testJobOf(t, 2, nil, func(i int, c *Config) {
		if i == 0 {
			c.Book = book
		}
	})
	for _, rank := range []int32{1, match.Any} {
		s := newSpot(ns[0])
		s.await.Rank = rank
		got := make(chan *fault.Fault, 1)
		go func() { got <- s.wait(1) }()
		ns[0].asleep(t)
		list := callreg.Read(mem)
		if len(list) != 1 {
			t.Fatalf("%d entries", len(list))
		}
		want := callreg.NoPeer
		if rank >= 0 {
			want = int(rank)
		}
		if e := list[0]; e.Op != "Await" || e.Peer != want || e.Tag != callreg.NoTag || e.CommSize != 2 {
			t.Errorf("entry %+v", e)
		}
		s.set(ns[1], 1)
		if f := <-got; f != nil {
			t.Fatal(f)
		}
		if list := callreg.Read(mem); len(list) != 0 {
			t.Errorf("%d entries afterwards", len(list))
		}
	}
}

// A Hook is looked at while nobody waits, and while the process sleeps.
func TestHook(t *testing.T) {
	ns, _ := testJobOf(t, 2, nil, nil)
	n := ns[0]
	s := newSpot(n)
	var looks atomic.Int64
	done := make(chan struct{})
	w := &Hook{Asleep: s.await.Asleep, Ready: func() bool {
		looks.Add(1)
		if s.word.Load() == 0 {
			return false
		}
		close(done)
		return true
	}}
	n.Lock()
	n.AddHook(w)
	n.Unlock()
	within(t, "sleep", func() bool { n.Lock(); defer n.Unlock(); return n.prog.Armed() && s.asleep.Load() != 0 })
	// Another one comes while the process sleeps, and is over already.
	over := make(chan struct{})
	n.Lock()
	n.AddHook(&Hook{Ready: func() bool { close(over); return true }})
	n.Unlock()
	soon(t, "the second", func() bool { <-over; return true })
	within(t, "sleep", func() bool { n.Lock(); defer n.Unlock(); return n.prog.Armed() && s.asleep.Load() != 0 })
	s.set(ns[1], 1)
	soon(t, "the first", func() bool { <-done; return true })
	n.Lock()
	if len(n.prog.Hooks()) != 0 || s.asleep.Load() != 0 {
		t.Errorf("%d hooks are left, asleep %d", len(n.prog.Hooks()), s.asleep.Load())
	}
	// One that is never over does not outlive the process.
	n.AddHook(&Hook{Ready: func() bool { return false }})
	n.Unlock()
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(n.prog.Hooks()) != 0 {
		t.Errorf("%d hooks are left", len(n.prog.Hooks()))
	}
}

// Waiting allocates nothing, whether it takes long or not.
func TestAwaitAllocatesNothing(t *testing.T) {
	for name, pol := range policies {
		t.Run(name, func(t *testing.T) {
			ns, _ := testJobOf(t, 2, nil, func(_ int, c *Config) { c.Policy = pol })
			a, b := newSpot(ns[0]), newSpot(ns[1])
			var k uint64
			round := func() {
				k++
				b.set(ns[0], k)
				if f := a.wait(k); f != nil {
					panic(fmt.Sprint(f))
				}
			}
			stop := make(chan struct{})
			go func() {
				defer close(stop)
				for i := uint64(1); ; i++ {
					if f := b.wait(i); f != nil {
						return
					}
					a.set(ns[1], i)
				}
			}()
			for range 200 {
				round()
			}
			if n := testing.AllocsPerRun(300, round); n > 0.05 {
				t.Errorf("%g allocations a round", n)
			}
			ended, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			ns[1].Close(ended)
			<-stop
		})
	}
}
