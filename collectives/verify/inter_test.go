// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"math/rand/v2"
	"strings"
	"testing"

	"gompi/collectives"
	"gompi/collectives/selection"
	"gompi/collectives/step"
)

// maxInter is the largest group of an intercommunicator that the sweep proves:
// all pairs up to it.
const maxInter = 12

// interCases are calls of op between groups of these sizes; the first has no
// empty block.
func interCases(op collectives.Op, size, remote int) []Case {
	c := Case{Size: size, Remote: remote}
	var cases []Case
	counts := func(pairs ...[2]int64) []Case {
		for _, n := range pairs {
			c.Count, c.RemoteCount = n[0], n[1]
			cases = append(cases, c)
		}
		return cases
	}
	switch op {
	case collectives.OpBarrier:
		return []Case{c}
	case collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce: // may be cut into a block per rank
		n := int64(size + remote)
		return counts([2]int64{n, n}, [2]int64{1, 1}, [2]int64{3, 3}, [2]int64{})
	case collectives.OpReduceScatterBlock: // both groups have equal vectors
		n, m := int64(remote), int64(size)
		return counts([2]int64{n, m}, [2]int64{2 * n, 2 * m}, [2]int64{})
	case collectives.OpReduceScatter:
		for _, n := range []int64{2 * int64(size*remote), int64(size + 1), 1, 0} {
			c.Block = func(_, to, _ int) int64 {
				i, p := to, size
				if to >= size {
					i, p = to-size, remote
				}
				k := n / int64(p) // an equal share
				if int64(i) < n%int64(p) {
					k++
				}
				if p > 1 && k > 0 { // not equal
					k += int64([2]int{1, -1}[i%2])
					if i == p-1 && p%2 == 1 {
						k--
					}
				}
				return k
			}
			if n > 0 && n < int64(2*max(size, remote)) {
				c.Block = func(_, to, _ int) int64 { // all with the last
					if to == size-1 || to == size+remote-1 {
						return n
					}
					return 0
				}
			}
			cases = append(cases, c)
		}
		return cases
	case collectives.OpGatherv, collectives.OpScatterv, collectives.OpAllgatherv, collectives.OpAlltoallv:
		for i, block := range []func(from, to, k int) int64{
			func(from, to, _ int) int64 { return int64(1 + (3*from+to)%4) },
			func(from, to, _ int) int64 { return int64((from + 5*to) % 3) },
			func(from, to, _ int) int64 { return 0 },
			func(from, to, _ int) int64 { return int64(max(0, from-size/2)) },
		} {
			c.Block = block
			if i%2 == 1 {
				c.Layout = apart
			}
			cases = append(cases, c)
		}
		return cases
	}
	return counts([2]int64{2, 3}, [2]int64{1, 0}, [2]int64{0, 2}, [2]int64{4, 1}, [2]int64{})
}

// sweepInter visits the cases with a group of this size: all sizes of the other
// one, and all roots. As each group is the larger one in turn, roots are in the
// first one only.
func sweepInter(g *collectives.Algorithm, size int, check func(Case) error) error {
	if size > maxInter {
		return nil
	}
	for remote := 1; remote <= maxInter; remote++ {
		for i, c := range interCases(g.Op, size, remote) {
			for root := range size {
				if root > 0 && root < size-1 && i > 0 && (root+remote+i)%3 > 0 {
					continue
				}
				c.Root = root
				if err := check(c); err != nil {
					return err
				}
				if !g.Op.Rooted() {
					break
				}
			}
		}
	}
	return nil
}

// drawInter makes a case of random sizes and lengths.
func drawInter(op collectives.Op, rng *rand.Rand, size int, count int64) Case {
	cases := interCases(op, size, 1+rng.IntN(20))
	c := cases[rng.IntN(len(cases))]
	c.Root = rng.IntN(size)
	switch op {
	case collectives.OpBcast, collectives.OpReduce, collectives.OpAllreduce, collectives.OpGather, collectives.OpScatter, collectives.OpAllgather, collectives.OpAlltoall:
		c.Count, c.RemoteCount = count, rng.Int64N(40)
	}
	return c
}

