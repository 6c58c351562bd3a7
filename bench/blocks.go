// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"time"

	"gompi/mpi"
)

// blockSizes are square matrices of float64 of 64 to 2,048 rows.
var blockSizes = []int{8 * 64 * 64, 8 * 128 * 128, 8 * 256 * 256, 8 * 512 * 512, 8 * 1024 * 1024, 8 * 2048 * 2048}

// prepareBlocks prepares a scatter of the columns of a square matrix of rank 0, as many to
// each rank. A block has the extent of one column, so that displacements count columns;
// such elements overlap (docs/porting.md).
func prepareBlocks(world *mpi.Comm, _ *Options, bytes int) loop {
	n, p := int(math.Sqrt(float64(bytes/8))), world.Size()
	columns := n / p
	out := make([]float64, n*columns)
	var send mpi.Buf
	var counts, displs []int
	var err error
	if world.Rank() == 0 {
		m := make([]float64, n*n)
		for i := range m {
			m[i] = 0 // touched: page faults are not measured
		}
		for r := range p {
			counts, displs = append(counts, 1), append(displs, r*columns)
		}
		var t mpi.Datatype
		if t, err = mpi.TypeVector(n, columns, n, mpi.TypeOf[float64]()); err == nil {
			t, err = mpi.TypeResized(t, 0, 8)
		}
		send = mpi.BufAs(t, m, displs[p-1]+1)
	}
	return loop{ops: 1, whose: mean, run: func(rounds int) (spent time.Duration, _ error) {
		for range rounds {
			if err != nil {
				return 0, err
			}
			t := time.Now()
			if err := world.Bufs().Scatterv(send, counts, displs, mpi.BufOf(out), 0); err != nil {
				return 0, err
			}
			spent += time.Since(t)
			if err := world.Barrier(); err != nil {
				return 0, err
			}
		}
		return spent, nil
	}}
}
