// SPDX-License-Identifier: Apache-2.0

package bench

import "gompi/mpi"

const (
	// matrix is the number of rows and columns in column.
	matrix      = 4096
	columnBytes = 8 * matrix
)

// prepareColumn prepares an exchange: the last columns here become the first ones there.
func prepareColumn(world *mpi.Comm, _ *Options, bytes int) loop {
	m := make([]float64, matrix*matrix)
	for i := range m {
		m[i] = 0 // touched: page faults are not measured
	}
	columns, peer := bytes/columnBytes, 1-world.Rank()
	t, err := mpi.TypeVector(matrix, columns, matrix, mpi.TypeOf[float64]())
	in, out := mpi.BufAs(t, m, 1), mpi.BufAs(t, m[matrix-columns:], 1)
	return loop{ops: 1, run: timed(func(n int) error {
		if err != nil {
			return err
		}
		for range n {
			r := world.Bufs().Irecv(in, peer, tagData)
			if err := world.Bufs().Send(out, peer, tagData); err != nil {
				return err
			}
			if _, err := r.Wait(); err != nil {
				return err
			}
		}
		return nil
	})}
}
