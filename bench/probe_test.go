// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"gompi/bench/report"
	"gompi/mpi"
	"gompi/mpitest"
)

// TestProbe: two ranks of a host probe a line again and again, one behind the other, and
// results of theirs have batches if they are asked for.
func TestProbe(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		p, err := newProbe(world)
		if err != nil || p == nil {
			t.Fatalf("%v, %v", p, err)
		}
		for i := range 20 {
			if i%2 == world.Rank() {
				if err := mpi.Send(world, make([]byte, 1<<20), 1-world.Rank(), tagData); err != nil {
					t.Error(err)
				}
			} else if _, err := mpi.Recv(world, make([]byte, 1<<20), 1-world.Rank(), tagData); err != nil {
				t.Error(err)
			}
			if ns, err := p.nsec(); err != nil || ns <= 0 {
				t.Errorf("%v ns, %v", ns, err)
			}
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
		b, _ := Find("latency")
		for _, want := range []bool{false, true} {
			o := Options{Iters: 300, Bytes: []int{8}, Batches: want}
			err := b.Run(t.Context(), world, o, func(r report.Result) error {
				if (len(r.Batches) == leastBlocks) != want || !want && r.Batches != nil {
					t.Errorf("%d batches, asked for: %v", len(r.Batches), want)
				}
				for _, b := range r.Batches {
					if b.Usec <= 0 || b.Before <= 0 || b.After <= 0 {
						t.Errorf("a batch of %+v", b)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// TestProbeEnds: who probes alone gets an error when the other is gone.
func TestProbeEnds(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		p, err := newProbe(world)
		if err != nil || p == nil {
			t.Fatalf("%v, %v", p, err)
		}
		defer p.close()
		if world.Rank() == 1 {
			if err := world.Barrier(); err != nil {
				t.Error(err)
			}
			world.Revoke()
			return
		}
		if ns, err := p.nsec(); err == nil {
			t.Errorf("%v ns with nobody", ns)
		}
	})
}
