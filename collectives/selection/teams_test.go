// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"

	"gompi/collectives"
)

// Many ranks of one host: small operations take few messages, and few ranks
// have to do with each other.
func TestTeams(t *testing.T) {
	if collectives.Teams(64) != nil {
		t.Errorf("64 ranks are divided")
	}
	table := DefaultTable()
	for _, size := range []int{65, 100, 300, 1000} {
		teams := collectives.Teams(size)
		for _, op := range []collectives.Op{collectives.OpBarrier, collectives.OpAllreduce, collectives.OpBcast, collectives.OpReduce} {
			messages, most := 0, 0
			pairs := map[[2]int32]bool{}
			for r := range size {
				a := collectives.Args{Op: op, Rank: r, Size: size, Count: 1, Nodes: teams}
				if op == collectives.OpBarrier {
					a.Count = 0
				}
				g := table.Select(&a, 8, true)
				peers := map[int32]bool{}
				for k := range g.Rounds(&a) {
					for _, s := range g.Round(&a, k, nil) {
						switch s.Kind {
						case collectives.Send:
							messages++
							fallthrough
						case collectives.Recv:
							peers[s.Peer] = true
							pairs[[2]int32{min(int32(r), s.Peer), max(int32(r), s.Peer)}] = true
						}
					}
				}
				most = max(most, len(peers))
			}
			if messages > 3*size || len(pairs) > 2*size || most > 32 {
				t.Errorf("%v of %d ranks: %d messages, %d pairs of ranks, one rank has %d partners", op, size, messages, len(pairs), most)
			}
		}
	}
}
