// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"slices"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// Persistent operations are completed among each other as requests are, without
// asking each start for its request.
func TestCompletionOfPersistents(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		other := 1 - w.Rank()
		const n = 4
		var in, out [n][]int64
		sends, ops := make([]*mpi.Persistent, n), make([]*mpi.Persistent, n, n+1)
		for i := range n {
			in[i], out[i] = make([]int64, 1), make([]int64, 1)
			sends[i] = mpi.SendInit(w, out[i], other, i)
			ops[i] = mpi.RecvInit(w, in[i], other, i)
		}
		ops = append(ops, mpi.RecvInit(w, in[0], mpi.ProcNull, 0))
		ended := make([]mpi.Completion, n+1)
		round := int64(0)
		start := func() {
			round++
			for i := range n {
				out[i][0] = 10*round + int64(i)
			}
			must(t, mpi.Startall(ops))
			must(t, mpi.Startall(sends))
		}
		check := func(got ...int) {
			t.Helper()
			slices.Sort(got)
			if !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
				t.Fatal("completed were", got)
			}
			for i := range n {
				if in[i][0] != 10*round+int64(i) {
					t.Fatalf("round %d: %v", round, in)
				}
			}
			if i := slices.IndexFunc(ops, (*mpi.Persistent).Active); i >= 0 {
				t.Fatalf("operation %d is active", i)
			}
			must(t, mpi.Waitall(sends))
			must(t, w.Barrier())
		}
		start()
		must(t, mpi.Waitall(ops))
		check(0, 1, 2, 3, 4)
		start()
		must(t, mpi.WaitallStatuses(ops, ended))
		if ended[1].Status.Tag != 1 || ended[1].Status.Count != 1 || ended[n].Status.Source != mpi.ProcNull {
			t.Fatalf("%+v", ended)
		}
		check(0, 1, 2, 3, 4)
		start()
		for done := false; !done; {
			var err error
			done, err = mpi.GetStatusAll(ops, ended)
			must(t, err)
		}
		if done, err := mpi.Testall(ops); !done || err != nil {
			t.Fatal("Testall:", done, err)
		}
		check(0, 1, 2, 3, 4)
		for _, waitany := range []func() int{
			func() int { i, _, err := mpi.Waitany(ops); must(t, err); return i },
			func() int {
				for {
					if done, i, _, err := mpi.Testany(ops); done {
						must(t, err)
						return i
					}
				}
			},
		} {
			start()
			var got []int
			for i := waitany(); i != mpi.Undefined; i = waitany() {
				got = append(got, i)
			}
			check(got...)
		}
		start()
		var got []int
		for c := range mpi.Completed(ops) {
			must(t, c.Err)
			got = append(got, c.Index)
		}
		check(got...)
		if cs := mpi.Waitsome(ops); cs != nil {
			t.Fatal("Waitsome of inactive ones:", cs)
		}
		for _, p := range append(ops, sends...) {
			must(t, p.Free())
		}
		wantError(t, mpi.Waitall(ops), mpi.ErrRequest, "RecvInit is freed")
		_, _, err := mpi.Waitany(ops)
		wantError(t, err, mpi.ErrRequest, "RecvInit is freed")
	})
}

// A loop over Completed that is left early leaves the other requests, those
// that are complete too.
func TestCompleted(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		const n = 50
		for stop := 0; stop <= n; stop += 10 {
			reqs, bufs := make([]mpi.Request, n), make([]int64, n)
			for i := range n {
				reqs[i] = mpi.Irecv(w, bufs[i:i+1], 1-w.Rank(), i)
			}
			reqs[7].Cancel()
			for i := range n {
				if i != 7 {
					must(t, mpi.Send(w, []int64{int64(i)}, 1-w.Rank(), i))
				}
			}
			must(t, w.Barrier())
			var got []int
			take := func(c mpi.Completion) {
				must(t, c.Err)
				if i := c.Index; c.Status.Cancelled != (i == 7) || i != 7 && (c.Status.Tag != i || c.Status.Count != 1 || bufs[i] != int64(i)) {
					t.Fatalf("%+v", c)
				}
				got = append(got, c.Index)
			}
			for c := range mpi.Completed(reqs) {
				if take(c); len(got) == stop {
					break
				}
			}
			for c := range mpi.Completed(reqs) {
				take(c)
			}
			slices.Sort(got)
			if len(got) != n || got[0] != 0 || got[n-1] != n-1 {
				t.Fatal(got)
			}
			for range mpi.Completed(reqs) {
				t.Fatal("a null request was completed")
			}
			must(t, w.Barrier())
		}
	})
}

