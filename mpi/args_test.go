// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

type linked struct {
	Value int
	Inner struct {
		Points [2]float32
		Next   *linked
	}
}

type particle struct {
	Pos, Vel [3]float64
	ID       int32
	Alive    bool
}

// Every class of error that arguments can cause, through each kind of call,
// with the numbers in its text.
func TestArgumentErrors(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		b, c := []int64{1, 2}, []int64{3, 4}
		wait := func(r mpi.Request) error { _, err := r.Wait(); return err }
		recv := func(_ any, err error) error { return err }
		probe := func(_ bool, _ mpi.Status, err error) error { return err }
		comm := fmt.Sprintf("on WORLD rank %d", w.Rank())
		for _, x := range []struct {
			err   error
			class mpi.Class
			parts []string
		}{
			{mpi.Send(w, [][]float64{{1}}, 0, 0), mpi.ErrType, []string{"elements of type []float64", "send one flat []float64"}},
			{mpi.Send(w, [][]string{{""}}, 0, 0), mpi.ErrType, []string{"use package mpi/value"}},
			{mpi.Send(w, b, 2, 0), mpi.ErrRank, []string{"Send", comm, "rank 2 of 2"}},
			{mpi.Ssend(w, b, -1, 0), mpi.ErrRank, []string{"Ssend", "rank -1 of 2"}},
			{mpi.Rsend(w, b, -3, 0), mpi.ErrRank, []string{"Rsend", "rank -3 of 2"}},
			{mpi.Bsend(w, b, 9, 0), mpi.ErrRank, []string{"Bsend", "rank 9 of 2"}},
			{wait(mpi.Isend(w, b, 1<<40, 0)), mpi.ErrRank, []string{"Isend", "rank 1099511627776 of 2"}},
			{wait(mpi.Issend(w, b, 2, 0)), mpi.ErrRank, []string{"Issend"}},
			{wait(mpi.Irsend(w, b, 2, 0)), mpi.ErrRank, []string{"Irsend"}},
			{wait(mpi.Ibsend(w, b, 2, 0)), mpi.ErrRank, []string{"Ibsend"}},
			{recv(mpi.Recv(w, b, -3, 0)), mpi.ErrRank, []string{"Recv", "rank -3 of 2"}},
			{wait(mpi.Irecv(w, b, 2, 0)), mpi.ErrRank, []string{"Irecv", "rank 2 of 2"}},
			{recv(w.Probe(7, 0)), mpi.ErrRank, []string{"Probe", "rank 7 of 2"}},
			{probe(w.Iprobe(7, 0)), mpi.ErrRank, []string{"Iprobe"}},
			{recv(mpi.Sendrecv(w, b, 5, 0, c, 0, 0)), mpi.ErrRank, []string{"Sendrecv", "rank 5 of 2"}},
			{recv(mpi.SendrecvReplace(w, b, 0, 0, 5, 0)), mpi.ErrRank, []string{"rank 5 of 2"}},
			{mpi.Send(w, b, 1, -1), mpi.ErrTag, []string{"peer 1", "tag -1", "0..2147483647"}},
			{mpi.Send(w, b, 1, mpi.MaxTag+1), mpi.ErrTag, []string{"tag 2147483648"}},
			{recv(mpi.Recv(w, b, 1, -2)), mpi.ErrTag, []string{"tag -2"}},
			{recv(w.Probe(0, mpi.MaxTag+1)), mpi.ErrTag, []string{"tag 2147483648"}},
			{mpi.Send(w, []*int{nil}, 1, 0), mpi.ErrType, []string{"*int", "it is a pointer"}},
			{mpi.Send(w, []linked{{}}, 1, 0), mpi.ErrType, []string{"mpi_test.linked", "field Inner.Next is a pointer"}},
			{recv(mpi.Recv(w, [][]int{nil}, 1, 0)), mpi.ErrType, []string{"[]int", "slice"}},
			{mpi.Bcast(w, []map[int]int{nil}, 0), mpi.ErrType, []string{"map"}},
			{mpi.Bcast(w, b, 2), mpi.ErrRoot, []string{"Bcast", "root 2 of 2"}},
			{wait(mpi.Ibcast(w, b, -1)), mpi.ErrRoot, []string{"root -1 of 2"}},
			{mpi.Allreduce(w, b, c[:1], mpi.Sum), mpi.ErrCount, []string{"2 elements to send, 1 expected"}},
			{mpi.Allreduce(w, b, b[:2:2][1:], mpi.Sum), mpi.ErrCount, []string{"2 elements"}},
			{mpi.Allreduce(w, make([]bool, 1), make([]bool, 1), mpi.Sum), mpi.ErrOp, []string{"Sum of bool"}},
			{mpi.Allreduce(w, make([]particle, 1), make([]particle, 1), mpi.Max), mpi.ErrOp, []string{"Max of mpi_test.particle"}},
			{wait(mpi.Iallreduce(w, make([]complex64, 1), make([]complex64, 1), mpi.Min)), mpi.ErrOp, []string{"Min of complex64"}},
			{mpi.Allreduce(w, b, c, mpi.Op{}), mpi.ErrOp, []string{"int64"}},
			{mpi.Allgather(w, b, c), mpi.ErrCount, []string{"2 elements to receive, 4 expected"}},
			{mpi.Allgatherv(w, b, c, []int{2}, nil), mpi.ErrCount, []string{"1 counts, 2 expected"}},
			{mpi.Allgatherv(w, b, c, []int{2, -1}, nil), mpi.ErrCount, []string{"rank 1", "-1"}},
			{mpi.Allgatherv(w, b, c, []int{1, 1}, []int{0, 2}), mpi.ErrCount, []string{"[2, 2+1)", "2 elements"}},
			{mpi.Allgatherv(w, b, c, []int{1, 1}, []int{0}), mpi.ErrCount, []string{"1 displacements, 2 expected"}},
			{mpi.Allgatherv(w, b, c, []int{1, 1}, nil), mpi.ErrCount, []string{"2 elements to send, 1 expected"}},
			{recv(mpi.Sendrecv(w, b, 1, 0, b[1:], 1, 0)), mpi.ErrArg, []string{"overlap"}},
			{mpi.Send[int](nil, nil, 0, 0), mpi.ErrComm, []string{"nil"}},
			{recv(mpi.Recv[int](nil, nil, 0, 0)), mpi.ErrComm, []string{"nil"}},
		} {
			wantError(t, x.err, x.class, x.parts...)
			var e *mpi.Error
			if !errors.As(x.err, &e) || e.Class != x.class {
				t.Fatalf("%v is no *mpi.Error of its class", x.err)
			}
		}
		overlap := make([]int64, 3)
		wantError(t, mpi.Allreduce(w, overlap[:2], overlap[1:], mpi.Sum), mpi.ErrArg, "overlap")
		// After all that the communicator works.
		must(t, w.Barrier())
	})
}

