// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"math"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// Every wrong argument of a collective that one rank can see, with its numbers;
// the communicator works afterwards.
func TestCollectiveArgumentErrors(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		s := func(n int) []int64 { return make([]int64, n) }
		wait := func(r mpi.Request) error { _, err := r.Wait(); return err }
		start := func(p *mpi.Persistent) error { return p.Start() }
		one := []int{1, 1}
		m, other := s(8), 1-w.Rank()
		me := w.Rank()
		for _, x := range []struct {
			err   error
			class mpi.Class
			parts []string
		}{
			{mpi.Gather(w, s(1), s(2), 2), mpi.ErrRoot, []string{"Gather", "root 2 of 2"}},
			{mpi.Gather(w, s(1), s(2), mpi.Root), mpi.ErrRoot, []string{"root -3 of 2"}},
			{mpi.Gather(w, s(1), s(3), me), mpi.ErrCount, []string{"3 elements to receive, 2 expected"}},
			{mpi.Gather(w, m[:1], m[:2], me), pick(me == 0, 0, mpi.ErrArg), []string{"overlap"}},
			{mpi.Gatherv(w, s(1), s(2), []int{1}, nil, me), mpi.ErrCount, []string{"1 counts, 2 expected"}},
			{mpi.Gatherv(w, s(1), s(2), one, []int{0}, me), mpi.ErrCount, []string{"1 displacements, 2 expected"}},
			{mpi.Gatherv(w, s(1), s(2), []int{1, -1}, nil, me), mpi.ErrCount, []string{"rank 1", "-1"}},
			{mpi.Gatherv(w, s(1), s(2), []int{1, 2}, nil, me), mpi.ErrCount, []string{"block of rank 1, [1, 1+2)", "2 elements"}},
			{mpi.Gatherv(w, s(1), s(2), one, []int{-1, 0}, me), mpi.ErrCount, []string{"block of rank 0, [-1, -1+1)"}},
			{mpi.Gatherv(w, s(1), s(2), one, []int{0, math.MaxInt}, me), mpi.ErrCount, []string{"block of rank 1"}},
			{mpi.Gatherv(w, s(1), s(2), []int{math.MaxInt, math.MaxInt}, nil, me), mpi.ErrCount, []string{"block of rank 0"}},
			{mpi.Gatherv(w, s(2), s(2), one, nil, me), mpi.ErrCount, []string{"2 elements to send, 1 expected"}},
			{mpi.Scatter(w, s(3), s(1), me), mpi.ErrCount, []string{"3 elements to send, 2 expected"}},
			{mpi.Scatter(w, m[:2], m[other:][:1], me), mpi.ErrArg, []string{"overlap"}},
			{mpi.Scatterv(w, s(2), one, []int{0, 2}, s(1), me), mpi.ErrCount, []string{"[2, 2+1)", "elements to send"}},
			{mpi.Scatterv(w, s(2), one, nil, s(2), me), mpi.ErrCount, []string{"2 elements to receive, 1 expected"}},
			{mpi.Allgather(w, s(2), s(2)), mpi.ErrCount, []string{"2 elements to receive, 4 expected"}},
			{mpi.Allgather(w, m[other:][:1], m[:2]), mpi.ErrArg, []string{"overlap"}},
			{mpi.Allgatherv(w, s(1), s(2), one, []int{0, 2}), mpi.ErrCount, []string{"block of rank 1"}},
			{mpi.Alltoall(w, s(3), s(3)), mpi.ErrCount, []string{"3 elements to send for 2 blocks"}},
			{mpi.Alltoall(w, s(2), s(4)), mpi.ErrCount, []string{"4 elements to receive, 2 expected"}},
			{mpi.Alltoall(w, m[:4], m[2:6]), mpi.ErrArg, []string{"overlap"}},
			{mpi.Alltoallv(w, s(2), []int{1}, nil, s(2), one, nil), mpi.ErrCount, []string{"1 counts"}},
			{mpi.Alltoallv(w, s(2), one, nil, s(2), one, []int{0}), mpi.ErrCount, []string{"1 displacements"}},
			{mpi.Alltoallv(w, s(4), []int{2, 2}, nil, s(2), one, nil), mpi.ErrCount, []string{"1 basic elements to receive from itself, 2 expected"}},
			{mpi.Alltoallv(w, m[:4], one, nil, m[:4], one, []int{0, 2}), mpi.ErrArg, []string{"in place"}},
			{w.Bufs().Alltoallw(nil, make([]mpi.Buf, 2)), mpi.ErrCount, []string{"0 buffers to send, 2 expected"}},
			{w.Bufs().Alltoallw(make([]mpi.Buf, 2), make([]mpi.Buf, 3)), mpi.ErrCount, []string{"3 buffers to receive, 2 expected"}},
			{w.Bufs().Alltoallw([]mpi.Buf{mpi.BufOf([]*int{nil}), {}}, make([]mpi.Buf, 2)), mpi.ErrType, []string{"*int"}},
			{w.Bufs().Alltoallw([]mpi.Buf{mpi.BufOf(m[:2]), {}}, []mpi.Buf{mpi.BufOf(m[1:3]), {}}), mpi.ErrArg, []string{"rank 0 overlap"}},
			{mpi.Reduce(w, s(2), s(1), mpi.Sum, me), mpi.ErrCount, []string{"1 elements to receive, 2 expected"}},
			{mpi.Reduce(w, []bool{true}, []bool{false}, mpi.Sum, 0), mpi.ErrOp, []string{"Sum of bool"}},
			{mpi.Reduce(w, m[:2], m[1:3], mpi.Sum, me), mpi.ErrArg, []string{"overlap"}},
			{mpi.Allreduce(w, s(2), s(1), mpi.Sum), mpi.ErrCount, []string{"2 elements to send, 1 expected"}},
			{mpi.ReduceScatterBlock(w, s(3), s(1), mpi.Sum), mpi.ErrCount, []string{"3 elements to send, 2 expected"}},
			{mpi.ReduceScatterBlock(w, m[:4], m[1:3], mpi.Sum), mpi.ErrArg, []string{"overlap"}},
			{mpi.ReduceScatter(w, s(3), s(1), []int{1}, mpi.Sum), mpi.ErrCount, []string{"1 counts, 2 expected"}},
			{mpi.ReduceScatter(w, s(3), s(1), one, mpi.Sum), mpi.ErrCount, []string{"3 elements to send, 2 expected"}},
			{mpi.ReduceScatter(w, s(2), s(2), one, mpi.Sum), mpi.ErrCount, []string{"2 elements to receive, 1 expected"}},
			{mpi.ReduceScatter(w, s(2), s(1), []int{3, -1}, mpi.Sum), mpi.ErrCount, []string{"rank 0"}},
			{mpi.Scan(w, s(1), s(2), mpi.Max), mpi.ErrCount, []string{"Scan", "1 elements to send, 2 expected"}},
			{mpi.Exscan(w, m[:2], m[1:3], mpi.Max), mpi.ErrArg, []string{"Exscan", "overlap"}},
			{mpi.NeighborAlltoall(w, s(1), s(1)), mpi.ErrTopology, []string{"NeighborAlltoall", "without a topology"}},
			{w.Bufs().Bcast(mpi.BufOf([]chan int{nil}), 0), mpi.ErrType, []string{"chan int"}},
			{w.Bufs().Allgather(mpi.BufOf(s(1)), mpi.BufOf(make([]float64, 2))), mpi.ErrType, []string{"int64 to send, float64 to receive"}},
			{w.Bufs().Allreduce(mpi.BufOf(s(1)), mpi.BufOf(make([]uint64, 1)), mpi.Sum), mpi.ErrType, []string{"int64", "uint64"}},
			{w.Bufs().Allreduce(mpi.Buf{}, mpi.Buf{}, mpi.Sum), mpi.ErrType, []string{"without a type"}},
			{wait(mpi.Ialltoall(w, s(3), s(3))), mpi.ErrCount, []string{"3 elements"}},
			{wait(w.Bufs().Ialltoallw(nil, nil)), mpi.ErrCount, []string{"0 buffers"}},
			{start(mpi.ScanInit(w, s(1), s(2), mpi.Sum)), mpi.ErrCount, []string{"Scan"}},
			{mpi.Gather[int](nil, nil, nil, 0), mpi.ErrComm, []string{"Gather", "nil"}},
			{start(mpi.GatherInit[int](nil, nil, nil, 0)), mpi.ErrComm, []string{"Gather", "nil"}},
		} {
			if x.class == 0 {
				continue
			}
			wantError(t, x.err, x.class, x.parts...)
			var e *mpi.Error
			if !errors.As(x.err, &e) || e.Class != x.class {
				t.Fatalf("%v is no *mpi.Error of its class", x.err)
			}
		}
		if v, err := mpi.BcastOne(w, &m[0], 0); !errors.Is(err, mpi.ErrType) || v != nil {
			t.Fatalf("a pointer: %v, %v", v, err)
		}
		must(t, w.Barrier())
		d, err := w.Dup()
		must(t, err)
		must(t, d.Free())
		wantError(t, mpi.Scan(d, s(1), s(1), mpi.Sum), mpi.ErrComm, "Scan")
		wantError(t, mpi.Scan(d, s(1), s(2), mpi.Sum), mpi.ErrCount, "Scan")
	})
}

// Elements without bytes, and no elements.
func TestCollectivesOfNothing(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		none := make([]struct{}, 6)
		must(t, mpi.Bcast(w, none, 1))
		must(t, mpi.Allgather(w, none[:2], none))
		must(t, mpi.Alltoall(w, none, none))
		must(t, mpi.Allgatherv(w, none[:1], none, []int{1, 1, 1}, nil))
		must(t, mpi.Alltoallv(w, none, []int{2, 2, 2}, nil, none, []int{1, 1, 1}, []int{5, 5, 5}))
		must(t, mpi.Gatherv[int32](w, nil, nil, []int{0, 0, 0}, nil, 2))
		must(t, w.Bufs().Scatter(mpi.Buf{}, mpi.Buf{}, 0))
		must(t, w.Bufs().Alltoallw(make([]mpi.Buf, 3), make([]mpi.Buf, 3)))
		must(t, mpi.ReduceScatter(w, []int32(nil), nil, []int{0, 0, 0}, mpi.Sum))
		must(t, w.Barrier())
	})
}
