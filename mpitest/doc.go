// SPDX-License-Identifier: Apache-2.0

// Package mpitest runs MPI programs in tests.
//
// [Run] starts ranks as goroutines of the test process. That is fast, works under the race
// detector, and has a deadline, after which the test prints which rank waits for which.
//
//	func TestSum(t *testing.T) {
//		mpitest.Run(t, 4, func(t *mpitest.T, world *mpi.Comm) {
//			sum, err := mpi.AllreduceOne(world, world.Rank(), mpi.Sum)
//			if err != nil || sum != 6 {
//				t.Fatalf("sum %d, %v", sum, err)
//			}
//		})
//	}
//
// [Exec] runs a built program as real processes under gompirun.
package mpitest
