// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"testing"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// interLab makes collCases of an intercommunicator. A process is known by its
// group and its rank in it.
type interLab[T comparable] struct {
	*collLab[T]
	group     int
	rootGroup int
	sizes     [2]int
}

func id(group, rank int) int { return 50*group + rank }

func (l *interLab[T]) far() int { return l.sizes[1-l.group] }

// rootArg is how this process names the root.
func (l *interLab[T]) rootArg() int {
	switch {
	case l.group != l.rootGroup:
		return l.root
	case l.rank == l.root:
		return mpi.Root
	}
	return mpi.ProcNull
}

// leaf and atRoot choose what a process of that role has.
func (l *interLab[T]) leaf(s []T) []T {
	if l.group != l.rootGroup {
		return s
	}
	return nil
}

func (l *interLab[T]) atRoot(s []T) []T {
	if l.group == l.rootGroup && l.rank == l.root {
		return s
	}
	return nil
}

// mine is what this process contributes from element from on.
func (l *interLab[T]) mine(from, n int) []T { return l.of(id(l.group, l.rank), from, n) }

// reducedFar combines elements of all ranks of the remote group.
func (l *interLab[T]) reducedFar(from, n int) []T {
	s := l.of(id(1-l.group, 0), from, n)
	for r := 1; r < l.far(); r++ {
		for i := range s {
			s[i] = l.then(s[i], l.gen(id(1-l.group, r), from+i))
		}
	}
	return s
}

// gathered is what all remote ranks contribute, side by side.
func (l *interLab[T]) gathered(from int, count func(rank int) int) (all []T, counts []int) {
	for r := range l.far() {
		counts = append(counts, count(r))
		all = append(all, l.of(id(1-l.group, r), from, count(r))...)
	}
	return all, counts
}

// set gives a case its three forms.
func (x *collCase[T]) set(run func() error, start func() mpi.Request, prepare func() *mpi.Persistent) *collCase[T] {
	x.run, x.start, x.prepare = run, start, prepare
	return x
}

func (l *interLab[T]) cases() []*collCase[T] {
	c, n, root, op := l.c, l.n, l.rootArg(), l.op
	even := func(int) int { return n }
	cs := []*collCase[T]{l.barrier()}

	x := l.make("Bcast", l.atRoot(l.mine(0, n)), l.leaf(l.of(id(l.rootGroup, l.root), 0, n)), nil)
	buf := x.out
	if l.atRoot(x.in) != nil {
		buf = x.in
	}
	cs = append(cs, x.set(func() error { return mpi.Bcast(c, buf, root) },
		func() mpi.Request { return mpi.Ibcast(c, buf, root) },
		func() *mpi.Persistent { return mpi.BcastInit(c, buf, root) }))

	all, _ := l.gathered(0, even)
	g := l.make("Gather", l.leaf(l.mine(0, n)), l.atRoot(all), nil)
	cs = append(cs, g.set(func() error { return mpi.Gather(c, g.in, g.out, root) },
		func() mpi.Request { return mpi.Igather(c, g.in, g.out, root) },
		func() *mpi.Persistent { return mpi.GatherInit(c, g.in, g.out, root) }))

	all, counts := l.gathered(0, l.uneven)
	gv := l.make("Gatherv", l.leaf(l.mine(0, l.uneven(l.rank))), l.atRoot(all), nil)
	cs = append(cs, gv.set(func() error { return mpi.Gatherv(c, gv.in, gv.out, counts, nil, root) },
		func() mpi.Request { return mpi.Igatherv(c, gv.in, gv.out, counts, nil, root) },
		func() *mpi.Persistent { return mpi.GathervInit(c, gv.in, gv.out, counts, nil, root) }))

	s := l.make("Scatter", l.atRoot(l.mine(0, n*l.far())), l.leaf(l.of(id(l.rootGroup, l.root), l.rank*n, n)), nil)
	cs = append(cs, s.set(func() error { return mpi.Scatter(c, s.in, s.out, root) },
		func() mpi.Request { return mpi.Iscatter(c, s.in, s.out, root) },
		func() *mpi.Persistent { return mpi.ScatterInit(c, s.in, s.out, root) }))

	displs, end := make([]int, l.far()), 0
	for r := range displs {
		displs[r] = end
		end += counts[r] + 1
	}
	at := 0
	for r := range l.rank {
		at += l.uneven(r) + 1
	}
	sv := l.make("Scatterv", l.atRoot(l.mine(0, end)), l.leaf(l.of(id(l.rootGroup, l.root), at, l.uneven(l.rank))), nil)
	cs = append(cs, sv.set(func() error { return mpi.Scatterv(c, sv.in, counts, displs, sv.out, root) },
		func() mpi.Request { return mpi.Iscatterv(c, sv.in, counts, displs, sv.out, root) },
		func() *mpi.Persistent { return mpi.ScattervInit(c, sv.in, counts, displs, sv.out, root) }))

	rd := l.make("Reduce", l.leaf(l.mine(0, n)), l.atRoot(l.reducedFar(0, n)), nil)
	cs = append(cs, rd.set(func() error { return mpi.Reduce(c, rd.in, rd.out, op, root) },
		func() mpi.Request { return mpi.Ireduce(c, rd.in, rd.out, op, root) },
		func() *mpi.Persistent { return mpi.ReduceInit(c, rd.in, rd.out, op, root) }))
	return append(cs, l.rootless()...)
}

