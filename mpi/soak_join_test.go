// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// visit is one side of a process's stay in a job: messages small and large in
// both directions and a collective, in the communicator of the set uri.
func visit(p *mpi.Process, uri string, round int) error {
	set, err := p.Core().Process().Control.Lookup(uri)
	if err != nil {
		return err
	}
	made, err := p.Core().Make(p.Core().Process().InSet(set))
	if err != nil {
		return err
	}
	c := made.(*mpi.Comm)
	defer p.Core().Process().Control.ReleaseSet(set.Number)
	defer c.Free()
	other := 1 - c.Rank()
	for _, n := range []int{1, 100, 30_000} {
		out, in := make([]int64, n), make([]int64, n)
		fill(out, 100*round+c.Rank())
		if _, err := mpi.Sendrecv(c, out, other, 1, in, other, 1); err != nil {
			return err
		}
		for i, v := range in {
			if v != int64(100*round+other+i) {
				return fmt.Errorf("element %d of %d is %d", i, n, v)
			}
		}
	}
	s, err := mpi.AllreduceOne(c, c.Rank()+1, mpi.Sum)
	if err == nil && s != 3 {
		err = fmt.Errorf("sum is %d", s)
	}
	return err
}

// TestSoakJoinLeave: a process joins a running job, exchanges messages with a
// resident, and leaves; again and again. Nothing is left behind.
func TestSoakJoinLeave(t *testing.T) {
	// The first visits fill caches.
	const warm = 10
	rounds := testlab.Rounds(50, 1000)
	for _, tr := range transports {
		t.Run(tr, func(t *testing.T) {
			j := testjob.New(t, mpitest.Transport(tr))
			host, err := j.Boot(j.Add(1)[0])
			if err != nil {
				t.Fatal(err)
			}
			var before testlab.Left
			var times testlab.Spread
			for round := range warm + rounds {
				if round == warm {
					before = testlab.Take()
				}
				began := time.Now()
				guest, err := j.Boot(j.Add(1)[0])
				if err != nil {
					t.Fatal(err)
				}
				members := wire.MembersOf(host.Core().Process().Self, guest.Core().Process().Self)
				if round%2 == 1 {
					members = wire.MembersOf(guest.Core().Process().Self, host.Core().Process().Self)
				}
				// Either of the two defines the set.
				maker := []*mpi.Process{host, guest}[round/2%2].Core().Process().Control
				set, err := maker.DefineSet(members)
				if err != nil {
					t.Fatal(err)
				}
				errs := make(chan error, 2)
				go func() { errs <- visit(host, set.URI, round) }()
				go func() {
					err := visit(guest, set.URI, round)
					if lerr := j.Leave(guest); err == nil {
						err = lerr
					}
					errs <- err
				}()
				timeout := time.NewTimer(mpitest.Deadline)
				for range 2 {
					select {
					case err := <-errs:
						if err != nil {
							t.Fatalf("round %d: %v", round, err)
						}
					case <-timeout.C:
						t.Fatalf("round %d does not end:\n%s", round, j.RollCall())
					}
				}
				timeout.Stop()
				if maker == host.Core().Process().Control { // the guest's end gives its own ones back
					maker.ReleaseSet(set.Number)
				}
				times.Add(time.Since(began))
			}
			after := testlab.Take()
			t.Logf("a visit: %v; %d bytes of heap each stay", &times, (int64(after.HeapBytes)-int64(before.HeapBytes))/int64(rounds))
			// What the job remembers of each process that was there.
			testlab.Nothing(t, before, 1<<20+uint64(rounds)*visitBytes)
			if err := j.Leave(host); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// visitBytes is what a job may remember of one process that has left and of
// the set that it was in, on all its sides.
const visitBytes = 4 << 10
