// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

var checking = mpitest.Setting("GOMPI_CHECK", "1")

func TestCheckBuffersInUse(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		buf, small := make([]int64, 100), make([]int64, 1)
		if w.Rank() == 1 {
			_, err := mpi.Recv(w, small, 0, 9) // rank 0 has made its mistakes
			must(t, err)
			must(t, mpi.Send(w, buf, 0, 1))
			_, err = mpi.Recv(w, buf, 0, 2)
			must(t, err)
			_, err = mpi.Recv(w, buf, 0, 2)
			must(t, err)
			must(t, w.Barrier())
			return
		}
		in := mpi.Irecv(w, buf[10:60], 1, 1)
		_, err := mpi.Isend(w, buf[:11], 1, 2).Wait()
		wantError(t, err, mpi.ErrInUse, "Isend on", "peer 1, tag 2", "88 bytes overlap the 400 bytes of Irecv on", "peer 1, tag 1")
		wantError(t, mpi.Send(w, buf[59:], 1, 2), mpi.ErrInUse, "Send on")
		_, err = mpi.Recv(w, buf, 1, 2)
		wantError(t, err, mpi.ErrInUse, "Recv on")
		_, err = mpi.Irecv(w, buf[:11], 1, 2).Wait()
		wantError(t, err, mpi.ErrInUse)
		wantError(t, mpi.SendInit(w, buf, 1, 2).Start(), mpi.ErrInUse, "SendInit")
		wantError(t, mpi.PrecvInit(w, buf, 1, 1, 3).Start(), mpi.ErrInUse, "PrecvInit")
		must(t, w.SendBuffer().Attach(1000))
		wantError(t, mpi.Bsend(w, buf, 1, 2), mpi.ErrInUse, "Bsend")
		// Side by side is fine, and so is a second reader.
		s1, s2 := mpi.Issend(w, buf[:10], 1, 2), mpi.Issend(w, buf[5:10], 1, 2)
		must(t, mpi.Send(w, small, 1, 9))
		st, err := in.Wait()
		if !errors.Is(err, mpi.ErrTruncate) || st.Count != 50 {
			t.Fatalf("receive: %+v, %v", st, err)
		}
		must(t, mpi.Waitall([]mpi.Request{s1, s2}))
		// All are complete: the buffers are free.
		req := mpi.Irecv(w, buf, 1, 3)
		must(t, req.Cancel())
		_, err = req.Wait()
		must(t, err)
		must(t, w.Barrier())
	}, checking)
}

// Without GOMPI_CHECK the same goes unnoticed.
func TestNoCheck(t *testing.T) {
	overAll(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		buf := make([]int64, 1)
		a, b := mpi.Irecv(w, buf, 0, 1), mpi.Irecv(w, buf, 0, 1)
		must(t, mpi.Rsend(w, []int64{1}, 0, 1))
		must(t, mpi.Rsend(w, []int64{2}, 0, 1))
		must(t, mpi.Rsend(w, []int64{3}, 0, 1))
		must(t, mpi.Waitall([]mpi.Request{a, b}))
		_, err := mpi.Recv(w, buf, 0, 1)
		must(t, err)
	})
}