// rootless are the operations in which each group gets what the other has.
func (l *interLab[T]) rootless() []*collCase[T] {
	c, n, op := l.c, l.n, l.op
	ar := l.make("Allreduce", l.mine(0, n), l.reducedFar(0, n), nil)
	ar.set(func() error { return mpi.Allreduce(c, ar.in, ar.out, op) },
		func() mpi.Request { return mpi.Iallreduce(c, ar.in, ar.out, op) },
		func() *mpi.Persistent { return mpi.AllreduceInit(c, ar.in, ar.out, op) })

	// The two groups send blocks of different lengths.
	mine, theirs := n+l.group, n+1-l.group
	all, _ := l.gathered(0, func(int) int { return theirs })
	ag := l.make("Allgather", l.mine(0, mine), all, nil)
	ag.set(func() error { return mpi.Allgather(c, ag.in, ag.out) },
		func() mpi.Request { return mpi.Iallgather(c, ag.in, ag.out) },
		func() *mpi.Persistent { return mpi.AllgatherInit(c, ag.in, ag.out) })

	all, counts := l.gathered(0, l.uneven)
	av := l.make("Allgatherv", l.mine(0, l.uneven(l.rank)), all, nil)
	av.set(func() error { return mpi.Allgatherv(c, av.in, av.out, counts, nil) },
		func() mpi.Request { return mpi.Iallgatherv(c, av.in, av.out, counts, nil) },
		func() *mpi.Persistent { return mpi.AllgathervInit(c, av.in, av.out, counts, nil) })

	all, _ = l.gathered(l.rank*theirs, func(int) int { return theirs })
	a2 := l.make("Alltoall", l.mine(0, mine*l.far()), all, nil)
	a2.set(func() error { return mpi.Alltoall(c, a2.in, a2.out) },
		func() mpi.Request { return mpi.Ialltoall(c, a2.in, a2.out) },
		func() *mpi.Persistent { return mpi.AlltoallInit(c, a2.in, a2.out) })

	var s, r layout
	var input, want []T
	for k := range l.far() {
		s.counts, r.counts = append(s.counts, l.between(l.rank, k)), append(r.counts, l.between(k, l.rank))
		s.displs, r.displs = append(s.displs, len(input)), append(r.displs, len(want))
		input = append(input, l.mine(l.blockAt(k), s.counts[k])...)
		want = append(want, l.of(id(1-l.group, k), l.blockAt(l.rank), r.counts[k])...)
	}
	a2v := l.make("Alltoallv", input, want, nil)
	a2v.set(func() error { return mpi.Alltoallv(c, a2v.in, s.counts, nil, a2v.out, r.counts, nil) },
		func() mpi.Request { return mpi.Ialltoallv(c, a2v.in, s.counts, nil, a2v.out, r.counts, nil) },
		func() *mpi.Persistent { return mpi.AlltoallvInit(c, a2v.in, s.counts, nil, a2v.out, r.counts, nil) })
	a2w := l.make("Alltoallw", input, want, nil)
	in, out := bufs(a2w.in, s), bufs(a2w.out, r)
	a2w.set(func() error { return c.Bufs().Alltoallw(in, out) }, func() mpi.Request { return c.Bufs().Ialltoallw(in, out) },
		func() *mpi.Persistent { return c.Bufs().AlltoallwInit(in, out) })

	// One vector as long as the other group's, cut by the local group.
	block := n * l.far()
	rsb := l.make("ReduceScatterBlock", l.mine(0, block*l.size), l.reducedFar(l.rank*block, block), nil)
	rsb.set(func() error { return mpi.ReduceScatterBlock(c, rsb.in, rsb.out, op) },
		func() mpi.Request { return mpi.IreduceScatterBlock(c, rsb.in, rsb.out, op) },
		func() *mpi.Persistent { return mpi.ReduceScatterBlockInit(c, rsb.in, rsb.out, op) })
	cut := make([]int, l.size)
	cut[l.size-1] = 2 * n
	for k := range l.size - 1 {
		cut[k] = n / (l.size + k)
		cut[l.size-1] -= cut[k]
	}
	before := 0
	for _, k := range cut[:l.rank] {
		before += k
	}
	rs := l.make("ReduceScatter", l.mine(0, 2*n), l.reducedFar(before, cut[l.rank]), nil)
	rs.set(func() error { return mpi.ReduceScatter(c, rs.in, rs.out, cut, op) },
		func() mpi.Request { return mpi.IreduceScatter(c, rs.in, rs.out, cut, op) },
		func() *mpi.Persistent { return mpi.ReduceScatterInit(c, rs.in, rs.out, cut, op) })
	return []*collCase[T]{ar, ag, av, a2, a2v, a2w, rsb, rs}
}

