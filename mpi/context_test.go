// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
)

var errBored = errors.New("nobody came")

// giveUp is c for calls that end soon.
func giveUp(t *mpitest.T, c *mpi.Comm) *mpi.Comm {
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := time.AfterFunc(20*time.Millisecond, func() { cancel(errBored) })
	t.Cleanup(func() { timer.Stop() })
	return c.WithContext(ctx)
}

func wantGivenUp(t *mpitest.T, err error) {
	t.Helper()
	wantError(t, err, mpi.ErrCancelled, "nobody came")
	if !errors.Is(err, errBored) {
		t.Fatalf("%v hides its cause", err)
	}
}

func TestGiveUpReceives(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		buf := make([]int64, 10)
		if w.Rank() == 0 {
			_, err := mpi.Recv(giveUp(t, w), buf, 1, 0)
			wantGivenUp(t, err)
			st, err := mpi.Irecv(giveUp(t, w), buf, 1, 0).Wait()
			wantGivenUp(t, err)
			if !st.Cancelled {
				t.Fatalf("status %+v", st)
			}
			_, err = giveUp(t, w).Probe(mpi.AnySource, 0)
			wantGivenUp(t, err)
			_, _, err = giveUp(t, w).Mprobe(1, 0)
			wantGivenUp(t, err)
			_, _, err = mpi.RecvNew[int](giveUp(t, w), 1, 0)
			wantGivenUp(t, err)
			_, err = mpi.Sendrecv(giveUp(t, w), buf[:0], mpi.ProcNull, 0, buf, 1, 0)
			wantGivenUp(t, err)
			_, _, err = mpi.Waitany([]mpi.Request{{}, mpi.Irecv(giveUp(t, w), buf, 1, 0)})
			wantGivenUp(t, err)
			p := mpi.RecvInit(giveUp(t, w), buf, 1, 0)
			must(t, p.Start())
			_, err = p.Wait()
			wantGivenUp(t, err)
			wantGivenUp(t, p.Start()) // the context has ended
			// The withdrawn receives have taken nothing.
			must(t, mpi.Send(w, buf, 1, 1))
			for i := range 3 {
				_, err = mpi.Recv(w, buf, 1, 0)
				if err != nil || buf[0] != int64(i) {
					t.Fatal(buf[0], err)
				}
			}
			return
		}
		_, err := mpi.Recv(w, buf, 0, 1)
		must(t, err)
		for i := range 3 {
			buf[0] = int64(i)
			must(t, mpi.Send(w, buf, 0, 0))
		}
	})
}

func TestGiveUpSends(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		big := make([]int64, 100000)
		small := make([]int64, 1)
		if w.Rank() == 0 {
			wantGivenUp(t, mpi.Send(giveUp(t, w), big, 1, 0))
			wantGivenUp(t, mpi.Ssend(giveUp(t, w), small, 1, 0))
			_, err := mpi.Isend(giveUp(t, w), big, 1, 0).Wait()
			wantGivenUp(t, err)
			p := mpi.SsendInit(giveUp(t, w), small, 1, 0)
			must(t, p.Start())
			_, err = p.Wait()
			wantGivenUp(t, err)
			_, err = mpi.Sendrecv(giveUp(t, w), big, 1, 0, make([]int64, 1), 1, 5)
			wantGivenUp(t, err)
			must(t, mpi.Send(w, small, 1, 1))
			// What the receiver has matched completes although its context ends.
			ctx, cancel := context.WithCancel(context.Background())
			s := mpi.Issend(w.WithContext(ctx), big, 1, 2)
			_, err = mpi.Recv(w, small, 1, 3) // the receive of tag 2 is posted
			must(t, err)
			for done := false; !done; {
				done, _, err = s.GetStatus()
				must(t, err)
			}
			cancel()
			st, err := s.Wait()
			if err != nil || st.Cancelled {
				t.Fatalf("matched send: %+v, %v", st, err)
			}
			return
		}
		_, err := mpi.Recv(w, small, 0, 1)
		must(t, err)
		if found, st, err := w.Iprobe(0, mpi.AnyTag); found && st.Tag == 0 || err != nil {
			t.Fatalf("a withdrawn message is there: %+v, %v", st, err)
		}
		r := mpi.Irecv(w, big, 0, 2)
		must(t, mpi.Send(w, small, 0, 3))
		_, err = r.Wait()
		must(t, err)
	})
}

func TestGiveUpPartitioned(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		buf := make([]int64, 1000)
		if w.Rank() == 0 {
			p := mpi.PsendInit(giveUp(t, w), buf, 4, 1, 0)
			must(t, p.Start())
			must(t, p.Pready(2)) // the others never come
			_, err := p.Wait()
			wantGivenUp(t, err)
			must(t, p.Free())
		} else {
			p := mpi.PrecvInit(giveUp(t, w), buf, 4, 0, 1) // without partner
			must(t, p.Start())
			_, err := p.Wait()
			wantGivenUp(t, err)
			must(t, p.Free())
		}
		must(t, w.Barrier())
	})
}

