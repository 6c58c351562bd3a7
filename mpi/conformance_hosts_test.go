// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// onHosts are the options of a job on pretended hosts of so many slots, which have
// agents of their own, and share nothing.
func onHosts(hosts, slots int, more ...mpitest.Option) []mpitest.Option {
	return append([]mpitest.Option{testjob.Hosts(hosts, slots), mpitest.Transport("shm,tcp")}, more...)
}

// TestConformanceHosts: the library behaves alike on several hosts.
func TestConformanceHosts(t *testing.T) {
	for _, h := range [][2]int{{2, 2}, {3, 2}} {
		for _, c := range checks {
			// The first of the slots of a host, too.
			t.Run(fmt.Sprintf("%dx%d-%s", h[0], h[1], c.name), func(t *testing.T) {
				mpitest.Run(t, c.ranks, c.run, onHosts(h[0], 1+h[0]%2)...)
			})
		}
		t.Run(fmt.Sprintf("%dx%d-flood", h[0], h[1]), func(t *testing.T) {
			var sent atomic.Int64
			mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) { flood(t, w, 8000, 100, &sent) }, onHosts(h[0], h[1], floodSetting)...)
		})
		for k, force := range nodeForcings() {
			if k > 1 && !testlab.Long() {
				break
			}
			t.Run(fmt.Sprintf("%dx%d-collectives-%d", h[0], h[1], k), func(t *testing.T) {
				mpitest.Run(t, h[0]*h[1], func(t *mpitest.T, w *mpi.Comm) {
					checkCollectives(t, w)
					checkEveryCollective(t, w)
					mixed, err := w.Split(0, w.Rank()*5%w.Size())
					must(t, err)
					checkEveryCollective(t, mixed)
				}, onHosts(h[0], h[1], mpitest.Setting("GOMPI_COLL", force))...)
			})
		}
	}
	t.Run("inter", func(t *testing.T) {
		for _, sizes := range [][2]int{{2, 2}, {3, 3}} { // along the hosts, and across them
			mpitest.Run(t, sizes[0]+sizes[1], func(t *mpitest.T, w *mpi.Comm) { checkCollectivesInter(t, w, sizes) }, onHosts(3, 2)...)
		}
	})
}

// checkNodes says whether a communicator knows its hosts, of which rank r's is
// host(r), and works.
func checkNodes(t *mpitest.T, c *mpi.Comm, host func(rank int) int) {
	t.Helper()
	hosts := map[int]bool{}
	for r := range c.Size() {
		hosts[host(r)] = true
	}
	if n := c.Nodes(); len(hosts) == 1 && n != nil || len(hosts) > 1 && (n == nil || n.Len() != len(hosts)) {
		t.Errorf("%s of %d ranks on %d hosts has nodes %v", c.Name(), c.Size(), len(hosts), n)
	}
	for range 40 { // beyond the calls that count on no board
		if got, err := mpi.AllreduceOne(c, c.Rank()+1, mpi.Sum); err != nil || got != c.Size()*(c.Size()+1)/2 {
			t.Fatalf("%s: %d, %v", c.Name(), got, err)
		}
	}
}

// TestHostsOfGroups: what is made where groups meet knows the hosts of all, the same on
// all ranks: communicators of groups, of two groups, and what these merge into.
func TestHostsOfGroups(t *testing.T) {
	const n, perHost = 6, 2
	mpitest.Run(t, n, func(t *mpitest.T, w *mpi.Comm) {
		at := func(rank int) int { return rank / perHost }
		checkNodes(t, w, at)
		g := w.Group()
		for i, ranks := range [][]int{{0, 1, 2, 3, 4, 5}, {5, 4, 3}, {1, 4}, {2, 3}, {0, 5, 2}} {
			part, err := g.Incl(ranks)
			must(t, err)
			if part.Rank() == mpi.Undefined {
				continue
			}
			on := func(r int) int { return at(ranks[r]) }
			c, err := mpi.CommFromGroup(part, fmt.Sprint("group ", i))
			must(t, err)
			checkNodes(t, c, on)
			dup, err := c.Dup()
			must(t, err)
			checkNodes(t, dup, on)
			c, err = w.CreateGroup(part, i)
			must(t, err)
			checkNodes(t, c, on)
		}
		for _, cut := range []int{1, 2, 3} {
			low := w.Rank() < cut
			c, err := w.Split(map[bool]int{true: 0, false: 1}[low], 0)
			must(t, err)
			leader := map[bool]int{true: cut, false: 0}[low]
			inter, err := c.IntercommCreate(0, w, leader, cut)
			must(t, err)
			must(t, inter.Barrier())
			merged, err := inter.IntercommMerge(!low)
			must(t, err)
			checkNodes(t, merged, at)
			dup, err := inter.Dup()
			must(t, err)
			turned, err := dup.IntercommMerge(low)
			must(t, err)
			checkNodes(t, turned, func(r int) int { return at((r + cut) % n) })

			lows, err := g.Incl([]int{0, 1, 2, 3, 4, 5}[:cut])
			must(t, err)
			highs := g.Difference(lows)
			if !low {
				lows, highs = highs, lows
			}
			met, err := mpi.IntercommCreateFromGroups(lows, highs, fmt.Sprint("groups ", cut))
			must(t, err)
			must(t, met.Barrier())
			merged, err = met.IntercommMerge(!low)
			must(t, err)
			checkNodes(t, merged, at)
		}
		host, err := w.SplitType(mpi.SplitShared, 0, nil)
		must(t, err)
		checkNodes(t, host, func(int) int { return 0 })
		if host.Size() != perHost {
			t.Errorf("a host has %d ranks", host.Size())
		}
	}, onHosts(3, perHost)...)
}
