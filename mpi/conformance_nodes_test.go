// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"strings"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// nodeForcings are settings that together force each two-level algorithm.
func nodeForcings() []string {
	names := map[collectives.Op][]string{}
	most := 0
	for _, g := range selection.All() {
		if g.TwoLevel {
			names[g.Op] = append(names[g.Op], g.Name)
			most = max(most, len(names[g.Op]))
		}
	}
	settings := []string{""}
	for k := range most {
		var force []string
		for op, list := range names {
			force = append(force, fmt.Sprintf("%v=%s", op, list[k%len(list)]))
		}
		settings = append(settings, strings.Join(force, ","))
	}
	return settings
}

// TestConformanceNodes: every two-level algorithm, and what is selected on
// several hosts, gives what the oracle says, also where the ranks of a host do
// not follow one another.
func TestConformanceNodes(t *testing.T) {
	for k, force := range nodeForcings() {
		for i, x := range []struct {
			ranks, perHost int
			transport      string
		}{
			{2, 1, "inproc"}, {3, 2, "inproc"}, {4, 2, "inproc"}, {5, 3, "inproc"}, {8, 2, "inproc"},
			{5, 2, "shm"}, {5, 3, "tcp"}, {8, 3, "inproc"},
		} {
			if (k+i)%testlab.Every(2) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%d-%s-%d-%d", k, x.transport, x.ranks, x.perHost), func(t *testing.T) {
				mpitest.Run(t, x.ranks, func(t *mpitest.T, w *mpi.Comm) {
					checkCollectives(t, w)
					checkEveryCollective(t, w)
					mixed, err := w.Split(0, w.Rank()*3%w.Size())
					must(t, err)
					checkEveryCollective(t, mixed)
				}, mpitest.Transport(x.transport), mpitest.Setting("GOMPI_COLL", force), mpitest.Setting("GOMPI_HOSTS_PRETEND", fmt.Sprint(x.perHost)))
			})
		}
	}
}

// TestConformanceNodesDerived: so does it with buffers of derived types.
func TestConformanceNodesDerived(t *testing.T) {
	mpitest.Run(t, 5, func(t *mpitest.T, w *mpi.Comm) {
		for _, count := range []int{1, 6, 300} {
			for k := range 4 {
				checkDerived(t, w, count, (w.Rank()+k)%2 == 0, (w.Rank()+k)/2%2 == 0)
			}
		}
	}, mpitest.Setting("GOMPI_HOSTS_PRETEND", "3"))
}

// TestNodes: collectives know the hosts of every communicator's ranks, and
// SplitType divides it alike.
func TestNodes(t *testing.T) {
	mpitest.Run(t, 6, func(t *mpitest.T, w *mpi.Comm) {
		dup, err := w.Dup()
		must(t, err)
		turned, err := w.Split(0, -w.Rank())
		must(t, err)
		for _, c := range []*mpi.Comm{w, dup, turned} {
			n := c.Nodes()
			if n.Len() != 3 || n.Inside(0) != 0 || n.Inside(1) != 1 || n.Of(0) != n.Of(1) || n.Of(1) == n.Of(2) {
				t.Errorf("%s: %d nodes, %v", c.Name(), n.Len(), n)
			}
		}
		host, err := turned.SplitType(mpi.SplitShared, 0, nil)
		must(t, err)
		if host.Size() != 2 || host.Nodes() != nil || w.Process().Self().Nodes() != nil {
			t.Errorf("a host has %d ranks, on nodes %v", host.Size(), host.Nodes())
		}
		part, err := turned.SplitType(mpi.SplitHWUnguided, 0, nil)
		must(t, err)
		if part.Compare(host) != mpi.Congruent {
			t.Errorf("less than three hosts are %d ranks", part.Size())
		}
		if part, err = part.SplitType(mpi.SplitHWUnguided, 0, nil); part != nil || err != nil {
			t.Errorf("less than a host is %v, %v", part, err)
		}
	}, mpitest.Setting("GOMPI_HOSTS_PRETEND", "2"))
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		if w.Nodes() != nil {
			t.Errorf("one host is nodes %v", w.Nodes())
		}
	})
}
