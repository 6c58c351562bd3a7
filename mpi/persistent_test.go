// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

func TestPersistentPointToPoint(t *testing.T) {
	inits := []struct {
		name string
		send func(c *mpi.Comm, buf []int64, dest, tag int) *mpi.Persistent
	}{
		{"SendInit", mpi.SendInit[int64]}, {"SsendInit", mpi.SsendInit[int64]},
		{"RsendInit", mpi.RsendInit[int64]}, {"BsendInit", mpi.BsendInit[int64]},
	}
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		other := 1 - w.Rank()
		must(t, w.SendBuffer().Attach(mpi.BufferAutomatic))
		for _, in := range inits {
			for _, n := range sizes {
				out, got := make([]int64, n), make([]int64, n)
				s, r := in.send(w, out, other, 3), mpi.RecvInit(w, got, other, 3)
				for round := range 3 {
					fill(out, round*1000+w.Rank())
					must(t, r.Start())
					// Ready mode: both receives are posted.
					must(t, w.Barrier())
					must(t, s.Start())
					st, err := r.Wait()
					if err != nil || st.Count != n || st.Source != other || st.Tag != 3 {
						t.Fatalf("%s of %d: %+v, %v", in.name, n, st, err)
					}
					checkFill(t, got, round*1000+other)
					_, err = s.Wait()
					must(t, err)
				}
				must(t, s.Free())
				must(t, r.Free())
			}
		}
		_, err := w.SendBuffer().Detach()
		must(t, err)
	})
}

func TestPersistentStates(t *testing.T) {
	overAll(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		out, in := []int64{7}, []int64{0}
		s, r := mpi.SendInit(w, out, 0, 1), mpi.RecvInit(w, in, 0, 1)

		// Inactive: Wait and Test return at once, Cancel fails.
		st, err := s.Wait()
		if err != nil || st.Source != mpi.AnySource || st.Tag != mpi.AnyTag || st.Bytes != 0 || st.Cancelled {
			t.Fatalf("inactive Wait: %+v, %v", st, err)
		}
		if done, _, err := r.Test(); !done || err != nil {
			t.Fatalf("inactive Test: %v, %v", done, err)
		}
		wantError(t, r.Cancel(), mpi.ErrRequest, "RecvInit", "inactive")
		if !r.Request().IsNull() || r.Active() {
			t.Fatal("an inactive operation has a request")
		}

		must(t, r.Start())
		wantError(t, r.Start(), mpi.ErrRequest, "RecvInit", "active already")
		if done, _, err := r.Test(); done || err != nil {
			t.Fatalf("Test of a receive without message: %v, %v", done, err)
		}
		must(t, mpi.Startall([]*mpi.Persistent{s}))
		wantError(t, mpi.Startall([]*mpi.Persistent{s, r}), mpi.ErrRequest, "SendInit", "RecvInit")
		for done := false; !done; {
			done, st, err = r.Test()
		}
		if err != nil || st.Count != 1 || in[0] != 7 {
			t.Fatalf("Test: %+v, %v", st, err)
		}
		_, err = s.Wait()
		must(t, err)

		// Completed as a request among others, it is inactive.
		must(t, mpi.Startall([]*mpi.Persistent{r, s}))
		reqs := []mpi.Request{{}, r.Request(), s.Request()}
		must(t, mpi.Waitall(reqs))
		if r.Active() || s.Active() {
			t.Fatal("active after Waitall of its request")
		}

		// Cancel, then the message is for the next start.
		must(t, r.Start())
		must(t, r.Cancel())
		st, err = r.Wait()
		if err != nil || !st.Cancelled {
			t.Fatalf("cancelled: %+v, %v", st, err)
		}
		must(t, s.Start())
		must(t, r.Start())
		if st, err = r.Wait(); err != nil || st.Cancelled || st.Count != 1 {
			t.Fatalf("start after Cancel: %+v, %v", st, err)
		}
		_, err = s.Wait()
		must(t, err)

		// An active one that is freed completes by itself.
		must(t, s.Start())
		must(t, s.Free())
		must(t, r.Start())
		_, err = r.Wait()
		must(t, err)
		must(t, r.Free())
		wantError(t, r.Start(), mpi.ErrRequest, "freed")
		_, err = r.Wait()
		wantError(t, err, mpi.ErrRequest, "freed")
		_, _, err = r.Test()
		wantError(t, err, mpi.ErrRequest, "freed")
		wantError(t, r.Cancel(), mpi.ErrRequest, "freed")
		wantError(t, r.Free(), mpi.ErrRequest, "freed")

		for _, p := range []*mpi.Persistent{mpi.SendInit(w, out, mpi.ProcNull, 1), mpi.RecvInit(w, in, mpi.ProcNull, 1)} {
			must(t, p.Start())
			wantError(t, p.Start(), mpi.ErrRequest)
			if st, err := p.Wait(); err != nil || st.Source != mpi.ProcNull || st.Tag != mpi.AnyTag || st.Count != 0 {
				t.Fatalf("ProcNull: %+v, %v", st, err)
			}
			must(t, p.Start())
			if st, err := p.Request().Wait(); err != nil || st.Source != mpi.ProcNull {
				t.Fatalf("ProcNull: %+v, %v", st, err)
			}
		}
	})
}

