// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/core"
	"gompi/internal/data/kernel"
)

// edgeTally is what the ranks find out together about the edges they give for
// a distributed graph: one sum over all ranks, whatever the graph's size.
type edgeTally struct {
	op      fault.Call
	reorder bool
	wrong   error  // why this rank's arguments are
	edges   uint64 // of this rank; after agree of all
	// sums of a hash of each edge, its end's subtracted: not zero after agree
	// if an edge is given by one end only
	hashes              [2]uint64
	weightedLists, bare uint64 // lists with and without weights, empty ones aside
}

// hash mixes the ends of an edge; k chooses one of two functions.
func (a *edgeTally) hash(k, from, to int) uint64 {
	x := uint64(from)<<32 ^ uint64(to) + uint64(k+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// edge counts an edge at its start.
func (a *edgeTally) edge(from, to int) {
	a.edges++
	for k := range a.hashes {
		a.hashes[k] += a.hash(k, from, to)
	}
}

// unedge counts an edge at its end.
func (a *edgeTally) unedge(from, to int) {
	for k := range a.hashes {
		a.hashes[k] -= a.hash(k, from, to)
	}
}

// weights counts a list.
func (a *edgeTally) weights(list, weights []int) {
	switch {
	case len(list) == 0:
	case weights != nil:
		a.weightedLists++
	default:
		a.bare++
	}
}

func (a *edgeTally) weighted() bool  { return a.weightedLists > 0 }
func (a *edgeTally) unmatched() bool { return a.hashes != [2]uint64{} }

// agree adds up the tallies of all ranks, and gives a context if none of
// them is wrong and they fit together.
func (a *edgeTally) agree(c *Comm) (core.Agreed, error) {
	bad := uint64(0)
	if a.wrong != nil {
		bad = 1
	}
	reordering := uint64(flags(a.reorder)[0])
	words := []uint64{0, bad, reordering, a.weightedLists, a.bare, a.edges, a.hashes[0], a.hashes[1]}
	made, f := c.core.AgreeWith(a.op, c.user, words, kernel.Sum)
	if f != nil {
		return made, c.errorOf(a.op, ProcNull, -1, f)
	}
	if err := a.fits(c, words, bad); err != nil {
		made.TakeBack()
		return made, err
	}
	return made, nil
}

// fits is why none of the ranks, or not all of them, gave what makes a graph, from
// what they have added up.
func (a *edgeTally) fits(c *Comm, words []uint64, bad uint64) error {
	a.weightedLists, a.bare, a.edges, a.hashes = words[3], words[4], words[5], [2]uint64(words[6:])
	mismatch := func(format string, args ...any) error {
		return c.fail(&argFault{class: ErrMismatch, op: a.op, err: fmt.Errorf(format, args...)})
	}
	switch {
	case words[1] > 0:
		first := c.core.Size
		if bad > 0 {
			first = c.core.Rank
		}
		first, err := AllreduceOne(c, first, Min)
		switch {
		case err != nil:
			return err
		case a.wrong != nil:
			return c.badTopology(a.op, a.wrong)
		}
		return mismatch("the arguments of rank %d are wrong", first)
	case words[2] != 0 && words[2] != uint64(c.core.Size):
		return mismatch("%d of %d ranks give reorder", words[2], c.core.Size)
	case a.weightedLists > 0 && a.bare > 0:
		return mismatch("some edges have weights, others have none")
	}
	return nil
}

// blame finds an edge that its ends give a different number of times: all ranks
// return the same error.
func (c *Comm) blame(g DistGraph) error {
	n := c.core.Size
	out, in := make([]int, n), make([]int, n)
	for _, r := range g.Dests {
		out[r]++
	}
	if err := Alltoall(c, out, in); err != nil {
		return err
	}
	for _, r := range g.Sources {
		in[r]--
	}
	first := n * n
	for r := range in {
		if in[r] != 0 {
			first = r*n + c.core.Rank
			break
		}
	}
	first, err := AllreduceOne(c, first, Min)
	if err != nil {
		return err
	}
	return c.fail(&argFault{class: ErrMismatch, op: opDistAdjacent, err: fmt.Errorf("ranks %d and %d give different numbers of edges from the one to the other", first/n, first%n)})
}

// roles of the rank that is told of an edge.
const (
	edgeStart = iota
	edgeEnd
)

// edgeWords is {role, the other end, weight}.
const edgeWords = 3

// deliverEdges tells the ends of all edges of them, and gives those of the
// caller in the order of the ranks that gave them.
func (c *Comm) deliverEdges(a *edgeTally, starts, dests, weights []int) (DistGraph, error) {
	n := c.core.Size
	to := make([][]int, n)
	for i, d := range dests {
		w := 0
		if weights != nil {
			w = weights[i]
		}
		s := starts[i]
		to[s] = append(to[s], edgeStart, d, w)
		to[d] = append(to[d], edgeEnd, s, w)
	}
	var out []int
	outCounts, inCounts := make([]int, n), make([]int, n)
	for r, words := range to {
		outCounts[r] = len(words)
		out = append(out, words...)
	}
	if err := Alltoall(c, outCounts, inCounts); err != nil {
		return DistGraph{}, err
	}
	total := 0
	for r, k := range inCounts {
		if k < 0 || k%edgeWords != 0 || uint64(k) > 2*edgeWords*a.edges {
			return DistGraph{}, c.badEdges(a, r)
		}
		total += k
	}
	in := make([]int, total)
	if err := Alltoallv(c, out, outCounts, nil, in, inCounts, nil); err != nil {
		return DistGraph{}, err
	}
	g := DistGraph{Sources: []int{}, SourceWeights: []int{}, Dests: []int{}, DestWeights: []int{}}
	for r, k := range inCounts {
		for ; k > 0; k -= edgeWords {
			role, other, w := in[0], in[1], in[2]
			switch {
			case other < 0 || other >= n || w < 0:
				return DistGraph{}, c.badEdges(a, r)
			case role == edgeStart:
				g.Dests, g.DestWeights = append(g.Dests, other), append(g.DestWeights, w)
			default:
				g.Sources, g.SourceWeights = append(g.Sources, other), append(g.SourceWeights, w)
			}
			in = in[edgeWords:]
		}
	}
	return g, nil
}

func (c *Comm) badEdges(a *edgeTally, r int) error {
	return c.fail(&argFault{class: ErrMismatch, op: a.op, at: atPeer(r), err: fmt.Errorf("rank %d tells of edges that cannot be", r)})
}

// swapParts brings each rank its part of the graph, after rank v of the new
// communicator c has become the process that had rank order[v]. Nobody else
// uses c yet.
func (c *Comm) swapParts(op fault.Call, g DistGraph, order []int, weighted bool) (DistGraph, error) {
	holder := c.core.Rank
	for v, r := range order {
		if r == c.core.Rank {
			holder = v
		}
	}
	words := slices.Concat([]int{len(g.Sources)}, g.Sources, g.Dests, g.SourceWeights, g.DestWeights)
	sent := Isend(c, words, order[c.core.Rank], 0)
	in, _, err := RecvNew[int](c, holder, 0)
	if _, serr := sent.Wait(); err == nil {
		err = serr
	}
	if err != nil {
		return DistGraph{}, err
	}
	g, ok := partOf(in, c.core.Size, weighted)
	if !ok {
		return DistGraph{}, c.fail(&argFault{class: ErrMismatch, op: op, at: atPeer(holder), err: fmt.Errorf("what rank %d tells is no part of a graph", holder)})
	}
	return g, nil
}

// partOf reads {number of sources, sources, destinations}, with weights of
// both behind.
func partOf(words []int, ranks int, weighted bool) (g DistGraph, ok bool) {
	if len(words) == 0 {
		return g, false
	}
	n, lists := words[0], words[1:]
	var weights []int
	if weighted {
		if len(lists)%2 != 0 {
			return g, false
		}
		lists, weights = lists[:len(lists)/2], lists[len(lists)/2:]
	}
	if n < 0 || n > len(lists) {
		return g, false
	}
	for _, r := range lists {
		if r < 0 || r >= ranks {
			return g, false
		}
	}
	g.Sources, g.Dests = lists[:n], lists[n:]
	if weighted {
		g.SourceWeights, g.DestWeights = weights[:n], weights[n:]
	}
	return g, true
}
