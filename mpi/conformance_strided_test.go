// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// A pattern is a Datatype of float64s and where its elements have them, as
// indices.
type pattern struct {
	name   string
	dt     mpi.Datatype
	at     []int
	extent int // in float64s
}

// patterns have blocks of 8 B and of about 100 B, nested and irregular ones.
func patterns(t testing.TB) []pattern {
	must, f := typeMust(t), mpi.TypeOf[float64]()
	vector := func(count, blocklen, stride int) (at []int) {
		for i := range count {
			for k := range blocklen {
				at = append(at, i*stride+k)
			}
		}
		return at
	}
	var nested []int
	for i := range 6 {
		for _, k := range vector(5, 1, 3) {
			nested = append(nested, 40*i+k)
		}
		for k := range 9 {
			nested = append(nested, 40*i+20+k)
		}
	}
	row := must(mpi.TypeStruct([]int{1, 9}, []int{0, 160}, []mpi.Datatype{must(mpi.TypeVector(5, 1, 3, f)), f}))
	var irregular []int
	lens, displs := []int{2, 1, 9, 4, 1}, []int{30, 0, 10, 2, 40}
	for i, n := range lens {
		for k := range n {
			irregular = append(irregular, displs[i]+k)
		}
	}
	return []pattern{
		{"contiguous", f, []int{0}, 1},
		{"8B", must(mpi.TypeResized(must(mpi.TypeVector(16, 1, 3, f)), 0, 8*48)), vector(16, 1, 3), 48},
		{"104B", must(mpi.TypeVector(7, 13, 17, f)), vector(7, 13, 17), 6*17 + 13},
		{"nested", must(mpi.TypeHvector(6, 1, 320, row)), nested, 5*40 + 29},
		{"irregular", must(mpi.TypeIndexed(lens, displs, f)), irregular, 41},
	}
}

// place is the index of the i-th float64 of a message.
func (p *pattern) place(i int) int { return i/len(p.at)*p.extent + p.at[i%len(p.at)] }

// mesh is memory for count elements of a pattern, all of it set to -1.
func (p *pattern) mesh(count int) []float64 {
	return slices.Repeat([]float64{-1}, count*p.extent+50)
}

// holding is mesh with the numbers from first on in the elements.
func (p *pattern) holding(count, first int) []float64 {
	m := p.mesh(count)
	for i := range count * len(p.at) {
		m[p.place(i)] = float64(first + i)
	}
	return m
}

// check compares all memory with n numbers from first on.
func (p *pattern) check(t *mpitest.T, what string, m []float64, n, first int) {
	t.Helper()
	want := slices.Repeat([]float64{-1}, len(m))
	for i := range n {
		want[p.place(i)] = float64(first + i)
	}
	for i := range m {
		if m[i] != want[i] {
			t.Fatalf("%s: float64 %d of memory is %v, want %v", what, i, m[i], want[i])
		}
	}
}

// trade sends count elements of p from rank 0 to room elements of q at rank 1.
func trade(t *mpitest.T, w *mpi.Comm, p, q *pattern, count, room, seed int) {
	what := fmt.Sprintf("%d of %s into %d of %s", count, p.name, room, q.name)
	n, fits := count*len(p.at), room*len(q.at)
	if w.Rank() == 0 {
		m := p.holding(count, seed)
		b := mpi.BufAs(p.dt, m, count)
		if seed%2 == 0 {
			must(t, w.Bufs().Send(b, 1, 4))
		} else {
			_, err := w.Bufs().Isend(b, 1, 4).Wait()
			must(t, err)
		}
		p.check(t, what+", at the sender", m, n, seed)
		return
	}
	m := q.mesh(room)
	if seed%3 == 0 {
		st, err := w.Probe(0, 4)
		if err != nil || st.Bytes != int64(8*n) {
			t.Fatalf("%s: probed %+v, %v", what, st, err)
		}
	}
	st, err := w.Bufs().Recv(mpi.BufAs(q.dt, m, room), 0, 4)
	if n > fits {
		wantError(t, err, mpi.ErrTruncate)
	} else {
		must(t, err)
		if st.Bytes != int64(8*n) || mpi.Elements[float64](st) != n {
			t.Fatalf("%s: %+v", what, st)
		}
	}
	q.check(t, what, m, min(n, fits), seed)
}

// checkStrided: every pattern to every pattern, in sizes around the limits,
// also into too little room.
func checkStrided(t *mpitest.T, w *mpi.Comm) {
	if w.Rank() > 1 {
		return
	}
	all := patterns(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range all {
		for k := range all {
			p, q := &all[i], &all[k]
			for j, bytes := range []int{0, 1, 1 << 10, 16 << 10, 60_000} {
				count := (bytes/8 + len(p.at) - 1) / len(p.at)
				room := (count*len(p.at) + len(q.at) - 1) / len(q.at)
				if j > 2 && rnd.IntN(4) == 0 {
					room = rnd.IntN(room)
				}
				trade(t, w, p, q, count, room, i+j+k)
			}
		}
	}
}

// TestStridedSizes: the large sizes, over each transport.
func TestStridedSizes(t *testing.T) {
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		all := patterns(t)
		for i := range all {
			for k := range all {
				p, q := &all[i], &all[k]
				for _, bytes := range []int{16<<10 - 8, 16<<10 + 8, 100_000, 1<<20 - 8, 1 << 20, 1<<20 + 8, 5 << 20} {
					if bytes > 2<<20 && (underRace || (i+k)%4 != 1) {
						continue
					}
					count := (bytes/8 + len(p.at) - 1) / len(p.at)
					trade(t, w, p, q, count, (count*len(p.at)+len(q.at)-1)/len(q.at), i+k)
				}
			}
		}
	})
}

