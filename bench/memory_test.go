// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"gompi/internal/control/controltest"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
	"gompi/sessions"
)

// Remote memory while the number of ranks changes.

// onHosts is no transport: ranks are on pretended hosts of two slots each.
const onHosts = "hosts"

// transports runs f over each, and looks whether something is left.
func transports(t *testing.T, f func(t *testing.T, transport string, opts ...mpitest.Option)) {
	for _, name := range []string{"inproc", "shm", onHosts} {
		t.Run(name, func(t *testing.T) {
			before := controltest.Leftovers()
			t.Cleanup(func() {
				controltest.WaitFor(t, fmt.Sprintf("nothing left beyond %+v", before), func() bool { return controltest.Leftovers().Within(before) })
			})
			if name == onHosts {
				f(t, name, testjob.Hosts(3, 2), mpitest.Transport("shm,tcp"))
				return
			}
			f(t, name, mpitest.Transport(name))
		})
	}
}

// pattern is memory of so many words that all say what.
func pattern(n int, what int64) []int64 { return slices.Repeat([]int64{what}, n) }

// TestReadBeforeTheCommit: a newcomer reads what an old rank has exposed, by a key that it
// finds in the store of the input, while the change waits in Ready and in Adopting. The
// old rank takes no part in it, and on one host is not connected for it.
func TestReadBeforeTheCommit(t *testing.T) {
	const words = 1 << 14
	transports(t, func(t *testing.T, transport string, opts ...mpitest.Option) {
		mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
			ctx, must := t.Context(), musts(t)
			s, err := sessions.Open(ctx)
			must(err)
			defer s.Close()
			c, err := sessions.Joined(ctx)
			must(err)
			if c != nil {
				store, err := s.Store(c.Input)
				must(err)
				read := func(want int64) {
					t.Helper()
					list, err := store.Get(ctx, true, "key")
					must(err)
					var key rma.Key
					must(key.UnmarshalText(list[0]))
					r, err := rma.Open(world.Process(), key)
					must(err)
					buf := make([]int64, words)
					must(rma.Read(r, buf, 0))
					if !slices.Equal(buf, pattern(words, want)) {
						t.Errorf("read %d, ..., %d, want %d", buf[0], buf[words-1], want)
					}
					must(r.Close())
				}
				_, err = store.Get(ctx, true, "in Ready")
				must(err)
				read(1)
				must(store.Put("read in Ready", nil))
				_, err = store.Get(ctx, true, "in Adopting")
				must(err)
				read(2)
				comm, err := c.Commit(ctx)
				must(err)
				if transport != onHosts && comm.Transport(0) != "" {
					t.Errorf("with the commit the owner is reached by %q", comm.Transport(0))
				}
				must(comm.Barrier())
				return
			}
			w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{Hold: true})
			must(err)
			store, err := s.Store("gompi://main")
			must(err)
			must(world.Barrier())
			mem := pattern(words, 1)
			var x *rma.Exposed
			if world.Rank() == 0 {
				x, err = rma.Expose(world.Process(), mem)
				must(err)
				text, err := x.Key().MarshalText()
				must(err)
				must(store.Put("key", text))
				op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: []string{"gompi://main"}, Add: []int{1}})
				must(err)
				defer op.Free()
			}
			c, err = w.Coming(ctx)
			must(err)
			if world.Rank() == 0 {
				must(store.Put("in Ready", nil))
			}
			_, err = store.Get(ctx, true, "read in Ready")
			must(err)
			must(world.Barrier()) // memory is written when nobody reads
			copy(mem, pattern(words, 2))
			must(w.Release(c))
			for i, x := 0, (*sessions.Change)(nil); x == nil; i++ {
				x, err = w.Check(i)
				must(err)
			}
			must(world.Barrier())
			must(store.Put("in Adopting", nil))
			comm, err := c.Commit(ctx)
			must(err)
			if r := 2; transport != onHosts && comm.Transport(r) != "" {
				t.Errorf("with the commit the newcomer is reached by %q", comm.Transport(r))
			}
			must(comm.Barrier())
			if x != nil {
				must(x.Close())
			}
			must(w.Close())
		}, opts...)
	})
}

// musts ends a rank by an error.
func musts(t *mpitest.T) func(err error) {
	return func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeaverWaitsForItsReaders: who leaves has its memory to itself once Commit says so.
// Others read it until they are refused, and what they got is whole; that one of them is
// killed holds up nobody.
func TestLeaverWaitsForItsReaders(t *testing.T) {
	const words = 1 << 12
	for _, kill := range []bool{false, true} {
		transports(t, func(t *testing.T, _ string, opts ...mpitest.Option) {
			mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
				const leaver, victim = 2, 1
				ctx, must := t.Context(), musts(t)
				w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
				must(err)
				mem, keys := pattern(words, 1), make([]rma.Key, 1)
				if world.Rank() == leaver {
					x, err := rma.Expose(world.Process(), mem)
					must(err)
					keys[0] = x.Key()
				}
				must(mpi.Bcast(world, keys, leaver))
				reads := make(chan error, 1)
				if world.Rank() != leaver {
					r, err := rma.Open(world.Process(), keys[0])
					must(err)
					begun := make(chan struct{}, 1)
					go func() {
						var err error
						for buf, want := make([]int64, words), pattern(words, 1); err == nil; {
							if err = rma.Read(r, buf, 0); err == nil && !slices.Equal(buf, want) {
								err = fmt.Errorf("read %d, ..., %d", buf[0], buf[words-1])
							}
							select {
							case begun <- struct{}{}:
							default:
							}
							runtime.Gosched()
						}
						reads <- errors.Join(err, r.Close())
					}()
					<-begun
				}
				must(world.Barrier())
				if world.Rank() == 0 {
					_, err := t.Shrink(leaver)
					must(err)
				}
				var c *sessions.Change
				for i := 0; c == nil; i++ {
					c, err = w.Check(i)
					must(err)
				}
				comm, err := c.Commit(ctx)
				if world.Rank() == leaver {
					if !errors.Is(err, sessions.ErrLeaving) {
						t.Errorf("of who leaves: %v", err)
					}
					copy(mem, pattern(words, -1))
					for range 20 {
						runtime.Gosched()
					}
					return
				}
				must(err)
				if kill && world.Rank() == victim {
					t.Kill(-1)
				}
				if err := <-reads; !errors.Is(err, mpi.ErrClosed) && !errors.Is(err, mpi.ErrLeft) {
					t.Errorf("who reads: %v", err)
				}
				if !kill {
					must(comm.Barrier())
				}
				must(w.Close())
			}, opts...)
		})
	}
}
