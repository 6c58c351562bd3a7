// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"slices"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

// eachRank runs f on all of ps at once and returns their errors.
func eachRank(ps []*mpi.Process, f func(w *mpi.Comm) error) []error {
	errs := make([]error, len(ps))
	done := make(chan int)
	for i, p := range ps {
		go func() {
			errs[i] = f(p.World())
			done <- i
		}()
	}
	for range ps {
		<-done
	}
	return errs
}

// A rank leaves in order, with and without having spoken to the others.
func TestPeerLeaves(t *testing.T) {
	for _, tr := range transports {
		for _, met := range []bool{true, false} {
			j := testjob.New(t, mpitest.Transport(tr))
			ps := boot(t, j, 4)
			if met {
				for _, err := range eachRank(ps, (*mpi.Comm).Barrier) {
					must(t, err)
				}
			}
			last := ps[3].World()
			must(t, mpi.Send(last, []int64{7}, 0, 1))
			w := ps[0].World()
			waiting := mpi.Irecv(w, make([]int64, 1), 3, 9)
			anybody := mpi.Irecv(w, make([]int64, 1), mpi.AnySource, 8)
			must(t, j.Leave(ps[3]))
			got := make([]int64, 1)
			_, err := mpi.Recv(w, got, 3, 1)
			must(t, err)
			if got[0] != 7 {
				t.Fatalf("%s: received %d", tr, got[0])
			}
			_, err = waiting.Wait()
			wantError(t, err, mpi.ErrLeft, "peer 3", "rank 3 has finalized; nothing more will come")
			if errors.Is(err, mpi.ErrProcFailed) {
				t.Errorf("%v is a failure", err)
			}
			_, err = mpi.Recv(w, got, 3, 2)
			wantError(t, err, mpi.ErrLeft)
			_, err = w.Probe(3, 2)
			wantError(t, err, mpi.ErrLeft)
			if found, _, err := w.Iprobe(3, 2); found || err != nil {
				t.Errorf("Iprobe: %v, %v", found, err)
			}
			if found, _, _, err := w.Improbe(3, 2); found || err != nil {
				t.Errorf("Improbe: %v, %v", found, err)
			}
			wantError(t, mpi.Send(w, got, 3, 2), mpi.ErrLeft)
			must(t, mpi.Send(ps[1].World(), got, 0, 8))
			_, err = anybody.Wait()
			must(t, err)
			for _, err := range eachRank(ps[:3], (*mpi.Comm).Barrier) {
				wantError(t, err, mpi.ErrLeft, "rank 3 has finalized")
			}
			for _, err := range eachRank(ps[:3], func(w *mpi.Comm) error {
				_, err := mpi.AllreduceOne(w, 1, mpi.Sum)
				return err
			}) {
				wantError(t, err, mpi.ErrLeft)
			}
			if f, n := w.Failed(), w.AckFailed(); len(f) != 0 || n != 0 {
				t.Errorf("failed: %v, %d acknowledged", f, n)
			}
			must(t, j.Leave(ps[1]))
			must(t, j.Leave(ps[2]))
			_, err = mpi.Recv(w, got, mpi.AnySource, 8)
			wantError(t, err, mpi.ErrLeft)
			if found, _, err := w.Iprobe(mpi.AnySource, 8); found || err != nil {
				t.Errorf("Iprobe from anybody: %v, %v", found, err)
			}
			must(t, j.Leave(ps[0]))
		}
	}
}

