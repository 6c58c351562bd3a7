// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpitest"
)

// Abort on one rank ends the blocking calls of the others, also where ranks
// are goroutines.
func TestAbortEndsCalls(t *testing.T) {
	j := testjob.New(t)
	procs := boot(t, j, 2)
	got := make(chan error)
	go func() {
		_, err := mpi.Recv(procs[1].World(), make([]int, 1), 0, 0)
		got <- err
	}()
	aborted := make(chan struct{})
	go func() {
		defer close(aborted)
		procs[0].World().Abort(3)
		t.Error("Abort has returned")
	}()
	<-aborted
	wantError(t, <-got, mpi.ErrFinalized)
	for _, p := range procs {
		j.Kill(p)
	}
}

// Wrong arguments of either half of a Sendrecv send nothing.
func TestSendrecvChecksBothHalves(t *testing.T) {
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		_, err := mpi.Sendrecv(w, []int{1}, 0, 0, make([]int, 1), 7, 0)
		wantError(t, err, mpi.ErrRank)
		_, err = mpi.Sendrecv(w, []int{1}, 7, 0, make([]int, 1), 0, 0)
		wantError(t, err, mpi.ErrRank)
		if found, _, err := w.Iprobe(mpi.AnySource, mpi.AnyTag); found || err != nil {
			t.Fatal(found, err)
		}
	})
}