func TestGiveUpCollective(t *testing.T) {
	kinds := map[string]func(c *mpi.Comm) error{
		"Barrier":   func(c *mpi.Comm) error { return c.Barrier() },
		"Allreduce": func(c *mpi.Comm) error { return mpi.Allreduce(c, make([]int64, 5), make([]int64, 5), mpi.Sum) },
		"Iallgather": func(c *mpi.Comm) error {
			_, err := mpi.Iallgather(c, make([]int64, 5), make([]int64, 10)).Wait()
			return err
		},
		"BcastInit": func(c *mpi.Comm) error {
			p := mpi.BcastInit(c, make([]int64, 50000), 1)
			if err := p.Start(); err != nil {
				return err
			}
			_, err := p.Wait()
			return err
		},
	}
	for name, f := range kinds {
		t.Run(name, func(t *testing.T) {
			overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
				c, err := w.Dup()
				must(t, err)
				if w.Rank() == 0 {
					wantGivenUp(t, f(giveUp(t, c)))
				} else {
					// Rank 1 learns of it in an operation of its own.
					_, err := mpi.Recv(c, make([]int64, 1), 0, 0)
					wantError(t, err, mpi.ErrRevoked)
				}
				wantError(t, f(c), mpi.ErrRevoked)
				wantError(t, mpi.Send(c, []int{1}, 1, 0), mpi.ErrRevoked)
				if !c.Revoked() {
					t.Fatal("not revoked")
				}
				c.Free()
				must(t, w.Barrier())
			})
		})
	}
}

// A context that ended before the call stops every call before it begins.
func TestExpiredContext(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c := w.WithContext(ctx)
		b := make([]int64, 1)
		_, e1 := mpi.Recv(c, b, 0, 0)
		_, e2 := mpi.Irecv(c, b, 0, 0).Wait()
		_, e3 := mpi.Isend(c, b, 0, 0).Wait()
		_, e4 := c.Probe(0, 0)
		_, e5 := c.Ibarrier().Wait()
		_, _, e6 := c.Iprobe(0, 0)
		for i, err := range []error{e1, e2, e3, e4, e5, e6, mpi.Send(c, b, 0, 0), mpi.Bsend(c, b, 0, 0), c.Barrier(), mpi.SendInit(c, b, 0, 0).Start()} {
			if !errors.Is(err, mpi.ErrCancelled) || !errors.Is(err, context.Canceled) {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		// The communicator is unharmed.
		must(t, w.Barrier())
	})
}

// A collective whose context ended before the call is given up on all ranks, and
// those after it keep their numbers.
func TestExpiredCollective(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c := w
		if w.Rank() == 1 {
			c = w.WithContext(ctx)
		}
		start := c.BarrierInit()
		defer start.Free()
		x := make([]int64, 1)
		for _, call := range []func() error{
			func() error { return mpi.Bcast(c, x, 1) },
			func() error { _, err := c.Ibarrier().Wait(); return err },
			func() error {
				if err := start.Start(); err != nil {
					return err
				}
				_, err := start.Wait()
				return err
			},
		} {
			err := call()
			if w.Rank() == 1 {
				wantError(t, err, mpi.ErrCancelled)
			} else {
				wantError(t, err, mpi.ErrAborted)
			}
			must(t, w.Barrier())
		}
	})
}

// Another goroutine revokes the communicator under a call that waits, alone in
// the process, or frees it under a probe, which has nothing else to end it.
func TestFreeAndRevokeUnderWaiters(t *testing.T) {
	waits := []func(c *mpi.Comm) error{
		func(c *mpi.Comm) error { _, err := mpi.Recv(c, make([]int64, 1), 1, 0); return err },
		func(c *mpi.Comm) error { return mpi.Ssend(c, make([]int64, 1), 1, 0) },
		func(c *mpi.Comm) error { return mpi.Send(c, make([]int64, 100000), 1, 0) },
		func(c *mpi.Comm) error { _, err := c.Probe(1, 0); return err },
		func(c *mpi.Comm) error { return c.Barrier() },
		func(c *mpi.Comm) error {
			p := mpi.PrecvInit(c, make([]int64, 1), 1, 1, 0)
			if err := p.Start(); err != nil {
				return err
			}
			_, err := p.Wait()
			return err
		},
	}
	ends := []struct {
		f     func(*mpi.Comm)
		class mpi.Class
		waits []func(c *mpi.Comm) error
	}{{func(c *mpi.Comm) { c.Free() }, mpi.ErrComm, waits[3:4]}, {(*mpi.Comm).Revoke, mpi.ErrRevoked, waits}}
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, end := range ends {
			for _, f := range end.waits {
				c, err := w.Dup()
				must(t, err)
				if w.Rank() == 0 {
					done := make(chan error)
					go func() { done <- f(c) }()
					// It sleeps by then, most of the time.
					timer := time.NewTimer(5 * time.Millisecond)
					<-timer.C
					end.f(c)
					wantError(t, <-done, end.class)
					wantError(t, mpi.Send(c, []int{1}, 1, 0), end.class)
					_, err = mpi.Irecv(c, []int{1}, 1, 0).Wait()
					wantError(t, err, end.class)
					wantError(t, c.Barrier(), end.class)
					_, _, err = c.Iprobe(1, 0)
					wantError(t, err, end.class)
				}
				must(t, w.Barrier())
				c.Free()
			}
		}
	})
}
