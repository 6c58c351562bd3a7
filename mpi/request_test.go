// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"slices"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

func TestNullAndStaleRequests(t *testing.T) {
	overAll(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		var null mpi.Request
		st, err := null.Wait()
		if err != nil || st.Source != mpi.AnySource || st.Tag != mpi.AnyTag || !null.IsNull() {
			t.Fatalf("null: %+v, %v", st, err)
		}
		if done, _, err := null.Test(); !done || err != nil {
			t.Fatal("Test of the null request:", done, err)
		}
		if done, _, err := null.GetStatus(); !done || err != nil {
			t.Fatal("GetStatus of the null request:", done, err)
		}
		wantError(t, null.Cancel(), mpi.ErrRequest, "Cancel")
		wantError(t, null.Free(), mpi.ErrRequest, "Free")

		in := make([]int64, 1)
		r := mpi.Irecv(w, in, 0, 1)
		if done, _, err := r.GetStatus(); done || err != nil {
			t.Fatal("GetStatus:", done, err)
		}
		must(t, mpi.Send(w, []int64{5}, 0, 1))
		for done := false; !done; {
			if done, st, err = r.GetStatus(); err != nil {
				t.Fatal(err)
			}
		}
		if st.Count != 1 || in[0] != 5 {
			t.Fatalf("GetStatus: %+v", st)
		}
		_, err = r.Wait()
		must(t, err)

		// The record of r may serve another operation by now, which must not
		// notice.
		next := mpi.Irecv(w, in, 0, 2)
		_, err = r.Wait()
		wantError(t, err, mpi.ErrRequest)
		_, _, err = r.Test()
		wantError(t, err, mpi.ErrRequest)
		_, _, err = r.GetStatus()
		wantError(t, err, mpi.ErrRequest)
		wantError(t, r.Cancel(), mpi.ErrRequest)
		wantError(t, r.Free(), mpi.ErrRequest)
		_, _, err = mpi.Waitany([]mpi.Request{{}, r})
		wantError(t, err, mpi.ErrRequest)
		if _, err := r.Wait(); err == nil || err.Error() != "gompi: Wait: invalid request: the request was completed by Wait or Test, or freed, before" {
			t.Errorf("Wait of a stale request: %v", err)
		}
		wantError(t, mpi.Waitall([]mpi.Request{r}), mpi.ErrRequest)
		must(t, mpi.Send(w, []int64{6}, 0, 2))
		if st, err := next.Wait(); err != nil || st.Tag != 2 || in[0] != 6 {
			t.Fatalf("the next operation: %+v, %v", st, err)
		}

		free := mpi.Irecv(w, in, 0, 3)
		must(t, free.Free())
		must(t, mpi.Ssend(w, []int64{7}, 0, 3))
		_, err = free.Wait()
		wantError(t, err, mpi.ErrRequest)
	})
}

