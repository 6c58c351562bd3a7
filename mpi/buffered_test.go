// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

func TestBsendDoesNotWait(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		const n, messages = 50000, 20
		p := w.Process()
		for _, attach := range []func() (detach func() (int, error)){
			func() func() (int, error) {
				must(t, w.SendBuffer().Attach(messages*(8*n+mpi.BsendOverhead)))
				return w.SendBuffer().Detach
			},
			func() func() (int, error) {
				must(t, p.SendBuffer().Attach(messages*(8*n+mpi.BsendOverhead)))
				return p.SendBuffer().Detach
			},
			func() func() (int, error) {
				must(t, w.SendBuffer().Attach(mpi.BufferAutomatic))
				return w.SendBuffer().Detach
			},
		} {
			detach := attach()
			buf := make([]int64, n)
			if w.Rank() == 0 {
				for i := range messages {
					fill(buf, i)
					if i%2 == 0 {
						must(t, mpi.Bsend(w, buf, 1, i))
					} else {
						_, err := mpi.Ibsend(w, buf, 1, i).Wait()
						must(t, err)
					}
				}
				must(t, mpi.Send(w, buf[:0], 1, 99)) // the receiver takes nothing before this
			} else {
				_, err := mpi.Recv(w, buf[:0], 0, 99)
				must(t, err)
				for i := range messages {
					_, err := mpi.Recv(w, buf, 0, i)
					must(t, err)
					checkFill(t, buf, i)
				}
			}
			size, err := detach()
			must(t, err)
			if size != mpi.BufferAutomatic && size != messages*(8*n+mpi.BsendOverhead) {
				t.Fatalf("detached %d bytes", size)
			}
		}
	})
}

// Strided data takes as much of the buffer as it has bytes, and may change as
// soon as the call returns.
func TestBsendStrided(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, rows := range []int{0, 1, 3, 200, 40000} {
			// Every other column of four.
			dt, err := mpi.TypeIndexedBlock(1, []int{0, 2}, mpi.TypeOf[int64]())
			must(t, err)
			dt, err = mpi.TypeResized(dt, 0, 4*8)
			must(t, err)
			const messages = 4
			must(t, w.SendBuffer().Attach(messages*(rows*2*8+mpi.BsendOverhead)))
			m := make([]int64, 4*rows)
			b := mpi.BufAs(dt, m, rows)
			if w.Rank() == 0 {
				again := w.Bufs().BsendInit(b, 1, 2)
				for i := range messages {
					fill(m, i)
					switch i {
					case 0:
						must(t, w.Bufs().Bsend(b, 1, i))
					case 1:
						_, err := w.Bufs().Ibsend(b, 1, i).Wait()
						must(t, err)
					default:
						must(t, again.Start())
						_, err := again.Wait()
						must(t, err)
					}
					clear(m)
				}
				must(t, again.Free())
				must(t, mpi.Send(w, m[:0], 1, 99)) // the receiver takes nothing before this
			} else {
				_, err := mpi.Recv(w, m[:0], 0, 99)
				must(t, err)
				for i := range messages {
					fill(m, -1000)
					st, err := w.Bufs().Recv(b, 0, min(i, 2))
					must(t, err)
					if st.Count != rows {
						t.Fatalf("%d of %d rows", st.Count, rows)
					}
					for k, v := range m {
						want := i + k
						if k%2 == 1 {
							want = k - 1000
						}
						if v != int64(want) {
							t.Fatalf("message %d of %d rows: element %d is %d, want %d", i, rows, k, v, want)
						}
					}
				}
			}
			_, err = w.SendBuffer().Detach()
			must(t, err)
		}
	})
}