// Blocks that one call receives must not overlap.
func TestCheckBlocks(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		m := make([]int64, 8)
		part := func(at, n int) mpi.Buf { return mpi.BufOf(m[at:][:n]) }
		two, gap := []int{2, 2}, []int{2, 0}
		c, err := w.CartCreate([]int{2}, []bool{true}, false)
		must(t, err)
		for _, form := range []struct {
			name string
			call func(displs []int, at int) error
		}{
			{"Allgatherv", func(displs []int, _ int) error { return mpi.Allgatherv(w, make([]int64, 2), m, two, displs) }},
			{"Alltoallv", func(displs []int, _ int) error { return mpi.Alltoallv(w, make([]int64, 4), two, nil, m, two, displs) }},
			{"NeighborAlltoallv", func(displs []int, _ int) error {
				return mpi.NeighborAlltoallv(c, make([]int64, 4), two, nil, m, two, displs)
			}},
			{"Alltoallw", func(_ []int, at int) error {
				return w.Bufs().Alltoallw([]mpi.Buf{part(4, 2), part(6, 2)}, []mpi.Buf{part(0, 2), part(at, 2)})
			}},
			{"NeighborAlltoallw", func(_ []int, at int) error {
				return c.Bufs().NeighborAlltoallw([]mpi.Buf{part(4, 2), part(6, 2)}, []mpi.Buf{part(at, 2), part(0, 2)})
			}},
			{"Iallgatherv", func(displs []int, _ int) error {
				_, err := mpi.Iallgatherv(w, make([]int64, 2), m, two, displs).Wait()
				return err
			}},
			{"AllgathervInit", func(displs []int, _ int) error {
				p := mpi.AllgathervInit(w, make([]int64, 2), m, two, displs)
				err := p.Start()
				if err == nil {
					_, err = p.Wait()
				}
				return err
			}},
		} {
			if err := form.call(gap, 2); err != nil {
				t.Errorf("%s: %v", form.name, err)
			}
			for _, x := range []struct {
				displs []int
				at     int
			}{{[]int{0, 1}, 1}, {[]int{1, 0}, 0}} {
				wantError(t, form.call(x.displs, x.at), mpi.ErrArg, "receive overlap")
			}
		}
		err = w.Bufs().Alltoallw([]mpi.Buf{part(0, 1), part(1, 1)}, []mpi.Buf{part(1, 1), part(0, 1)})
		wantError(t, err, mpi.ErrArg, "buffer 1 to send and 0 to receive overlap")
		must(t, w.Bufs().Alltoallw([]mpi.Buf{part(0, 1), part(1, 1)}, []mpi.Buf{part(0, 1), part(1, 1)}))
		// On a root only; an empty block may stand anywhere.
		err = mpi.Gatherv(w, make([]int64, 1+w.Rank()), m, []int{1, 2}, []int{1, 0}, 0)
		if w.Rank() == 0 {
			wantError(t, err, mpi.ErrArg, "the blocks [0, 0+2) and [1, 1+1) to receive overlap")
		} else {
			wantError(t, err, mpi.ErrMismatch, "Gatherv, which fails there")
		}
		must(t, mpi.Gatherv(w, make([]int64, 2*w.Rank()), m, []int{0, 2}, []int{1, 0}, 0))

		// A call that is through, but not waited for, keeps its own buffers.
		for range 20 {
			r := c.Bufs().IneighborAlltoallw([]mpi.Buf{part(4, 2), part(6, 2)}, []mpi.Buf{part(0, 2), part(2, 2)})
			must(t, w.Barrier())
			other := make([]int64, 2)
			halves := []mpi.Buf{mpi.BufOf(other[:1]), mpi.BufOf(other[1:])}
			must(t, c.Bufs().NeighborAlltoallw([]mpi.Buf{part(4, 1), part(6, 1)}, halves))
			must(t, c.Bufs().NeighborAlltoallw([]mpi.Buf{part(4, 1), part(6, 1)}, halves))
			_, err := r.Wait()
			must(t, err)
		}

		// Buffers of w-forms are in use like others.
		r := w.Bufs().Ialltoallw([]mpi.Buf{part(4, 2), part(6, 2)}, []mpi.Buf{part(0, 2), part(2, 2)})
		_, err = mpi.Irecv(w, m[7:], 1-w.Rank(), 0).Wait()
		wantError(t, err, mpi.ErrInUse, "Alltoallw")
		_, err = r.Wait()
		must(t, err)
	}, checking)
}

func TestCheckReadyMode(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, n := range []int{1, 100000} {
			buf := make([]int64, n)
			for _, posted := range []bool{true, false} {
				if w.Rank() == 0 {
					must(t, w.Barrier())
					r := mpi.Irsend(w, buf, 1, 0)
					must(t, mpi.Send(w, buf[:1], 1, 1))
					_, err := r.Wait()
					must(t, err)
					continue
				}
				var r mpi.Request
				if posted {
					r = mpi.Irecv(w, buf, 0, 0)
				}
				must(t, w.Barrier())
				_, err := mpi.Recv(w, make([]int64, 1), 0, 1)
				must(t, err)
				if posted {
					_, err := r.Wait()
					must(t, err)
					continue
				}
				st, err := mpi.Recv(w, buf, 0, 0)
				wantError(t, err, mpi.ErrNotReady, "peer 0, tag 0")
				if st.Count != n {
					t.Fatalf("the message was not delivered: %+v", st)
				}
			}
		}
	}, checking)
}