func TestCompletionOfMixtures(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		other := 1 - w.Rank()
		bufs := make([][]int64, 6)
		post := func() []mpi.Request {
			reqs := make([]mpi.Request, 6)
			for i := range bufs {
				bufs[i] = make([]int64, 1)
				if i != 2 {
					reqs[i] = mpi.Irecv(w, bufs[i], other, i)
				}
			}
			return reqs
		}
		send := func(tags ...int) {
			for _, tag := range tags {
				must(t, mpi.Send(w, []int64{int64(tag)}, other, tag))
			}
		}
		step := func() { must(t, w.Barrier()) }

		// Any: one after the other, then Undefined.
		reqs := post()
		step()
		if done, _, _, err := mpi.Testany(reqs); done || err != nil {
			t.Fatal("Testany:", done, err)
		}
		if done, err := mpi.Testall(reqs); done || err != nil {
			t.Fatal("Testall:", done, err)
		}
		if cs := mpi.Testsome(reqs); len(cs) != 0 {
			t.Fatal("Testsome:", cs)
		}
		step()
		send(3)
		i, st, err := mpi.Waitany(reqs)
		if i != 3 || err != nil || st.Tag != 3 || !reqs[3].IsNull() {
			t.Fatal("Waitany:", i, st, err)
		}
		step()
		send(0, 1, 4, 5)
		var got []int
		for {
			done, i, st, err := mpi.Testany(reqs)
			if err != nil {
				t.Fatal(err)
			}
			if done && i == mpi.Undefined {
				break
			}
			if done {
				got = append(got, i)
				if st.Tag != i || bufs[i][0] != int64(i) {
					t.Fatalf("Testany %d: %+v", i, st)
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, []int{0, 1, 4, 5}) {
			t.Fatal("Testany gave", got)
		}
		if i, st, err := mpi.Waitany(reqs); i != mpi.Undefined || err != nil || st.Source != mpi.AnySource {
			t.Fatal("Waitany of nulls:", i, st, err)
		}
		if cs := mpi.Waitsome(reqs); cs != nil {
			t.Fatal("Waitsome of nulls:", cs)
		}
		if done, err := mpi.Testall(reqs); !done || err != nil {
			t.Fatal("Testall of nulls:", done, err)
		}
		must(t, mpi.Waitall(reqs))

		// Some.
		reqs = post()
		step()
		send(5, 1)
		got = nil
		for len(got) < 2 {
			for _, c := range mpi.Waitsome(reqs) {
				must(t, c.Err)
				got = append(got, c.Index)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, []int{1, 5}) {
			t.Fatal("Waitsome gave", got)
		}
		step()
		send(0, 3, 4)
		for len(got) < 5 {
			for _, c := range mpi.Testsome(reqs) {
				must(t, c.Err)
				got = append(got, c.Index)
			}
		}

		// All, with statuses, among complete and failed ones.
		reqs = post()
		step()
		reqs[2] = mpi.Isend(w, []int64{1}, 9, 0)
		send(0, 1, 3, 4, 5)
		ended := make([]mpi.Completion, 6)
		wantError(t, mpi.WaitallStatuses(reqs, ended[:5]), mpi.ErrCount, "5 completions, 6 expected")
		wantError(t, mpi.WaitallStatuses(reqs, ended), mpi.ErrRank, "rank 9 of 2")
		checkEnded := func() {
			t.Helper()
			for i, c := range ended {
				if c.Index != i || i != 2 && (c.Err != nil || c.Status.Source != other || c.Status.Tag != i || c.Status.Count != 1) {
					t.Fatalf("completion %d: %+v", i, c)
				}
			}
		}
		checkEnded()
		wantError(t, ended[2].Err, mpi.ErrRank, "rank 9 of 2")
		if n := slices.IndexFunc(reqs, func(r mpi.Request) bool { return !r.IsNull() }); n >= 0 {
			t.Fatalf("request %d is left", n)
		}

		// Looked at, then tested with statuses.
		reqs = post()
		step()
		send(4)
		for i := mpi.Undefined; i != 4; {
			_, i, st, err = mpi.GetStatusAny(reqs)
			must(t, err)
		}
		if cs := mpi.GetStatusSome(reqs); len(cs) != 1 || cs[0].Index != 4 || cs[0].Status != st || st.Tag != 4 {
			t.Fatalf("GetStatusSome: %+v, GetStatusAny: %+v", cs, st)
		}
		if done, err := mpi.GetStatusAll(reqs, ended); done || err != nil {
			t.Fatal("GetStatusAll:", done, err)
		}
		step()
		reqs[2] = mpi.Isend(w, []int64{1}, 9, 0)
		send(0, 1, 3, 5)
		clear(ended)
		for done := false; !done; {
			if done, err = mpi.GetStatusAll(reqs, ended); done {
				wantError(t, err, mpi.ErrRank, "rank 9 of 2")
			}
		}
		checkEnded()
		clear(ended)
		done, err := mpi.TestallStatuses(reqs, ended)
		if !done {
			t.Fatal("TestallStatuses of complete requests:", done, err)
		}
		wantError(t, err, mpi.ErrRank, "rank 9 of 2")
		checkEnded()
		if done, i, _, err := mpi.GetStatusAny(reqs); !done || i != mpi.Undefined || err != nil {
			t.Fatal("GetStatusAny of nulls:", done, i, err)
		}

		reqs = post()
		step()
		send(0, 1, 3, 4, 5)
		for done := false; !done; {
			done, err = mpi.Testall(reqs)
			must(t, err)
		}
		for i, b := range bufs {
			if i != 2 && b[0] != int64(i) {
				t.Fatalf("buffer %d holds %d", i, b[0])
			}
		}
		step()
	})
}

func TestCancel(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		buf := make([]int64, 100000)
		small := buf[:1]
		if w.Rank() == 1 {
			must(t, w.Barrier())
			// What was cancelled has not come; what was too late has.
			if found, _, err := w.Iprobe(0, 1); found || err != nil {
				t.Fatal("a cancelled message is there:", err)
			}
			_, err := mpi.Recv(w, small, 0, 2)
			must(t, err)
			must(t, w.Barrier())
			return
		}
		r := mpi.Irecv(w, buf, mpi.AnySource, mpi.AnyTag)
		must(t, r.Cancel())
		st, err := r.Wait()
		if err != nil || !st.Cancelled {
			t.Fatalf("cancelled receive: %+v, %v", st, err)
		}
		for _, s := range []mpi.Request{mpi.Issend(w, small, 1, 1), mpi.Isend(w, buf, 1, 1), mpi.Issend(w, buf, 1, 1)} {
			must(t, s.Cancel())
			st, err := s.Wait()
			if err != nil || !st.Cancelled {
				t.Fatalf("cancelled send: %+v, %v", st, err)
			}
		}
		s := mpi.Issend(w, small, 1, 2)
		must(t, w.Barrier())
		must(t, w.Barrier()) // tag 2 was received
		must(t, s.Cancel())
		if st, err := s.Wait(); err != nil || st.Cancelled {
			t.Fatalf("send that had been matched: %+v, %v", st, err)
		}
	})
}

