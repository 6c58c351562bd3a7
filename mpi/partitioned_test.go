// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"sync"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

func TestPartitionedDifferentCuts(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, cut := range []struct{ n, send, recv int }{{12, 1, 1}, {12, 4, 3}, {12, 3, 4}, {12, 12, 1}, {0, 5, 2}, {60000, 6, 5}, {60000, 1, 20}} {
			buf := make([]int64, cut.n)
			var p *mpi.Persistent
			if w.Rank() == 0 {
				p = mpi.PsendInit(w, buf, cut.send, 1, 5)
			} else {
				p = mpi.PrecvInit(w, buf, cut.recv, 0, 5)
			}
			for round := range 4 {
				if w.Rank() == 0 {
					fill(buf, round)
				} else {
					clear(buf)
				}
				must(t, p.Start())
				if w.Rank() == 0 {
					// Each goroutine has some partitions, in its own order.
					var wg sync.WaitGroup
					for g := range 3 {
						wg.Go(func() {
							for i := g; i < cut.send; i += 3 {
								if err := p.Pready(cut.send - 1 - i); err != nil {
									t.Error(err)
								}
							}
						})
					}
					wg.Wait()
				} else {
					size := cut.n / cut.recv
					for i := range cut.recv {
						for there := false; !there; {
							var err error
							there, err = p.Parrived(i)
							must(t, err)
						}
						checkFill(t, buf[i*size:(i+1)*size], round+i*size)
					}
				}
				st, err := p.Wait()
				must(t, err)
				if w.Rank() == 1 && (st.Source != 0 || st.Tag != 5 || st.Count != cut.n) {
					t.Fatalf("status %+v", st)
				}
			}
			must(t, p.Free())
		}
	})
}

// The sender waits for its partitions before it sends the message for which
// the receiver is waiting: the receives are posted without the receiver's help.
func TestPartitionedProgress(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		buf := make([]int64, 100000)
		if w.Rank() == 0 {
			_, err := mpi.Recv(w, buf[:1], 1, 1) // the receiver has started
			must(t, err)
			p := mpi.PsendInit(w, buf, 2, 1, 0)
			must(t, p.Start())
			must(t, p.PreadyList([]int{1, 0}))
			_, err = p.Wait()
			must(t, err)
			must(t, mpi.Send(w, buf[:1], 1, 2))
			return
		}
		p := mpi.PrecvInit(w, buf, 4, 0, 0)
		must(t, p.Start())
		must(t, mpi.Send(w, []int64{1}, 0, 1))
		_, err := mpi.Recv(w, make([]int64, 1), 0, 2)
		must(t, err)
		_, err = p.Wait()
		must(t, err)
	})
}

// Inits match in order for each communicator and tag, however they are started.
func TestPartitionedOrderOfInits(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		const n = 6
		var ps [n]*mpi.Persistent
		var bufs [n][]int64
		for i := range n {
			bufs[i] = make([]int64, 4)
			if w.Rank() == 0 {
				ps[i] = mpi.PsendInit(w, bufs[i], 2, 1, i%2)
			} else {
				ps[i] = mpi.PrecvInit(w, bufs[i], 4, 0, i%2)
			}
		}
		for i := range n {
			j := i
			if w.Rank() == 0 {
				j = n - 1 - i
				fill(bufs[j], 100*j)
			}
			must(t, ps[j].Start())
			if w.Rank() == 0 {
				must(t, ps[j].PreadyRange(0, 1))
			}
		}
		for i := range n {
			_, err := ps[i].Wait()
			must(t, err)
			checkFill(t, bufs[i], 100*i)
		}
	})
}

// Inits match in order, also those that were freed or whose start was given up
// before they matched (MPI 4.1 section 4.2.1).
func TestPartitionedInitsGivenUp(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, given := range []string{"freed", "abandoned"} {
			a, b := make([]int64, 4), make([]int64, 4)
			if w.Rank() == 0 {
				_, err := mpi.Recv(w, make([]int64, 1), 1, 1)
				must(t, err)
				first := mpi.PsendInit(w, a, 2, 1, 7)
				second := mpi.PsendInit(w, b, 2, 1, 7)
				must(t, first.Free())
				fill(b, 50)
				must(t, second.Start())
				must(t, second.PreadyRange(0, 1))
				_, err = second.Wait()
				must(t, err)
				must(t, second.Free())
				continue
			}
			c, end := context.WithCancel(t.Context())
			first := mpi.PrecvInit(w.WithContext(c), a, 4, 0, 7)
			if given == "abandoned" {
				must(t, first.Start())
				end()
				_, err := first.Wait()
				wantError(t, err, mpi.ErrCancelled)
			}
			end()
			must(t, first.Free())
			second := mpi.PrecvInit(w, b, 4, 0, 7)
			must(t, second.Start())
			must(t, mpi.Send(w, []int64{1}, 0, 1))
			_, err := second.Wait()
			must(t, err)
			checkFill(t, b, 50)
			must(t, second.Free())
		}
	})
}