func TestCheckCollectivesAgree(t *testing.T) {
	const odd = 2
	buf := func(n int) []int64 { return make([]int64, n) }
	cases := []struct {
		name  string
		all   func(w *mpi.Comm) error
		other func(w *mpi.Comm) error // what rank odd calls
		words []string
	}{
		{"operation", func(w *mpi.Comm) error { return w.Barrier() },
			func(w *mpi.Comm) error { return mpi.Bcast(w, buf(2), 0) },
			[]string{"rank 2 calls", "Bcast of 2 int64 from root 0", "rank 0 calls", "Barrier"}},
		{"root", func(w *mpi.Comm) error { return mpi.Bcast(w, buf(3), 0) },
			func(w *mpi.Comm) error { return mpi.Bcast(w, buf(3), 1) }, []string{"from root 1", "from root 0"}},
		{"count", func(w *mpi.Comm) error { return mpi.Bcast(w, buf(3), 0) },
			func(w *mpi.Comm) error { return mpi.Bcast(w, buf(4), 0) }, []string{"of 4 int64", "of 3 int64"}},
		{"type", func(w *mpi.Comm) error { return mpi.Bcast(w, buf(3), 0) },
			func(w *mpi.Comm) error { return mpi.Bcast(w, make([]float64, 3), 0) }, []string{"of 3 float64", "of 3 int64"}},
		{"reduction", func(w *mpi.Comm) error { return mpi.Allreduce(w, buf(3), buf(3), mpi.Sum) },
			func(w *mpi.Comm) error { return mpi.Allreduce(w, buf(3), buf(3), mpi.Max) }, []string{"with Max", "with Sum"}},
		{"form", func(w *mpi.Comm) error { _, err := w.Ibarrier().Wait(); return err },
			func(w *mpi.Comm) error { _, err := mpi.Ibcast(w, buf(1), 2).Wait(); return err }, []string{"Barrier", "Bcast of 1"}},
		{"persistent", func(w *mpi.Comm) error { return w.BarrierInit().Start() },
			func(w *mpi.Comm) error { return mpi.BcastInit(w, buf(1), 2).Start() }, []string{"persistent Barrier", "persistent Bcast of 1"}},
		{"init", func(w *mpi.Comm) error { return w.BarrierInit().Start() },
			func(w *mpi.Comm) error { return w.Barrier() }, []string{"persistent Barrier", `"Barrier"`}},
	}
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		for _, c := range cases {
			f := c.all
			if w.Rank() == odd {
				f = c.other
			}
			// Every rank names the same rank, and the next call works.
			wantError(t, f(w), mpi.ErrMismatch, append(c.words, "peer 2")...)
			if n, err := mpi.AllreduceOne(w, 1, mpi.Sum); err != nil || n != 3 {
				t.Fatalf("after %s: %d, %v", c.name, n, err)
			}
		}
		// A call that fails on one rank before it starts.
		root, class := 1, mpi.ErrMismatch
		if w.Rank() == odd {
			root, class = 7, mpi.ErrRoot
		}
		wantError(t, mpi.Bcast(w, buf(1), root), class, "root 7 of 3")
		b := buf(2)
		if w.Rank() == odd {
			r := mpi.Irecv(w, b, 0, 0)
			wantError(t, mpi.Bcast(w, b, 0), mpi.ErrInUse, "Irecv")
			_, err := mpi.Ibcast(w, b, 0).Wait()
			wantError(t, err, mpi.ErrInUse, "Irecv")
			must(t, r.Cancel())
			_, err = r.Wait()
			must(t, err)
		} else {
			wantError(t, mpi.Bcast(w, b, 0), mpi.ErrMismatch, "rank 2 calls", "Irecv")
			_, err := mpi.Ibcast(w, b, 0).Wait()
			wantError(t, err, mpi.ErrMismatch, "rank 2 calls", "Irecv")
		}
		must(t, w.Barrier())
	}, checking)
}

// A nonblocking collective must not wait for the others at its start.
func TestCheckNonblockingCollectives(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		b, in, out := make([]int64, 1), []int64{1}, make([]int64, 1)
		if w.Rank() == 0 {
			r1, r2 := w.Ibarrier(), mpi.Iallreduce(w, in, out, mpi.Sum)
			must(t, mpi.Send(w, b, 1, 0))
			must(t, mpi.Waitall([]mpi.Request{r2, r1}))
		} else {
			_, err := mpi.Recv(w, b, 0, 0)
			must(t, err)
			must(t, mpi.Waitall([]mpi.Request{w.Ibarrier(), mpi.Iallreduce(w, in, out, mpi.Sum)}))
		}
		if out[0] != 2 {
			t.Fatalf("sum is %d", out[0])
		}
		p := mpi.AllreduceInit(w, in, out, mpi.Prod)
		for range 3 {
			must(t, p.Start())
			_, err := p.Wait()
			must(t, err)
		}
	}, checking)
}
