// SPDX-License-Identifier: Apache-2.0

package collectives

import "testing"

// Many ranks of one host: small operations take few messages, and few ranks
// have to do with each other.
func TestTeams(t *testing.T) {
	if Teams(mostAlike) != nil {
		t.Errorf("%d ranks are divided", mostAlike)
	}
	table := DefaultTable()
	for _, size := range []int{65, 100, 300, 1000} {
		teams := Teams(size)
		for _, op := range []Op{OpBarrier, OpAllreduce, OpBcast, OpReduce} {
			messages, most := 0, 0
			pairs := map[[2]int32]bool{}
			for r := range size {
				a := Args{Op: op, Rank: r, Size: size, Count: 1, Nodes: teams}
				if op == OpBarrier {
					a.Count = 0
				}
				g := table.Select(&a, 8, true)
				peers := map[int32]bool{}
				for k := range g.Rounds(&a) {
					for _, s := range g.Round(&a, k, nil) {
						switch s.Kind {
						case Send:
							messages++
							fallthrough
						case Recv:
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
