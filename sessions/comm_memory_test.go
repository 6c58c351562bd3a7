// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"sync/atomic"
	"testing"

	"gompi/internal/control/protocol"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

// The first collective calls of a job's world, and of what it becomes by changes, ask no
// agent for memory.
func TestMemoryComesUnasked(t *testing.T) {
	for _, hosts := range []bool{false, true} {
		var asked atomic.Int64
		opts := []mpitest.Option{mpitest.Transport("shm"), testjob.Commons(&asked)}
		if hosts {
			opts = []mpitest.Option{testjob.Hosts(2, 4), mpitest.Transport("shm,tcp"), testjob.Commons(&asked)}
		}
		mpitest.Run(t, 4, func(t *mpitest.T, world *mpi.Comm) {
			resizingLoop(t, world, 3, func(t *mpitest.T, size int) {
				var err error
				if size == 4 {
					_, err = t.Grow(4)
				} else {
					_, err = t.Shrink(0, 3, 4, 5, 7)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		}, opts...)
		if n := asked.Load(); n != 0 {
			t.Errorf("several hosts: %v: processes asked for memory %d times", hosts, n)
		}
	}
}

// A process that cannot use what all were given says so, and their calls go by messages.
func TestGivenToSome(t *testing.T) {
	for what, spoil := range map[string]func(g *protocol.Preallocated){
		"beyond the arena":  func(g *protocol.Preallocated) { g.X.Off = g.X.Total - 4096 },
		"before it":         func(g *protocol.Preallocated) { g.X.Off = -4096 },
		"in the midst":      func(g *protocol.Preallocated) { g.X.Off++ },
		"too short":         func(g *protocol.Preallocated) { g.X.Bytes = 4096 },
		"in no arena":       func(g *protocol.Preallocated) { g.X.Arena = 1 << 31 },
		"of another size":   func(g *protocol.Preallocated) { g.X.Total /= 2 },
		"in one without it": func(g *protocol.Preallocated) { g.X.Arena = 3 },
	} {
		mpitest.Run(t, 4, func(t *mpitest.T, world *mpi.Comm) {
			for i := range 3 {
				sum, err := mpi.AllreduceOne(world, world.Rank()+i, mpi.Sum)
				if err != nil || sum != 6+4*i {
					t.Errorf("%s: call %d: %d, %v", what, i, sum, err)
				}
			}
		}, mpitest.Transport("shm"), testjob.Welcomed(func(w *protocol.Welcome) {
			if w.World.Members.Index(w.Self) == 2 {
				for i := range w.Preallocated {
					spoil(&w.Preallocated[i])
				}
			}
		}))
	}
}
