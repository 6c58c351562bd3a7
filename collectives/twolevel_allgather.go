// SPDX-License-Identifier: Apache-2.0

package collectives

// Two-level allgather, also for blocks of different lengths: all ranks of a node
// send to its head, the heads exchange the blocks of whole nodes, and send all
// blocks to their nodes. Unless they are packed in Out as they come, they pass
// through scratch.
//
//	steps    1; 1 or nodes-1; 1 or log2 of the largest node
//	sent     n by all but heads; between nodes all blocks of a node times
//	         nodes-1; then n*P per copy that a rank hands on
//	scratch  n*P if the ranks of a node do not follow one another, and for
//	         blocks of different lengths
//	source   textbook
var (
	allgatherNodeDirect  = allgatherTwoLevel(OpAllgather, "node-direct", "one step between nodes; for small messages", &nodesDirect)
	allgatherNodeRing    = allgatherTwoLevel(OpAllgather, "node-ring", "neighbours only; for large messages", &nodesRing)
	allgathervNodeDirect = allgatherTwoLevel(OpAllgatherv, "node-direct", "one step between nodes; for small messages", &nodesDirect)
	allgathervNodeRing   = allgatherTwoLevel(OpAllgatherv, "node-ring", "neighbours only; for large messages", &nodesRing)
)

func allgatherTwoLevel(op Op, name, doc string, between *Algorithm) Algorithm {
	return compose(Algorithm{
		Name:     name,
		Op:       op,
		Doc:      doc,
		TwoLevel: true,
		Steps: func(a *Args) int {
			most := a.Nodes.most
			return 1 + between.Steps(a) + stepsOn(bcastInside(most), a, most, 0)
		},
	}, 4, func(a *Args, i int) stage {
		at := asCalled(0)
		switch {
		case i == 0:
			return stage{&toHead, everyone, at}
		case i == 1 && a.isHead():
			return stage{between, everyone, at}
		case i == 2:
			at[Out] = place{packing(a, Out), 0}
			total := allBlocks(a)
			a.inside(OpBcast)
			a.Count, a.InPlace = total, false
			return stage{bcastInside(a.Size), nodeMates, at}
		case i == 3 && packing(a, Out) == Scratch:
			return stage{&unpacking, everyone, at}
		}
		return stage{}
	})
}

func allBlocks(a *Args) int64 {
	if a.Op == OpAllgatherv {
		return sum(a.Counts)
	}
	return a.Count * int64(a.Size)
}

// toHead packs the blocks of a node at its head.
var toHead = Algorithm{
	Rounds: func(a *Args) int { return 1 },
	Round: func(a *Args, r int, dst []Step) []Step {
		if !a.isHead() {
			return send(dst, a.head(a.node()), in(0, a.InLen()))
		}
		at, _ := nodeBlock(a, a.node())
		for _, q := range a.mates() {
			b := Ref{packing(a, Out), at, gathered(a, int(q)).Len}
			at += b.Len
			switch {
			case int(q) != a.Rank:
				dst = recv(dst, int(q), b)
			case !a.InPlace || b.Buf == Scratch:
				dst = move(dst, in(0, b.Len), b)
			}
		}
		return dst
	},
	Scratch: none,
	Sent: func(a *Args) int64 {
		if a.isHead() {
			return 0
		}
		return a.InLen()
	},
}

// nodesDirect and nodesRing exchange the packed blocks of nodes between heads.
var (
	nodesDirect = Algorithm{
		Rounds: func(*Args) int { return 1 },
		Round: func(a *Args, r int, dst []Step) []Step {
			own, p := a.node(), a.Nodes.Len()
			mine := packed(a, own)
			for d := 1; d < p; d++ {
				dst = send(dst, a.head(wrap(own+d, p)), mine)
			}
			b := packed(a, 0) // the blocks of all nodes follow it
			for k := range p {
				b.Len = nodeLen(a, k)
				if k != own {
					dst = recv(dst, a.head(k), b)
				}
				b.Off += b.Len
			}
			return dst
		},
		Scratch: none,
		Steps:   func(*Args) int { return 1 },
		Sent: func(a *Args) int64 {
			return packed(a, a.node()).Len * int64(a.Nodes.Len()-1)
		},
	}
	nodesRing = Algorithm{
		Rounds: func(a *Args) int { return a.Nodes.Len() - 1 },
		Round: func(a *Args, r int, dst []Step) []Step {
			own, p := a.node(), a.Nodes.Len()
			dst = send(dst, a.head(wrap(own+1, p)), packed(a, wrap(own-r, p)))
			return recv(dst, a.head(wrap(own-1, p)), packed(a, wrap(own-1-r, p)))
		},
		Scratch: none,
		Steps:   func(a *Args) int { return a.Nodes.Len() - 1 },
		Sent: func(a *Args) int64 {
			return allBlocks(a) - packed(a, wrap(a.node()+1, a.Nodes.Len())).Len
		},
	}
)

// packed is where the blocks of a node lie.
func packed(a *Args, node int) Ref {
	off, n := nodeBlock(a, node)
	return Ref{packing(a, Out), off, n}
}