// Each rank starts its persistent collectives in an order of its own.
func TestPersistentCollectivesInAnyOrder(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		overAll(t, n, func(t *mpitest.T, w *mpi.Comm) {
			me := w.Rank()
			const rounds = 30
			sum, sumIn := make([]int64, 50), make([]int64, 50)
			bc := make([]int64, 3000)
			ag, agIn := make([]int64, 4*n), make([]int64, 4)
			counts, total := make([]int, n), 0
			for i := range counts {
				counts[i] = i + 1
				total += i + 1
			}
			av, avIn := make([]int64, total), make([]int64, me+1)
			root := n - 1
			ps := []*mpi.Persistent{
				mpi.AllreduceInit(w, sumIn, sum, mpi.Sum), mpi.BcastInit(w, bc, root),
				mpi.AllgatherInit(w, agIn, ag), mpi.AllgathervInit(w, avIn, av, counts, nil), w.BarrierInit(),
			}
			for round := range rounds {
				fill(sumIn, round)
				if me == root {
					fill(bc, round*7)
				}
				fill(agIn, round+100*me)
				fill(avIn, round+100*me)
				for i := range ps {
					must(t, ps[(i*(me%2*2+1)+me+round)%len(ps)].Start())
					if i == 1 {
						// Ordinary collectives are numbered apart.
						got, err := mpi.AllreduceOne(w, 1, mpi.Sum)
						if err != nil || got != n {
							t.Fatalf("Allreduce between Starts: %d, %v", got, err)
						}
					}
				}
				for i := range ps {
					_, err := ps[(i+me)%len(ps)].Wait()
					must(t, err)
				}
				for i, v := range sum {
					if v != int64(n*(round+i)) {
						t.Fatalf("round %d: sum[%d] is %d", round, i, v)
					}
				}
				checkFill(t, bc, round*7)
				at := 0
				for r := range n {
					checkFill(t, ag[4*r:4*r+4], round+100*r)
					checkFill(t, av[at:at+counts[r]], round+100*r)
					at += counts[r]
				}
			}
			must(t, ps[0].Start())
			wantError(t, ps[0].Cancel(), mpi.ErrRequest, "Allreduce")
			wantError(t, ps[0].Free(), mpi.ErrRequest, "active")
			_, err := ps[0].Wait()
			must(t, err)
			for _, p := range ps {
				must(t, p.Free())
			}
		})
	}
}

// The count of starts wraps: messages of a start that is long past must not
// reach the next with its tag.
func TestPersistentManyStarts(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		buf := make([]int64, 1)
		p := mpi.BcastInit(w, buf, 0)
		for i := range 5000 {
			if w.Rank() == 0 {
				buf[0] = int64(i)
			}
			must(t, p.Start())
			if _, err := p.Wait(); err != nil || buf[0] != int64(i) {
				t.Fatalf("start %d: %d, %v", i, buf[0], err)
			}
		}
	})
}

func TestPersistentInitErrors(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		b := []int64{1}
		wantError(t, mpi.SendInit(w, b, 4, 0).Start(), mpi.ErrRank, "SendInit", "rank 4 of 1")
		wantError(t, mpi.RecvInit(w, b, -7, 0).Start(), mpi.ErrRank, "RecvInit", "rank -7 of 1")
		wantError(t, mpi.SsendInit(w, b, 0, -3).Start(), mpi.ErrTag, "SsendInit", "tag -3")
		wantError(t, mpi.BsendInit(w, b, 0, 0).Start(), mpi.ErrBuffer, "BsendInit")
		wantError(t, mpi.RsendInit(w, []string{""}, 0, 0).Start(), mpi.ErrType, "string")
		wantError(t, mpi.BcastInit(w, b, 1).Start(), mpi.ErrRoot, "root 1 of 1")
		wantError(t, mpi.AllreduceInit(w, b, nil, mpi.Sum).Start(), mpi.ErrCount, "1 elements")
		// A wrong Init counts: the next is in step with the other ranks'.
		p := w.BarrierInit()
		must(t, p.Start())
		_, err := p.Wait()
		must(t, err)
	})
}

func TestPersistentAllocations(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		out, in := make([]int64, 10), make([]int64, 10)
		ps := []*mpi.Persistent{
			mpi.RecvInit(w, in, 0, 1), mpi.SendInit(w, out, 0, 1), mpi.AllreduceInit(w, out, make([]int64, 10), mpi.Sum), w.BarrierInit(),
			mpi.PrecvInit(w, make([]int64, 10), 5, 0, 1), mpi.PsendInit(w, out, 2, 0, 1),
		}
		round := func() {
			must(t, mpi.Startall(ps))
			must(t, ps[5].PreadyRange(0, 1))
			for _, p := range ps {
				_, err := p.Wait()
				must(t, err)
			}
		}
		if a := testing.AllocsPerRun(200, round); a != 0 {
			t.Errorf("%v allocations in a round of Start and Wait", a)
		}
	})
}