// A column of a matrix leaves in partitions and lands in a slice.
func TestPartitionedBufs(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		const n = 6
		if w.Rank() == 1 {
			in := make([]int64, n)
			p := w.Bufs().PrecvInit(mpi.BufOf(in), 2, 0, 3)
			must(t, p.Start())
			st, err := p.Wait()
			if must(t, err); st.Count != n {
				t.Fatalf("%+v", st)
			}
			checkFill(t, in, 20)
			must(t, p.Free())
			return
		}
		a := make([]int64, n*n)
		for row := range n {
			a[row*n+2] = int64(20 + row)
		}
		one, err := mpi.TypeVector(1, 1, 1, mpi.TypeOf[int64]())
		must(t, err)
		cell, err := mpi.TypeResized(one, 0, 8*n)
		must(t, err)
		p := w.Bufs().PsendInit(mpi.BufAt(cell, a, 2, n), 3, 1, 3)
		must(t, p.Start())
		must(t, p.PreadyList([]int{2, 0, 1}))
		_, err = p.Wait()
		must(t, err)
		must(t, p.Free())
	})
}

func TestPartitionedErrors(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		b := make([]int64, 6)
		wantError(t, mpi.PsendInit(w, b, 4, 0, 0).Start(), mpi.ErrCount, "6 elements", "4 equal")
		wantError(t, mpi.PsendInit(w, b, 0, 0, 0).Start(), mpi.ErrCount, "0 partitions")
		wantError(t, mpi.PrecvInit(w, b, mpi.MaxPartitions+1, 0, 0).Start(), mpi.ErrCount, "65537")
		wantError(t, mpi.PrecvInit(w, b, 2, mpi.AnySource, 0).Start(), mpi.ErrRank, "rank -1 of 2")
		wantError(t, mpi.PrecvInit(w, b, 2, 0, mpi.AnyTag).Start(), mpi.ErrTag, "tag -1")
		wantError(t, mpi.SendInit(w, b, 0, 0).Pready(0), mpi.ErrRequest, "another kind")
		for _, p := range []*mpi.Persistent{mpi.PsendInit(w, b, 2, mpi.ProcNull, 0), mpi.PrecvInit(w, b, 2, mpi.ProcNull, 0)} {
			must(t, p.Start())
			st, err := p.Wait()
			if err != nil || st.Source != mpi.ProcNull {
				t.Fatalf("ProcNull: %+v, %v", st, err)
			}
		}
		if w.Rank() == 0 {
			p := mpi.PsendInit(w, b, 3, 1, 9)
			wantError(t, p.Pready(0), mpi.ErrRequest, "inactive")
			must(t, p.Start())
			wantError(t, p.Pready(3), mpi.ErrArg, "partition 3 of 3")
			wantError(t, p.Pready(-1), mpi.ErrArg, "partition -1 of 3")
			wantError(t, p.PreadyRange(1, 0), mpi.ErrArg, "partition 0 of 3")
			must(t, p.Pready(1))
			wantError(t, p.PreadyRange(0, 2), mpi.ErrArg, "partition 1 is ready already")
			wantError(t, p.Free(), mpi.ErrRequest, "active")
			wantError(t, p.Cancel(), mpi.ErrRequest)
			_, err := p.Parrived(0)
			wantError(t, err, mpi.ErrRequest, "another kind")
			must(t, p.PreadyList([]int{2, 0}))
			_, err = p.Wait()
			must(t, err)
			must(t, p.Free())
			wantError(t, p.Pready(0), mpi.ErrRequest, "freed")
			// One too long for its receiver, and one too short.
			for _, n := range []int{8, 4} {
				q := mpi.PsendInit(w, make([]int64, n), 4, 1, 10)
				must(t, q.Start())
				must(t, q.PreadyRange(0, 3))
				_, err = q.Wait()
				must(t, err)
			}
			return
		}
		p := mpi.PrecvInit(w, b, 6, 0, 9)
		if there, err := p.Parrived(0); !there || err != nil {
			t.Fatal("partition of a receive that was never started has not arrived:", err)
		}
		must(t, p.Start())
		_, err := p.Wait()
		must(t, err)
		if there, err := p.Parrived(5); !there || err != nil {
			t.Fatal("partition of a completed receive has not arrived:", err)
		}
		_, err = p.Parrived(6)
		wantError(t, err, mpi.ErrArg, "partition 6 of 6")
		for _, n := range []string{"64 bytes, 48 expected", "32 bytes, 48 expected"} {
			q := mpi.PrecvInit(w, b, 2, 0, 10)
			must(t, q.Start())
			_, err = q.Wait()
			wantError(t, err, mpi.ErrMismatch, n)
		}
	})
}
