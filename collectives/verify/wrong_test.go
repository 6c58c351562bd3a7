// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	"gompi/collectives"
	"gompi/collectives/step"
)

// altered is g with the steps of each round passed through change.
func altered(g collectives.Algorithm, change func(a *collectives.Args, steps []collectives.Step) []collectives.Step) *collectives.Algorithm {
	round := g.Round
	g.Round = func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		return append(dst, change(a, round(a, r, nil))...)
	}
	return &g
}

// Schedules that are wrong in a way of their operation's own are refused.
func TestWrongResults(t *testing.T) {
	twice := Case{
		Size: 2, Count: 2,
		Dests:   [][]int32{{1, 1}, {}},
		Sources: [][]int32{{}, {0, 0}},
	}
	uneven := Case{Size: 3, Counts: []int64{1, 2, 3}, InPlace: func(int) bool { return true }}
	pairs := Case{
		Size: 2, Layout: func(int, []int64) []int64 { return []int64{0, 2} },
		Block:   func(from, to, k int) int64 { return 1 },
		InPlace: func(int) bool { return true },
	}
	for _, test := range []struct {
		name string
		alg  *collectives.Algorithm
		c    Case
		want string
	}{
		{"exscan writes on rank 0", altered(*named(collectives.OpExscan, "direct"), func(a *collectives.Args, steps []collectives.Step) []collectives.Step {
			if a.Rank == 0 {
				steps = step.Copy(steps, step.In(0, a.Count), step.Out(0, a.Count))
			}
			return steps
		}), Case{Size: 3, Count: 2}, "between the blocks"},
		{"exscan contains its own", func() *collectives.Algorithm {
			scan := named(collectives.OpScan, "direct")
			g := scan.As(collectives.OpExscan)
			g.Round = func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
				b := *a
				b.Op = collectives.OpScan
				return scan.Round(&b, r, dst)
			}
			return &g
		}(), Case{Size: 2, Count: 2}, "rank 0 writes"},
		{"scan stops before its own", altered(*named(collectives.OpScan, "direct"), func(a *collectives.Args, steps []collectives.Step) []collectives.Step {
			if a.Rank > 0 {
				steps = steps[:len(steps)-1]
			}
			return steps
		}), Case{Size: 3, Count: 2}, "rank 1 ends with"},
		{"equal messages between two ranks crossed", altered(*named(collectives.OpNeighborAlltoall, "direct"), func(a *collectives.Args, steps []collectives.Step) []collectives.Step {
			if a.Rank == 1 {
				steps[0], steps[1] = steps[1], steps[0]
			}
			return steps
		}), twice, "rank 1 ends with"},
		{"allgather of two equal blocks crossed may be", altered(*named(collectives.OpNeighborAllgather, "direct"), func(a *collectives.Args, steps []collectives.Step) []collectives.Step {
			if a.Rank == 1 {
				steps[0], steps[1] = steps[1], steps[0]
			}
			return steps
		}), twice, ""},
		{"another rank's share", altered(*named(collectives.OpReduceScatter, "pairwise"), func(a *collectives.Args, steps []collectives.Step) []collectives.Step {
			for i, s := range steps {
				if s.Kind == collectives.Send && s.A.Len == 1 {
					steps[i].A.Off++
				}
			}
			return steps
		}), uneven, "combined with another"},
		{"a gap in place changes", altered(*named(collectives.OpAlltoallv, "direct"), func(a *collectives.Args, steps []collectives.Step) []collectives.Step {
			return step.Copy(steps, step.Out(0, 1), step.Out(1, 1))
		}), pairs, "ends with"},
		{"the root's block of a scatter in place moves", altered(*named(collectives.OpScatterv, "linear"), func(a *collectives.Args, steps []collectives.Step) []collectives.Step {
			if a.Rank == a.Root {
				steps = step.Copy(steps, step.In(a.Displs[2], 1), step.Out(0, 1))
			}
			return steps
		}), uneven, "ends with"},
	} {
		err := Prove(test.alg, test.c)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}