// Only sends and receives can be cancelled and freed (MPI 4.1 sections 3.7.3,
// 3.8.4 and 6.12); a refused call changes nothing.
func TestCancelAndFreeOfOthers(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		refused := func(r mpi.Request, op string) {
			wantError(t, r.Cancel(), mpi.ErrRequest, "Cancel on ", op, "no send or receive")
			wantError(t, r.Free(), mpi.ErrRequest, "Free on ", op, "no send or receive")
			_, err := r.Wait()
			must(t, err)
		}
		sum := make([]int64, 1)
		refused(w.Ibarrier(), "Barrier")
		refused(mpi.Iallreduce(w, []int64{1}, sum, mpi.Sum), "Allreduce")
		if sum[0] != 2 {
			t.Fatal("sum", sum)
		}
		p := w.BarrierInit()
		must(t, p.Start())
		wantError(t, p.Cancel(), mpi.ErrRequest)
		wantError(t, p.Free(), mpi.ErrRequest)
		refused(p.Request(), "Barrier")
		must(t, p.Free())
		p = mpi.PrecvInit(w, sum, 1, 1-w.Rank(), 1)
		must(t, p.Start())
		s := mpi.PsendInit(w, []int64{5}, 1, 1-w.Rank(), 1)
		must(t, s.Start())
		must(t, s.Pready(0))
		refused(p.Request(), "PrecvInit")
		refused(s.Request(), "PsendInit")
		d, r := w.Idup()
		refused(r, "Idup")
		must(t, d.Free())
		for _, r := range []mpi.Request{mpi.Isend(w, sum, mpi.ProcNull, 0), mpi.Isend(w, sum, 9, 0)} {
			must(t, r.Cancel())
			must(t, r.Free())
		}
	})
}

func TestMatchedProbe(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		if w.Rank() == 0 {
			for _, n := range sizes {
				buf := make([]int64, n)
				fill(buf, n)
				must(t, mpi.Waitall([]mpi.Request{mpi.Isend(w, buf, 1, 4), mpi.Isend(w, buf, 1, 5)}))
			}
			must(t, mpi.Send(w, []byte{1, 2, 3}, 1, 6))
			return
		}
		for _, n := range sizes {
			st, err := w.Probe(mpi.AnySource, 4)
			if err != nil || st.Bytes != int64(8*n) || st.Tag != 4 || mpi.Elements[int64](st) != n {
				t.Fatalf("Probe: %+v, %v", st, err)
			}
			m, st, err := w.Mprobe(0, mpi.AnyTag)
			if err != nil || st.Tag != 4 {
				t.Fatalf("Mprobe: %+v, %v", st, err)
			}
			var m2 *mpi.Message
			for found := false; !found; {
				found, m2, st, err = w.Improbe(0, mpi.AnyTag)
				must(t, err)
			}
			if st.Tag != 5 {
				t.Fatalf("Improbe found the message that Mprobe had taken: %+v", st)
			}
			b1, b2 := make([]int64, n), make([]int64, n)
			r := mpi.Imrecv(m2, b2)
			st, err = mpi.Mrecv(m, b1)
			if err != nil || st.Tag != 4 || st.Count != n {
				t.Fatalf("Mrecv: %+v, %v", st, err)
			}
			_, err = r.Wait()
			must(t, err)
			checkFill(t, b1, n)
			checkFill(t, b2, n)
			_, err = mpi.Mrecv(m, b1)
			wantError(t, err, mpi.ErrRequest)
		}
		// Three bytes are no int64: the message is gone, the error tells.
		v, _, err := mpi.RecvNew[int64](w, 0, 6)
		wantError(t, err, mpi.ErrTruncate, "3 bytes, 0 expected")
		if len(v) != 0 {
			t.Fatal("RecvNew returned", v)
		}
		if found, _, err := w.Iprobe(mpi.AnySource, mpi.AnyTag); found || err != nil {
			t.Fatal("a message is left:", found, err)
		}
		found, m, st, err := w.Improbe(mpi.ProcNull, 3)
		if !found || err != nil || st.Source != mpi.ProcNull {
			t.Fatalf("Improbe of ProcNull: %v %+v %v", found, st, err)
		}
		if st, err := mpi.Mrecv(m, make([]int64, 1)); err != nil || st.Source != mpi.ProcNull {
			t.Fatalf("Mrecv of ProcNull: %+v, %v", st, err)
		}
	})
}

func TestRecvNew(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for _, n := range sizes {
			if w.Rank() == 0 {
				buf := make([]int64, n)
				fill(buf, 3)
				must(t, mpi.Send(w, buf, 1, 0))
				continue
			}
			// A type that cannot be received leaves the message in place.
			_, _, err := mpi.RecvNew[*int](w, mpi.AnySource, mpi.AnyTag)
			wantError(t, err, mpi.ErrType)
			got, st, err := mpi.RecvNew[int64](w, mpi.AnySource, mpi.AnyTag)
			if err != nil || len(got) != n || st.Count != n || st.Source != 0 {
				t.Fatalf("RecvNew of %d: %d, %+v, %v", n, len(got), st, err)
			}
			checkFill(t, got, 3)
		}
	})
}