// TestConformanceCollectivesInter: every collective of an intercommunicator by
// every algorithm, with roots on both sides.
func TestConformanceCollectivesInter(t *testing.T) {
	for k, force := range forcings(true) {
		for _, sizes := range [][2]int{{1, 1}, {1, 3}, {3, 2}, {2, 6}} {
			t.Run(fmt.Sprintf("%d-%d-%d", k, sizes[0], sizes[1]), func(t *testing.T) {
				overAll(t, sizes[0]+sizes[1], func(t *mpitest.T, w *mpi.Comm) { checkCollectivesInter(t, w, sizes) },
					mpitest.Setting("GOMPI_COLL", force))
			})
		}
	}
}

func checkCollectivesInter(t *mpitest.T, w *mpi.Comm, sizes [2]int) {
	group := 0
	if w.Rank() >= sizes[0] {
		group = 1
	}
	c, _, _ := pair(t, w, sizes[0])
	for i, n := range []int{0, 1, 5, 3000} {
		for rootGroup := range 2 {
			root := i % sizes[rootGroup]
			a := interLab[int64]{intLab(c, n, root, false), group, rootGroup, sizes}
			checkCases(t, a.cases(), i)
			b := interLab[testlab.Affine]{affineLab(c, n, root, false), group, rootGroup, sizes}
			checkCases(t, b.cases(), i+1)
		}
	}
	wantError(t, mpi.Scan(c, []int{1}, []int{1}, mpi.Sum), mpi.ErrComm, "Scan", "intercommunicator")
	wantError(t, mpi.Bcast(c, []int{1}, sizes[1-group]), mpi.ErrRoot, "root")
	must(t, c.Barrier())
	must(t, c.Free())
}
