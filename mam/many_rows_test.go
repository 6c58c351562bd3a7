// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// Rows are as many as those of a large matrix, with lengths that do not compress: what
// describes them is longer than a value of a store, and newcomers get it whole.
func TestManyRows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	lengths := make([]int, 200_000)
	for i := range lengths {
		lengths[i] = r.IntN(100_000)
	}
	l := mam.Rows(lengths)
	of := func(i int) float64 { return float64(i) }
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		var x []float64
		err := mam.Loop(t.Context(), world, mam.Config{Targets: 3}, func(m *mam.Module) error {
			if m.Role() == mam.Source {
				fill(m, &x, l, of)
			}
			return errors.Join(mam.Distributed(m, "x", &x, l), mam.Distributed(m, "none", new([]byte), mam.Block(0)))
		}, func(m *mam.Module, i int) (bool, error) {
			if m.Comm().Size() == 2 {
				if _, err := m.Checkpoint(mam.Wait); err != nil {
					return false, err
				}
			}
			return m.Comm().Size() == 3, is(m, "x", x, of)
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