func TestTruncation(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, n := range []int{10, 100000} {
			buf := make([]int64, n)
			if w.Rank() == 0 {
				fill(buf, 0)
				must(t, mpi.Send(w, buf, 1, 3))
				must(t, mpi.Ssend(w, buf, 1, 4))
				must(t, mpi.Send(w, buf, 1, 5))
				continue
			}
			for tag := 3; tag <= 5; tag++ {
				clear(buf)
				st, err := mpi.Recv(w, buf[:n/2], 0, tag)
				wantError(t, err, mpi.ErrTruncate, fmt.Sprintf("peer 0, tag %d", tag), fmt.Sprintf("%d bytes, %d expected", 8*n, 4*n))
				if st.Count != n/2 || st.Source != 0 || st.Tag != tag {
					t.Fatalf("status %+v", st)
				}
				checkFill(t, buf[:n/2], 0)
				if buf[n/2] != 0 && buf[n-1] != 0 {
					t.Fatal("written beyond the buffer")
				}
			}
		}
		must(t, w.Barrier())
	})
}

func TestEdges(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		other := 1 - w.Rank()
		// The largest tag, and no bytes at all.
		st, err := mpi.Sendrecv(w, []int32(nil), other, mpi.MaxTag, []int32{}, other, mpi.MaxTag)
		if err != nil || st.Count != 0 || st.Tag != mpi.MaxTag || st.Source != other {
			t.Fatalf("%+v, %v", st, err)
		}
		st, err = mpi.Sendrecv(w, make([]struct{}, 4), other, 0, make([]struct{}, 4), other, 0)
		if err != nil || st.Bytes != 0 {
			t.Fatalf("elements of no size: %+v, %v", st, err)
		}
		// Structs, and their count.
		out := []particle{{ID: 1, Alive: true}, {Pos: [3]float64{1, 2, 3}}}
		in := make([]particle, 5)
		st, err = mpi.Sendrecv(w, out, other, 1, in, mpi.AnySource, mpi.AnyTag)
		if err != nil || st.Count != 2 || in[0] != out[0] || in[1] != out[1] || mpi.Elements[byte](st) != int(st.Bytes) {
			t.Fatalf("%+v, %v", st, err)
		}
		// Bytes that are no whole number of elements.
		must(t, mpi.Send(w, []byte{1, 2, 3, 4, 5}, other, 2))
		st, err = mpi.Recv(w, make([]int32, 4), other, 2)
		if err != nil || st.Count != mpi.Undefined || st.Bytes != 5 || mpi.Elements[byte](st) != 5 {
			t.Fatalf("%+v, %v", st, err)
		}
		// ProcNull through every call.
		b := []int{9}
		for _, err := range []error{mpi.Send(w, b, mpi.ProcNull, 0), mpi.Ssend(w, b, mpi.ProcNull, 0), mpi.Rsend(w, b, mpi.ProcNull, 0), mpi.Bsend(w, b, mpi.ProcNull, 0)} {
			must(t, err)
		}
		reqs := []mpi.Request{
			mpi.Isend(w, b, mpi.ProcNull, 0), mpi.Issend(w, b, mpi.ProcNull, 0), mpi.Irsend(w, b, mpi.ProcNull, 0),
			mpi.Ibsend(w, b, mpi.ProcNull, 0), mpi.Irecv(w, b, mpi.ProcNull, 0),
		}
		ended := make([]mpi.Completion, len(reqs))
		must(t, mpi.WaitallStatuses(reqs, ended))
		sr, err := mpi.Sendrecv(w, b, mpi.ProcNull, 0, b[:0], mpi.ProcNull, 0)
		must(t, err)
		rv, err := mpi.Recv(w, b, mpi.ProcNull, 0)
		must(t, err)
		pr, err := w.Probe(mpi.ProcNull, 0)
		must(t, err)
		sts := []mpi.Status{sr, rv, pr}
		for _, c := range ended {
			sts = append(sts, c.Status)
		}
		for _, st := range sts {
			if st.Source != mpi.ProcNull || st.Tag != mpi.AnyTag || st.Bytes != 0 || st.Cancelled {
				t.Fatalf("status of ProcNull: %+v", st)
			}
		}
		v, _, err := mpi.RecvNew[int](w, mpi.ProcNull, 0)
		if err != nil || len(v) != 0 || b[0] != 9 {
			t.Fatal(v, b, err)
		}
	})
}