// interWant is want on an intercommunicator. The first group of args has the
// root.
func interWant(alg *collectives.Algorithm, args []collectives.Args, r int) []affine {
	a := &args[r]
	far, root := 0, 0 // where the other group starts; the root
	if r < args[0].Size {
		far = args[0].Size
	}
	for args[root].Root != args[root].Rank && a.Op.Rooted() {
		root++
	}
	others := args[far:][:a.Remote]
	res := make([]affine, a.OutLen())
	put := func(off, n int64, from int, first int64) {
		for i := range n {
			res[off+i] = datum(from, first+i, alg.Commutative)
		}
	}
	at := int64(0) // of the result in the whole vector
	switch a.Op {
	case collectives.OpBcast:
		put(0, int64(len(res)), root, 0)
	case collectives.OpScatter:
		put(0, int64(len(res)), root, int64(a.Rank)*a.Count)
	case collectives.OpScatterv:
		if a.RootRemote {
			put(0, int64(len(res)), root, args[root].Displs[a.Rank])
		}
	case collectives.OpGather, collectives.OpAllgather:
		for q := range others {
			if len(res) > 0 {
				put(int64(q)*others[q].Count, others[q].Count, far+q, 0)
			}
		}
	case collectives.OpGatherv, collectives.OpAllgatherv:
		for q, n := range a.Counts {
			put(a.Displs[q], n, far+q, 0)
		}
	case collectives.OpAlltoall:
		for q := range others {
			n := others[q].Count
			put(int64(q)*n, n, far+q, int64(a.Rank)*n)
		}
	case collectives.OpAlltoallv:
		for q := range others {
			put(a.OutDispls[q], others[q].InCounts[a.Rank], far+q, others[q].InDispls[a.Rank])
		}
	case collectives.OpReduceScatterBlock:
		at = int64(a.Rank) * a.Count
	case collectives.OpReduceScatter:
		for _, n := range a.Counts[:a.Rank] {
			at += n
		}
	}
	if a.Op.Reduces() {
		for i := range res {
			res[i] = datum(far, at+int64(i), alg.Commutative)
			for q := 1; q < a.Remote; q++ {
				res[i] = after(res[i], datum(far+q, at+int64(i), alg.Commutative))
			}
		}
	}
	return res
}

// Whoever is idle has no rounds and nothing to send, and all others know alike
// what decides which algorithm is chosen.
func TestInterAgreement(t *testing.T) {
	for op := range collectives.NumOps {
		for size := 1; size <= maxInter; size++ {
			for remote := 1; remote <= maxInter; remote++ {
				if op >= collectives.OpScan {
					continue
				}
				for _, c := range interCases(op, size, remote) {
					agree(t, op, c)
				}
			}
		}
	}
}

func agree(t *testing.T, op collectives.Op, c Case) {
	t.Helper()
	bytes := int64(-1)
	for r := range c.ranks() {
		a := c.args(op, r)
		if op.Rooted() && a.Idle() {
			for _, g := range selection.All() {
				if g.Admits(&a, true) && (g.Rounds(&a) > 0 || g.Scratch(&a) != 0 || g.Sent(&a) != 0) {
					t.Errorf("%v: %v: idle rank %d takes part", g, c, r)
				}
			}
			continue
		}
		n := collectives.RuleBytes(&a, 1000)
		if bytes < 0 {
			bytes = n
		}
		if n != bytes {
			t.Errorf("%v of %v: rank %d knows of %d bytes, others of %d", op, c, r, n, bytes)
		}
	}
}

// crossed is an allgather of two groups with one thing wrong.
func crossed(round func(a *collectives.Args) []collectives.Step) *collectives.Algorithm {
	g := *named(collectives.OpAllgather, "inter-direct")
	g.Round = func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		return append(dst, round(a)...)
	}
	return &g
}

// far addresses steps to the remote group.
func far(steps []collectives.Step) []collectives.Step {
	for i := range steps {
		steps[i].Remote = true
	}
	return steps
}

// The verifier tells the groups apart.
func TestInterFaults(t *testing.T) {
	c := Case{Size: 2, Remote: 3, Count: 2, RemoteCount: 1}
	if err := Prove(named(collectives.OpAllgather, "inter-direct"), c); err != nil {
		t.Fatal(err)
	}
	own := *named(collectives.OpAllreduce, "inter-linear")
	round := own.Round
	own.Round = func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		dst = round(a, r, dst)
		for i := range dst {
			if dst[i].Remote { // each leader gets back what it has
				dst[i] = collectives.Step{Kind: collectives.Copy, A: step.In(0, a.Count), B: step.Out(0, a.Count)}
			}
		}
		return dst[:min(len(dst), 1)]
	}
	early := *named(collectives.OpBarrier, "inter-leaders")
	rounds := early.Rounds
	early.Rounds = func(a *collectives.Args) int { return rounds(a) - 1 }
	for _, test := range []struct {
		name string
		g    *collectives.Algorithm
		c    Case
		want string
	}{
		{"no such remote rank", crossed(func(a *collectives.Args) []collectives.Step {
			return far(step.Send(nil, a.Remote, step.In(0, a.Count)))
		}), c, "is no peer"},
		{"to the own group", crossed(func(a *collectives.Args) []collectives.Step {
			return step.Send(nil, a.Size, step.In(0, a.Count))
		}), c, "is no peer"},
		{"one side in the other group", crossed(func(a *collectives.Args) []collectives.Step {
			if a.Size == 2 {
				return far(step.Send(nil, 0, step.In(0, a.Count)))
			}
			return step.Recv(nil, (a.Rank+1)%3, step.Out(0, 2))
		}), c, "deadlock"},
		{"lengths differ", crossed(func(a *collectives.Args) []collectives.Step {
			return far(step.Recv(step.Send(nil, a.Rank%a.Remote, step.In(0, a.Count)), a.Rank%a.Remote, step.Out(0, a.Count)))
		}), c, "meet a receive of"},
		{"the own group's result", &own, Case{Size: 1, Remote: 1, Count: 1}, "ends with"},
		{"leaves before the other group enters", &early, Case{Size: 2, Remote: 3}, "does not know"},
	} {
		if err := Prove(test.g, test.c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}
