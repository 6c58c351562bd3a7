// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// A type without elements goes with every other type where nothing is sent, and a buffer
// without elements too; counts of such a buffer are checked.
func TestTypesWithoutElements(t *testing.T) {
	i32 := mpi.TypeOf[int32]()
	made := typeMust(t)
	empties := []mpi.Datatype{
		made(mpi.TypeContiguous(0, i32)), made(mpi.TypeVector(5, 0, 7, i32)), made(mpi.TypeIndexed(nil, nil, i32)),
		made(mpi.TypeStruct(nil, nil, nil)), made(mpi.TypeResized(made(mpi.TypeStruct(nil, nil, nil)), 0, 16)), mpi.TypeOf[struct{}](),
	}
	for _, check := range []string{"0", "1"} {
		overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
			x, p := w.Bufs(), w.Size()
			zeros, ones := make([]int, p), []int{1, 1}
			data := make([]float64, 4)
			for _, e := range empties {
				none, nothing := mpi.BufAs(e, data, p), mpi.BufOf(data[:0])
				for _, b := range [][2]mpi.Buf{{none, nothing}, {nothing, none}} {
					counts := [2][]int{ones, zeros}
					if b[0].Bytes() == 0 && b[0] == nothing {
						counts = [2][]int{zeros, ones}
					}
					must(t, x.Alltoallv(b[0], counts[0], nil, b[1], counts[1], nil))
					must(t, x.Alltoall(b[0], b[1]))
					must(t, x.Allgather(b[0], b[1]))
					must(t, x.Gather(b[0], b[1], 0))
					must(t, x.Scatter(b[0], b[1], 1))
					_, err := x.Iallgatherv(b[0], b[1], counts[1], nil).Wait()
					must(t, err)
				}
				// One side has elements in a call in which others have none.
				send, recv, sendCounts, recvCounts := none, mpi.BufOf(data[:2]), ones, []int{2, 0}
				if w.Rank() == 0 {
					send, recv, sendCounts, recvCounts = mpi.BufOf([]float64{1, 2, 3, 4}), mpi.BufOf(data[:2]), []int{2, 2}, []int{2, 0}
				}
				must(t, x.Alltoallv(send, sendCounts, nil, recv, recvCounts, nil))
				if want := float64(2*w.Rank() + 1); data[0] != want {
					t.Fatalf("%v was received, want %v", data[0], want)
				}
			}
			wantError(t, x.Alltoallv(mpi.BufOf([]int32{}), ones, nil, mpi.BufOf(data), ones, nil), mpi.ErrCount)
			wantError(t, x.Alltoallv(mpi.BufOf([]int32{1, 2}), ones, nil, mpi.BufOf(data), ones, nil), mpi.ErrType)
		}, mpitest.Setting("GOMPI_CHECK", check))
	}
}