// Messages to oneself in every mode; the receive is posted before or after.
func TestSelf(t *testing.T) {
	overAll(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		self := w.Process().Self()
		must(t, self.SendBuffer().Attach(mpi.BufferAutomatic))
		for _, n := range sizes {
			out, in := make([]int64, n), make([]int64, n)
			fill(out, n)
			for i, start := range []func() mpi.Request{
				func() mpi.Request { return mpi.Isend(self, out, 0, 1) },
				func() mpi.Request { return mpi.Issend(self, out, 0, 1) },
				func() mpi.Request { return mpi.Ibsend(self, out, 0, 1) },
				func() mpi.Request { return mpi.Irsend(self, out, 0, 1) },
			} {
				r := mpi.Irecv(self, in, 0, 1)
				s := start()
				must(t, mpi.Waitall([]mpi.Request{s, r}))
				checkFill(t, in, n)
				if i == 3 {
					continue // ready mode wants the receive first
				}
				clear(in)
				s = start()
				_, err := mpi.Recv(self, in, mpi.AnySource, mpi.AnyTag)
				must(t, err)
				_, err = s.Wait()
				must(t, err)
				checkFill(t, in, n)
			}
			clear(in)
			r := mpi.Irecv(self, in, 0, 1)
			must(t, mpi.Ssend(self, out, 0, 1))
			_, err := r.Wait()
			must(t, err)
			checkFill(t, in, n)
			st, err := mpi.SendrecvReplace(self, in, 0, 1, 0, 1)
			if err != nil || st.Count != n {
				t.Fatal(st, err)
			}
			checkFill(t, in, n)
		}
		_, err := self.SendBuffer().Detach()
		must(t, err)
	})
}
