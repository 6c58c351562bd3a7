// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// forcings are settings that force algorithms, each of intracommunicators or
// of intercommunicators in one of them.
func forcings(inter bool) (settings []string) {
	names := map[collectives.Op][]string{}
	most := 0
	for _, g := range append(selection.All(), collectives.Shared()...) {
		if g.Inter == inter && !g.TwoLevel {
			names[g.Op] = append(names[g.Op], g.Name)
			most = max(most, len(names[g.Op]))
		}
	}
	for k := range most {
		var force []string
		for op, list := range names {
			force = append(force, fmt.Sprintf("%v=%s", op, list[k%len(list)]))
		}
		settings = append(settings, strings.Join(force, ","))
	}
	return settings
}

// TestConformanceCollectives: every algorithm gives what the oracle says, and
// floating point sums are the same bits on every rank.
func TestConformanceCollectives(t *testing.T) {
	// Only those of shared memory know by what their messages go.
	one := map[string]int{"inproc": testlab.Every(6), "tcp": testlab.Every(6), "shm": testlab.Every(3)}
	for h, tr := range transports {
		for k, force := range forcings(false) {
			for i, n := range []int{1, 2, 3, 4, 5, 8} {
				if (k+i+h)%one[tr] != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s-%d-%d", tr, k, n), func(t *testing.T) {
					mpitest.Run(t, n, func(t *mpitest.T, w *mpi.Comm) {
						checkCollectives(t, w)
						checkEveryCollective(t, w)
						if n == 5 {
							checkTextures(t, w)
						}
					}, mpitest.Transport(tr), mpitest.Setting("GOMPI_COLL", force))
				})
			}
		}
	}
}

// checkCollectives runs each collective at several lengths and roots.
func checkCollectives(t *mpitest.T, w *mpi.Comm) {
	p := &testlab.Program{Seed: 11, Ranks: w.Size()}
	pl := newPlayer(p, w)
	for op := range testlab.NeighborAllgather {
		for i, count := range []int{0, 1, 5, 300, 6000} {
			p.Events = append(p.Events, testlab.Event{
				ID: testlab.FirstEvent + len(p.Events), Kind: testlab.Collective, Coll: op, Count: count,
				Elem: testlab.Elem(i+int(op)) % testlab.NumElems, Root: i + int(op), InPlace: i%2 == 1, Gaps: i%3 > 0, Derived: i > 2,
			})
		}
	}
	for i := range p.Events {
		if err := pl.event(&p.Events[i]); err != nil {
			t.Fatalf("event\n%v\n%v", &p.Events[i], err)
		}
	}
	must(t, testlab.Check(p, w.Rank(), pl.out))
	for _, count := range []int{1, 7, 800, 9000} {
		checkBits(t, w, count)
	}
}

// checkBits: sums of numbers of very different sizes depend on the order of
// adding; all ranks must use one order.
func checkBits(t *mpitest.T, w *mpi.Comm, count int) {
	rnd := rand.New(rand.NewPCG(uint64(w.Rank()), uint64(count)))
	in, out := make([]float64, count), make([]float64, count)
	for i := range in {
		in[i] = (rnd.Float64() - 0.5) * math.Pow(10, float64(rnd.IntN(30)))
	}
	must(t, mpi.Allreduce(w, in, out, mpi.Sum))
	first := append([]float64(nil), out...)
	must(t, mpi.Bcast(w, first, 0))
	for i := range out {
		if math.Float64bits(out[i]) != math.Float64bits(first[i]) {
			t.Fatalf("element %d of %d: %v here, %v on rank 0", i, count, out[i], first[i])
		}
	}
	// And one order every time.
	again := make([]float64, count)
	must(t, mpi.Allreduce(w, in, again, mpi.Sum))
	for i := range out {
		if math.Float64bits(out[i]) != math.Float64bits(again[i]) {
			t.Fatalf("element %d of %d: %v, then %v", i, count, out[i], again[i])
		}
	}
}

// checkOverlap: several nonblocking collectives in two communicators and
// messages at once, completed in another order on each rank.
func checkOverlap(t *mpitest.T, w *mpi.Comm) {
	d, err := w.Dup()
	must(t, err)
	n := w.Size()
	next, prev := (w.Rank()+1)%n, (w.Rank()+n-1)%n
	rnd := rand.New(rand.NewPCG(uint64(w.Rank()), 3))
	for round := range 4 {
		var reqs []mpi.Request
		var sums, alls, casts [][]int64
		for k := range 4 {
			c, count := []*mpi.Comm{w, d}[k%2], []int{1, 50, 3000, 9000}[(k+round)%4]
			sum, cast, all := make([]int64, count), make([]int64, count), make([]int64, count*n)
			fill(sum, w.Rank())
			if w.Rank() == k%n {
				fill(cast, 7*k)
			}
			mine := all[count*w.Rank():][:count]
			fill(mine, 1000*w.Rank())
			sums, alls, casts = append(sums, sum), append(alls, all), append(casts, cast)
			in := make([]byte, 40000)
			reqs = append(reqs,
				mpi.Iallreduce(c, sum, sum, mpi.Sum), mpi.Ibcast(c, cast, k%n), mpi.Irecv(c, in, prev, k), c.Ibarrier(),
				mpi.Isend(c, numbered(k, 40000), next, k), mpi.Iallgather(c, mine, all))
		}
		rnd.Shuffle(len(reqs), func(i, j int) { reqs[i], reqs[j] = reqs[j], reqs[i] })
		for range reqs {
			i, _, err := mpi.Waitany(reqs)
			must(t, err)
			if i == mpi.Undefined {
				t.Fatal("no request is left")
			}
		}
		for k := range sums {
			for i, v := range sums[k] {
				if want := int64(n*(n-1)/2 + n*i); v != want {
					t.Fatalf("sum %d element %d is %d, want %d", k, i, v, want)
				}
			}
			checkFill(t, casts[k], 7*k)
			for r := range n {
				count := len(sums[k])
				checkFill(t, alls[k][r*count:][:count], 1000*r)
			}
		}
	}
	must(t, w.Barrier())
	d.Free()
}
