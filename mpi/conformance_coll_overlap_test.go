// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"regexp"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// While a goroutine blocks in a collective, others that start or block in one
// of the same communicator are told, with both call sites; ranks that make
// their calls do not wait for them.
func TestCollectiveOverlap(t *testing.T) {
	const site = `arrier at conformance_coll_overlap_test\.go:\d+ \S+`
	text := regexp.MustCompile(site + ` overlaps B` + site)
	check := func(t *mpitest.T, w *mpi.Comm, warm int) {
		token, p := make([]byte, 1), w.BarrierInit()
		for range warm {
			must(t, w.Barrier())
		}
		start := func() error {
			if err := p.Start(); err != nil {
				return err
			}
			_, err := p.Wait()
			return err
		}
		nonblocking := func() error { _, err := w.Ibarrier().Wait(); return err }
		if w.Rank() == 1 {
			_, err := mpi.Recv(w, token, 0, 0)
			must(t, err)
			must(t, w.Barrier())
			for _, f := range []func() error{w.Barrier, nonblocking, start} {
				wantError(t, f(), mpi.ErrAborted, "peer 0")
			}
		} else {
			errs := make(chan error, 2)
			for range 2 {
				go func() { errs <- w.Barrier() }()
			}
			// One of them; the other is inside from now on.
			for _, err := range []error{<-errs, nonblocking(), start()} {
				wantError(t, err, mpi.ErrOverlap)
				if !text.MatchString(err.Error()) {
					t.Fatalf("%q does not name both sites", err)
				}
			}
			must(t, mpi.Send(w, token, 1, 0))
			must(t, <-errs)
		}
		must(t, w.Barrier())
		must(t, start())
		// A pending request is no call.
		r := w.Ibarrier()
		must(t, w.Barrier())
		_, err := r.Wait()
		must(t, err)
		must(t, p.Free())
	}
	for _, warm := range []int{0, 20} { // blocking calls take another way then
		overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) { check(t, w, warm) })
	}
}