// A root that has sent its broadcast may leave before others come to it.
func TestRootLeavesAfterBcast(t *testing.T) {
	for _, tr := range transports {
		j := testjob.New(t, mpitest.Transport(tr))
		ps := boot(t, j, 3)
		for _, err := range eachRank(ps, (*mpi.Comm).Barrier) { // the first call may wait for all
			must(t, err)
		}
		must(t, mpi.Bcast(ps[0].World(), []int64{5}, 0))
		must(t, j.Leave(ps[0]))
		if _, err := ps[1].World().Probe(0, 0); !errors.Is(err, mpi.ErrLeft) { // they know
			t.Fatal(err)
		}
		for _, err := range eachRank(ps[1:], func(w *mpi.Comm) error {
			b := []int64{0}
			if err := mpi.Bcast(w, b, 0); err != nil || b[0] != 5 {
				return errors.Join(err, errors.New("wrong data"))
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("%s: %v", tr, err)
			}
		}
		must(t, j.Leave(ps[1]))
		must(t, j.Leave(ps[2]))
	}
}

// A process that joins late hears of those who have ended before.
func TestLateJoinerHearsOfEarlierEnds(t *testing.T) {
	for _, tr := range transports {
		j := testjob.New(t, mpitest.Transport(tr))
		seats := j.Add(4)
		start := func(i int) *mpi.Process {
			p, err := j.Boot(seats[i])
			must(t, err)
			return p
		}
		first, dead, gone := start(0), start(1), start(3)
		j.Kill(dead)
		must(t, j.Leave(gone))
		late := start(2)
		for _, p := range []*mpi.Process{late, first} { // the first may have heard of rank 3 alone
			failed, err := p.World().SyncFailed()
			must(t, err)
			if !slices.Equal(failed, []int{1}) {
				t.Errorf("%s: failed %v, want 1", tr, failed)
			}
		}
		for _, err := range eachRank([]*mpi.Process{first, late}, (*mpi.Comm).Barrier) {
			wantError(t, err, mpi.ErrProcFailed)
		}
		_, err := mpi.Recv(late.World(), []int64{0}, 3, 1)
		wantError(t, err, mpi.ErrLeft)
		must(t, j.Leave(first))
		must(t, j.Leave(late))
	}
}

// Whoever gets ErrProcFailed finds it in Failed, can acknowledge it and go on;
// survivors find each other again.
func TestAcknowledgeAndGoOn(t *testing.T) {
	for _, tr := range transports {
		for range 3 {
			j := testjob.New(t, mpitest.Transport(tr))
			ps := boot(t, j, 4)
			for _, err := range eachRank(ps, (*mpi.Comm).Barrier) {
				must(t, err)
			}
			living := ps[:3]
			errs := make(chan []error)
			go func() {
				errs <- eachRank(living, func(w *mpi.Comm) error {
					_, err := mpi.Recv(w, make([]int64, 1), 3, 1)
					if len(w.Failed()) != 1 || w.AckFailed() != 1 {
						return errors.Join(err, errors.New("Failed does not know"))
					}
					if !errors.Is(err, mpi.ErrProcFailed) {
						return errors.Join(err, errors.New("no failure"))
					}
					if err := mpi.Send(w, []int64{1}, (w.Rank()+1)%3, 2); err != nil {
						return err
					}
					if _, err := mpi.Recv(w, make([]int64, 1), mpi.AnySource, 2); err != nil {
						return err
					}
					failed, err := w.SyncFailed()
					if err != nil {
						return err
					}
					g, err := w.Group().Excl(failed)
					if err != nil {
						return err
					}
					c, err := mpi.CommFromGroup(g, "living")
					if err != nil {
						return err
					}
					return c.Barrier()
				})
			}()
			j.Kill(ps[3])
			for i, err := range <-errs {
				if err != nil {
					t.Errorf("%s: rank %d: %v", tr, i, err)
				}
			}
			for _, p := range living {
				must(t, j.Leave(p))
			}
		}
	}
}

// CommFromGroup does not wait for a first rank that has heard of a death and
// meets others without the dead.
func TestMeetingOfTheDeadEnds(t *testing.T) {
	for _, tr := range transports {
		j := testjob.New(t, mpitest.Transport(tr))
		ps := boot(t, j, 3)
		got := make(chan error, 1)
		go func() {
			_, err := mpi.CommFromGroup(ps[1].World().Group(), "all")
			got <- err
		}()
		j.Kill(ps[2])
		wantError(t, <-got, mpi.ErrProcFailed)
		must(t, j.Leave(ps[0]))
		must(t, j.Leave(ps[1]))
	}
}