func TestIsendrecv(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		other := 1 - w.Rank()
		for _, n := range sizes {
			out, in, both := make([]int64, n), make([]int32, n+3), make([]int64, n)
			fill(out, w.Rank())
			fill(both, w.Rank())
			small := make([]int32, 3)
			reqs := []mpi.Request{
				mpi.IsendrecvReplace(w, both, other, 1, other, mpi.AnyTag),
				mpi.Isendrecv(w, small, other, 2, in, other, 2),
				mpi.Isendrecv(w, out, mpi.ProcNull, 0, in[3:], mpi.ProcNull, 0),
			}
			ended := make([]mpi.Completion, len(reqs))
			must(t, mpi.WaitallStatuses(reqs, ended))
			checkFill(t, both, other)
			if a, b, c := ended[0].Status, ended[1].Status, ended[2].Status; a.Count != n || a.Tag != 1 || a.Source != other || b.Count != 3 || c.Source != mpi.ProcNull {
				t.Fatalf("%+v", ended)
			}
			rows := mpi.BufOf(both)
			_, err := w.Bufs().IsendrecvReplace(rows, other, 3, other, 3).Wait()
			must(t, err)
			checkFill(t, both, w.Rank())
			_, err = w.Bufs().Isendrecv(mpi.BufOf(out), other, 4, rows, other, 4).Wait()
			must(t, err)
			checkFill(t, both, other)
		}
		b := make([]int64, 4)
		for _, x := range []struct {
			r     mpi.Request
			class mpi.Class
			text  string
		}{
			{mpi.Isendrecv(w, b[:2], 7, 0, b[2:], other, 0), mpi.ErrRank, "rank 7 of 2"},
			{mpi.Isendrecv(w, b[:2], other, 0, b[2:], 7, 0), mpi.ErrRank, "rank 7 of 2"},
			{mpi.Isendrecv(w, b[:2], other, 0, b[1:], other, 0), mpi.ErrArg, "use IsendrecvReplace"},
		} {
			_, err := x.r.Wait()
			wantError(t, err, x.class, "Isendrecv", x.text)
		}
		must(t, w.Barrier())
		if found, st, err := w.Iprobe(mpi.AnySource, mpi.AnyTag); found || err != nil {
			t.Fatalf("a refused call has sent: %+v, %v", st, err)
		}
	})
}

// Completion and single elements allocate nothing.
func TestWaitallAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		in, out := make([]int64, 1), make([]int64, 1)
		reqs := make([]mpi.Request, 2)
		ops := []*mpi.Persistent{mpi.RecvInit(w, in, 0, 2), mpi.SendInit(w, out, 0, 2)}
		if a := testing.AllocsPerRun(100, func() {
			reqs[0], reqs[1] = mpi.Irecv(w, in, 0, 1), mpi.Isend(w, out, 0, 1)
			must(t, mpi.Waitall(reqs))
			must(t, mpi.Startall(ops))
			must(t, mpi.Waitall(ops))
			must(t, mpi.SendOne(w, 5, 0, 3))
			if x, _, err := mpi.RecvOne[int](w, 0, 3); x != 5 || err != nil {
				t.Fatal(x, err)
			}
		}); a != 0 {
			t.Errorf("%v allocations", a)
		}
	})
}
