// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// Collectives that do not block are started in one order, persistent ones in
// another on each rank, among calls that block, and each rank completes them when
// and as it likes.
func TestRandomPending(t *testing.T) {
	seeds, steps := uint64(testlab.Rounds(1, 40)), testlab.Rounds(40, 400)
	for _, x := range []struct {
		name  string
		sizes []int
		opts  []mpitest.Option
	}{
		{"plain", []int{2, 3, 8}, nil},
		{"hosts", []int{5}, []mpitest.Option{mpitest.Setting("GOMPI_HOSTS_PRETEND", "3")}},
		{"checked", []int{3}, []mpitest.Option{checking}},
		{"awkward", []int{5}, []mpitest.Option{awkward}},
	} {
		for _, n := range x.sizes {
			t.Run(fmt.Sprint(x.name, n), func(t *testing.T) {
				overAll(t, n, func(t *mpitest.T, w *mpi.Comm) {
					for seed := range seeds {
						randomPending(t, w, seed, steps)
					}
				}, x.opts...)
			})
		}
	}
}

// underWay is a call that has not been completed.
type underWay struct {
	op interface {
		Wait() (mpi.Status, error)
		Test() (done bool, st mpi.Status, err error)
	}
	check func()
}

func randomPending(t *mpitest.T, w *mpi.Comm, seed uint64, steps int) {
	all := rand.New(rand.NewPCG(seed, uint64(w.Size())))
	own := rand.New(rand.NewPCG(seed, uint64(1000+w.Rank())))
	c, err := w.Dup()
	must(t, err)

	// A vector of all ranks' own, and what its sum is to be.
	vector := func(call, n int) (in, out []int, check func()) {
		in, out = make([]int, n), make([]int, n)
		fill := func() {
			for i := range in {
				in[i], out[i] = call*(w.Rank()+1)+i, -1
			}
		}
		fill()
		return in, out, func() {
			for i, got := range out {
				if want := call*w.Size()*(w.Size()+1)/2 + i*w.Size(); got != want {
					t.Fatalf("call %d: element %d of %d is %d, want %d", call, i, n, got, want)
				}
			}
			fill()
		}
	}
	length := func() int { return []int{0, 1, 2, 14, 15, 62, 63, 200}[all.IntN(8)] }

	const persistents = 10 // more than there are rings
	var ps []*mpi.Persistent
	var results []func()
	calls := 0
	for range persistents {
		if calls++; all.IntN(4) == 0 {
			ps, results = append(ps, c.BarrierInit()), append(results, func() {})
			continue
		}
		in, out, check := vector(calls, length())
		ps, results = append(ps, mpi.AllreduceInit(c, in, out, mpi.Sum)), append(results, check)
	}

	var open []underWay
	complete := func(k int) {
		for k < len(open) {
			i, done := own.IntN(len(open)), false
			for range own.IntN(100) {
				if done, _, err = open[i].op.Test(); done {
					break
				}
			}
			if !done {
				_, err = open[i].op.Wait()
			}
			must(t, err)
			open[i].check()
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
		}
	}
	for range steps {
		switch calls++; all.IntN(8) {
		case 0, 1, 2:
			in, out, check := vector(calls, length())
			open = append(open, underWay{mpi.Iallreduce(c, in, out, mpi.Sum), check})
		case 3:
			open = append(open, underWay{c.Ibarrier(), func() {}})
		case 4:
			in, out, check := vector(calls, length())
			must(t, mpi.Allreduce(c, in, out, mpi.Sum))
			check()
		case 5:
			must(t, c.Barrier())
		case 6:
			complete(own.IntN(8))
		case 7:
			complete(0)
			some := all.Perm(persistents)[:1+all.IntN(persistents)]
			for _, i := range own.Perm(len(some)) {
				k := some[i]
				must(t, ps[k].Start())
				open = append(open, underWay{ps[k], results[k]})
			}
		}
	}
	complete(0)
	for _, p := range ps {
		must(t, p.Free())
	}
	must(t, c.Free())
}