func TestBsendSpace(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		const n = 50000
		buf := make([]int64, n)
		const room = 2 * (8*n + mpi.BsendOverhead)
		wantError(t, mpi.Bsend(w, buf, 1, 0), mpi.ErrBuffer, "no buffer")
		_, err := w.SendBuffer().Detach()
		wantError(t, err, mpi.ErrBuffer, "no buffer")
		wantError(t, w.SendBuffer().Flush(), mpi.ErrBuffer, "no buffer")
		wantError(t, w.SendBuffer().Attach(-5), mpi.ErrBuffer, "-5 bytes")
		must(t, w.SendBuffer().Attach(room))
		wantError(t, w.SendBuffer().Attach(1), mpi.ErrBuffer, "800128 bytes")
		must(t, mpi.Bsend(w, buf, mpi.ProcNull, 0))
		if w.Rank() == 1 {
			for range 2 {
				_, err := mpi.Recv(w, buf[:1], 0, 99)
				must(t, err)
				for range 2 {
					_, err := mpi.Recv(w, buf, 0, 1)
					must(t, err)
				}
			}
			return
		}
		for range 2 {
			// The space of the first round has come back in the second.
			must(t, mpi.Bsend(w, buf, 1, 1))
			must(t, mpi.Bsend(w, buf, 1, 1))
			wantError(t, mpi.Bsend(w, buf[:10], 1, 1), mpi.ErrBuffer, "80 bytes and 64 overhead", "0 of 800128 are free")
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			wantError(t, w.WithContext(ctx).SendBuffer().Flush(), mpi.ErrCancelled)
			_, err := w.WithContext(ctx).SendBuffer().Detach()
			wantError(t, err, mpi.ErrCancelled)
			req := w.SendBuffer().Iflush()
			if done, _, err := req.Test(); done || err != nil {
				t.Fatalf("flushed before anything was received: %v", err)
			}
			must(t, mpi.Send(w, buf[:1], 1, 99))
			must(t, w.SendBuffer().Flush())
			_, err = req.Wait()
			must(t, err)
		}
		size, err := w.SendBuffer().Detach()
		if err != nil || size != room {
			t.Fatalf("detached %d, %v", size, err)
		}
	})
}

// Free lets the messages in the communicator's own buffer leave.
func TestFreeDetaches(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.Dup()
		must(t, err)
		buf := make([]int64, 50000)
		if w.Rank() == 0 {
			must(t, c.SendBuffer().Attach(mpi.BufferAutomatic))
			fill(buf, 1)
			must(t, mpi.Bsend(c, buf, 1, 0))
		} else {
			_, err = mpi.Recv(c, buf, 0, 0)
			must(t, err)
			checkFill(t, buf, 1)
		}
		c.Free()
	})
}

// Several goroutines send through one buffer that is too small for all, and
// flush it.
func TestBsendFromGoroutines(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		const n, senders, each = 5000, 4, 25
		if w.Rank() == 1 {
			buf := make([]int64, n)
			var next [senders]int
			for range senders * each {
				st, err := mpi.Recv(w, buf, 0, mpi.AnyTag)
				must(t, err)
				checkFill(t, buf, 1000*st.Tag+next[st.Tag])
				next[st.Tag]++
			}
			return
		}
		must(t, w.SendBuffer().Attach(10*(8*n+mpi.BsendOverhead)))
		var wg sync.WaitGroup
		for g := range senders {
			wg.Go(func() {
				buf := make([]int64, n)
				for i := range each {
					fill(buf, 1000*g+i)
					err := mpi.Bsend(w, buf, 1, g)
					for errors.Is(err, mpi.ErrBuffer) {
						if err = w.SendBuffer().Flush(); err == nil {
							err = mpi.Bsend(w, buf, 1, g)
						}
					}
					if err != nil {
						t.Error(err)
						return
					}
					clear(buf)
				}
			})
		}
		wg.Wait()
		_, err := w.SendBuffer().Detach()
		must(t, err)
	})
}

// What lies in a buffer that is still attached is delivered by Finalize.
func TestFinalizeFlushesBuffers(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		buf := make([]int64, 50000)
		if w.Rank() == 0 {
			must(t, w.Process().SendBuffer().Attach(mpi.BufferAutomatic))
			fill(buf, 1)
			must(t, mpi.Bsend(w, buf, 1, 0))
			return
		}
		req := mpi.Irecv(w, buf, 0, 0)
		must(t, w.Process().Self().Barrier())
		_, err := req.Wait()
		must(t, err)
		checkFill(t, buf, 1)
	})
}
