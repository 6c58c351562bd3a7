// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// A program may prepare and free persistent collectives as often as it likes, one of
// which it keeps all the while.
func TestManyInits(t *testing.T) {
	const inits = 1<<20 + 1000
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		in, out := []int{w.Rank()}, []int{0}
		kept := mpi.AllreduceInit(w, in, out, mpi.Sum)
		use := func(p *mpi.Persistent) {
			must(t, p.Start())
			_, err := p.Wait()
			must(t, err)
		}
		for i := range inits {
			p := w.BarrierInit()
			if i%50_000 == 0 || i > inits-20 {
				use(p)
				use(kept)
				if out[0] != 1 {
					t.Fatalf("the sum is %d after %d Inits", out[0], i)
				}
			}
			must(t, p.Free())
		}
		must(t, kept.Free())
	}, mpitest.Transport("inproc"))
}