// checkStridedExchange: both directions at once, several messages each, to
// oneself too.
func checkStridedExchange(t *mpitest.T, w *mpi.Comm) {
	all := patterns(t)
	const each = 6
	next, prev := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
	var reqs []mpi.Request
	var in [][]float64
	room := func(i int) int { return 200 * (1 + i) }
	for i := range each {
		for _, from := range []int{prev, w.Rank()} {
			p := &all[(i+1)%len(all)]
			in = append(in, p.mesh(room(i)))
			reqs = append(reqs, w.Bufs().Irecv(mpi.BufAs(p.dt, in[len(in)-1], room(i)), from, i))
		}
	}
	for i := range each {
		for _, to := range []int{next, w.Rank()} {
			p := &all[(i+1)%len(all)]
			reqs = append(reqs, w.Bufs().Isend(mpi.BufAs(p.dt, p.holding(room(i), i), room(i)), to, i))
		}
	}
	must(t, mpi.Waitall(reqs))
	for i := range each {
		p := &all[(i+1)%len(all)]
		for _, m := range in[2*i : 2*i+2] {
			p.check(t, p.name, m, room(i)*len(p.at), i)
		}
	}
}

// checkStridedCollectives: collectives from and to strided memory do what they
// do with slices.
func checkStridedCollectives(t *mpitest.T, w *mpi.Comm) {
	all := patterns(t)
	me, size := w.Rank(), w.Size()
	for round, count := range []int{1, 3, 40} {
		for i := range all {
			p := &all[i]
			n := count * len(p.at)
			buf := func(m []float64, count int) mpi.Buf { return mpi.BufAs(p.dt, m, count) }

			root := (i + round) % size
			m := p.mesh(count)
			if me == root {
				m = p.holding(count, 7)
			}
			must(t, w.Bufs().Bcast(buf(m, count), root))
			p.check(t, "Bcast of "+p.name, m, n, 7)

			out := p.mesh(size * count)
			must(t, w.Bufs().Allgather(buf(p.holding(count, n*me), count), buf(out, size*count)))
			p.check(t, "Allgather of "+p.name, out, n*size, 0)

			out = p.mesh(size * count)
			if me == root {
				out = p.holding(size*count, 3)
			}
			in := p.mesh(count)
			must(t, w.Bufs().Scatter(buf(out, size*count), buf(in, count), root))
			p.check(t, "Scatter of "+p.name, in, n, 3+n*me)

			// Sums of i + n*rank over the ranks.
			total := n * size * (size - 1) / 2
			out, in = p.mesh(count), p.holding(count, n*me)
			must(t, w.Bufs().Allreduce(buf(in, count), buf(out, count), mpi.Max))
			p.check(t, "Allreduce of "+p.name, out, n, n*(size-1))
			p.check(t, "what Allreduce sends", in, n, n*me)
			must(t, w.Bufs().Allreduce(buf(in, count), buf(in, count), mpi.Max))
			p.check(t, "Allreduce in place of "+p.name, in, n, n*(size-1))

			ones := p.holding(count, 0)
			for k := range n {
				ones[p.place(k)] = float64(n * me)
			}
			out = p.mesh(count)
			must(t, w.Bufs().Reduce(buf(ones, count), buf(out, count), mpi.Sum, root))
			if me == root {
				for k := range n {
					out[p.place(k)] += float64(k)
				}
				p.check(t, "Reduce of "+p.name, out, n, total)
			} else {
				p.check(t, "Reduce of "+p.name+" beside the root", out, 0, 0)
			}

			out = p.mesh(count)
			must(t, w.Bufs().Exscan(buf(p.holding(count, n*me), count), buf(out, count), mpi.Max))
			if me > 0 {
				p.check(t, "Exscan of "+p.name, out, n, n*(me-1))
			} else {
				p.check(t, "Exscan of "+p.name, out, 0, 0)
			}
		}
	}
}

// In the steady state strided messages allocate nothing.
func TestStridedAllocations(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		for _, p := range patterns(t) {
			for _, count := range []int{1, 50, 10_000} {
				out, in := mpi.BufAs(p.dt, p.mesh(count), count), mpi.BufAs(p.dt, p.mesh(count), count)
				round := func() {
					r := w.Bufs().Irecv(in, 0, 1)
					must(t, w.Bufs().Send(out, 0, 1))
					_, err := r.Wait()
					must(t, err)
				}
				if a := testing.AllocsPerRun(20, round); a != 0 {
					t.Errorf("%d elements of %s: %v allocations", count, p.name, a)
				}
			}
		}
	})
}
