// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"sync"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/sessions"
)

// TestTwoOfAThousand: a communicator of two of 1,000 processes concerns nobody else, as
// nobody else is there; the first ones of a set take no message, nor a connection, and
// later ones and those of groups one from the first to the second.
func TestTwoOfAThousand(t *testing.T) {
	j := testjob.New(t)
	starts := j.Add(1000)
	var procs [2]*mpi.Process
	for i, rank := range []int{3, 700} {
		p, err := j.Boot(starts[rank])
		if err != nil {
			t.Fatal(err)
		}
		procs[i] = p
		defer j.Leave(p)
	}
	defined := make(chan struct{})
	var both sync.WaitGroup
	both.Add(2)
	f := func(i int) {
		here := sync.OnceFunc(both.Done)
		defer here()
		s, err := sessions.Open(procs[i].Context())
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		if i == 0 {
			parts, err := s.Split("mpi://WORLD", []int{3, 1, 696, 1, 299})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.Combine(sessions.Algebra{Do: sessions.Union, In: []string{parts[1], parts[3]}, Names: []string{"pair"}}); err != nil {
				t.Error(err)
				return
			}
			close(defined)
		}
		<-defined
		var comms []*mpi.Comm
		for k := range 8 {
			c, err := s.Comm("app://pair")
			if err != nil {
				t.Error(err)
				return
			}
			if c.Size() != 2 || c.Rank() != i || c.Transport(1-i) != "" {
				t.Errorf("communicator %d: rank %d of %d, reached by %q", k, c.Rank(), c.Size(), c.Transport(1-i))
			}
			comms = append(comms, c)
		}
		here()
		both.Wait()
		c, err := s.Comm("app://pair")
		if err != nil {
			t.Error(err)
			return
		}
		g, err := s.Group("app://pair")
		if err != nil {
			t.Error(err)
			return
		}
		d, err := mpi.CommFromGroup(g, "tag")
		if err != nil {
			t.Error(err)
			return
		}
		for _, c := range append(comms, c, d) {
			if n, err := mpi.AllreduceOne(c, 1, mpi.Sum); n != 2 || err != nil {
				t.Errorf("sum %d: %v", n, err)
			}
		}
		d.Free()
	}
	var wg sync.WaitGroup
	for i := range procs {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
