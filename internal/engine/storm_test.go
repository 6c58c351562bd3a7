// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/host/wait"
	"gompi/transport/faulty"
)

// policies from one that sleeps at once to one that spins.
var policies = map[string]wait.Policy{
	"sleeps": {}, "goroutine": wait.ForGoroutine(), "spins": {Spin: 200, Yield: 50, OS: true, PerCPU: 1},
}

// overPolicies runs f at GOMAXPROCS 1 and 2 with each policy.
func overPolicies(t *testing.T, f func(t *testing.T, p wait.Policy)) {
	for _, procs := range []int{1, 2} {
		for name, p := range policies {
			t.Run(fmt.Sprintf("%s/%d", name, procs), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				f(t, p)
			})
		}
	}
}

// together runs f on many goroutines and waits; a hang fails the test.
func together(t *testing.T, ns []*node, goroutines int, f func(g int) error) {
	t.Helper()
	errs := make(chan error, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			if err := f(g); err != nil {
				errs <- fmt.Errorf("goroutine %d: %w", g, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testWait):
		for _, n := range ns {
			t.Log(n.state())
		}
		buf := make([]byte, 1<<20)
		t.Fatalf("hangs:\n%s", buf[:runtime.Stack(buf, true)])
	}
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

// state describes an engine that hangs.
func (n *node) state() string {
	if !n.mu.TryLock() {
		return fmt.Sprintf("%v: somebody holds the lock", n.Self())
	}
	s := fmt.Sprintf("%v: leading %v, armed %v, ready %v, blocked %d\n", n.Self(), n.prog.Led(), n.prog.Armed(), n.colls.ready != nil, len(n.blocked))
	for _, p := range n.peers {
		s += fmt.Sprintf("  peer %v: state %d, full %v, listed %v, control %d, queue %d, %v\n",
			p.proc, p.state, p.full, p.listed, len(p.ctl), p.sends.n+p.stalled.n, &p.credit)
	}
	for _, c := range n.pool.chunks {
		for i := range c {
			if r := &c[i]; r.kind != reqFree {
				s += fmt.Sprintf("  request %d: kind %d, done %v, pend %b, waiter %v, tag %d\n", r.index, r.kind, r.done, r.pend, r.waiter != nil, r.tag)
			}
		}
	}
	n.mu.Unlock()
	return s + n.Queues()
}

// Many goroutines of two processes talk in pairs: one of each process polls,
// the others are parked, and whoever leaves hands on.
func TestLeadershipIsHandedOn(t *testing.T) {
	overPolicies(t, func(t *testing.T, pol wait.Policy) {
		ns, _ := testJobOf(t, 2, nil, func(_ int, c *Config) { c.Policy = pol })
		const pairs, rounds = 12, 40
		together(t, ns, 2*pairs, func(g int) error {
			n, other, tag := ns[g%2], 1-g%2, g/2
			in := make([]byte, 100_000)
			for i := range rounds {
				size := []int{0, 8, 8, 3000, 100_000}[i%5]
				if g%2 == 0 {
					if f := n.send(other, tag, in[:size]); f != nil {
						return f.Err
					}
				}
				if st, f := n.recv(other, tag, in); f != nil || st.Bytes != int64(size) {
					return fmt.Errorf("round %d: %+v", i, st)
				}
				if g%2 == 1 {
					if f := n.send(other, tag, in[:size]); f != nil {
						return f.Err
					}
				}
				// Some do something else for a while: then nobody of them polls.
				if i%8 == tag%8 {
					yield()
				}
			}
			return nil
		})
	})
}

// The same among the goroutines of one process.
func TestGoroutinesOfOneProcess(t *testing.T) {
	overPolicies(t, func(t *testing.T, pol wait.Policy) {
		ns, _ := testJobOf(t, 1, nil, func(_ int, c *Config) { c.Policy = pol })
		const pairs, rounds = 8, 60
		together(t, ns, 2*pairs, func(g int) error {
			in := make([]byte, 40_000)
			for i := range rounds {
				size := []int{0, 8, 3000, 40_000}[i%4]
				if g%2 == 0 {
					if f := ns[0].send(0, g, in[:size]); f != nil {
						return f.Err
					}
				}
				if _, f := ns[0].recv(0, g^1, in); f != nil {
					return f.Err
				}
				if g%2 == 1 {
					if f := ns[0].send(0, g, in[:size]); f != nil {
						return f.Err
					}
				}
			}
			return nil
		})
	})
}

// Receives, sends, probes and waits for several whose contexts end at any
// moment, among others that must not notice.
func TestCancelStorm(t *testing.T) {
	overPolicies(t, func(t *testing.T, pol wait.Policy) {
		plan := &faulty.Plan{Seed: 3, Full: 0.1, Delay: 0.1}
		ns, _ := testJobOf(t, 2, plan, func(_ int, c *Config) { c.Policy = pol })
		const rounds = 60
		together(t, ns, 12, func(g int) error {
			rnd := rand.New(rand.NewPCG(uint64(g), 9))
			n, other, tag := ns[g%2], 1-g%2, g/2
			in := make([]byte, 60_000)
			if tag < 2 {
				// These two pairs are never cancelled.
				for i := range rounds {
					if g%2 == 0 {
						in[0] = byte(i)
						if f := n.send(other, tag, in[:1+i*900]); f != nil {
							return f.Err
						}
					} else if st, f := n.recv(other, tag, in); f != nil || in[0] != byte(i) || st.Bytes != int64(1+i*900) {
						return fmt.Errorf("round %d: %+v, %d", i, st, in[0])
					}
				}
				return nil
			}
			for range rounds {
				ctx, cancel := context.WithCancel(context.Background())
				switch d := rnd.IntN(400); {
				case d < 40:
					cancel()
				default:
					timer := time.AfterFunc(time.Duration(d)*time.Microsecond, cancel)
					defer timer.Stop()
				}
				var f *fault.Fault
				var st Status
				size := []int{0, 100, 50_000}[rnd.IntN(3)]
				switch rnd.IntN(5) {
				case 0:
					f = n.Send(n.ctx, &SendArgs{Buf: buffer.Of(in[:size]), Dest: int32(other), Tag: int32(tag), Mode: Synchronous, User: ctx})
				case 1:
					f = n.Send(n.ctx, &SendArgs{Buf: buffer.Of(in[:size]), Dest: int32(other), Tag: int32(tag), User: ctx})
				case 2:
					f = n.Recv(n.ctx, &RecvArgs{Buf: buffer.Of(in), Source: anySource, Tag: int32(tag), User: ctx}, &st)
				case 3:
					_, _, f = n.Probe(n.ctx, &ProbeArgs{Source: int32(other), Tag: int32(tag), User: ctx, Wait: true}, &st)
				case 4:
					args := RecvArgs{Source: int32(other), Tag: int32(tag), User: ctx, Buf: buffer.Of(in)}
					a := n.Irecv(n.ctx, &args)
					b := n.isend(other, tag, make([]byte, size), Standard)
					n.Free(b) // received or not
					_, o := n.waitAny(a)
					f = o.Status.Fault
				}
				if c := f.Code(); c != fault.OK && c != fault.Cancelled {
					return fmt.Errorf("class %d: %v", c, f.Err)
				}
			}
			return nil
		})
		// Nothing waits in the tables but messages, and no request is left but
		// freed sends.
		for _, n := range ns {
			n.mu.Lock()
			posted := n.table.PostedLen()
			n.mu.Unlock()
			if posted != 0 || n.Live() != 0 {
				t.Errorf("%d receives are posted, %d requests live", posted, n.Live())
			}
		}
	})
}
