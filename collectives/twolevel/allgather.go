// SPDX-License-Identifier: Apache-2.0

package twolevel

import (
	"gompi/collectives"
	"gompi/collectives/stage"
	"gompi/collectives/step"
)

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
	allgatherDirect  = allgatherTwoLevel(collectives.OpAllgather, "node-direct", "one step between nodes; for small messages", &nodesDirect)
	allgatherRing    = allgatherTwoLevel(collectives.OpAllgather, "node-ring", "neighbours only; for large messages", &nodesRing)
	allgathervDirect = allgatherTwoLevel(collectives.OpAllgatherv, "node-direct", "one step between nodes; for small messages", &nodesDirect)
	allgathervRing   = allgatherTwoLevel(collectives.OpAllgatherv, "node-ring", "neighbours only; for large messages", &nodesRing)
)

func allgatherTwoLevel(op collectives.Op, name, doc string, between *collectives.Algorithm) collectives.Algorithm {
	return stage.Compose(collectives.Algorithm{
		Name:     name,
		Op:       op,
		Doc:      doc,
		TwoLevel: true,
		Steps: func(a *collectives.Args) int {
			most := a.Nodes.Most()
			return 1 + between.Steps(a) + stage.StepsOn(bcastInside(most), a, most, 0)
		},
	}, 4, func(a *collectives.Args, i int) stage.Stage {
		at := stage.AsCalled(0)
		switch {
		case i == 0:
			return stage.Of(&toHead, stage.Everyone, at)
		case i == 1 && isHead(a):
			return stage.Of(between, stage.Everyone, at)
		case i == 2:
			at[collectives.Out] = stage.Place{Buf: packing(a, collectives.Out), Off: 0}
			total := allBlocks(a)
			toInside(a, collectives.OpBcast)
			a.Count, a.InPlace = total, false
			return stage.Of(bcastInside(a.Size), stage.NodeRanks, at)
		case i == 3 && packing(a, collectives.Out) == collectives.Scratch:
			return stage.Of(&unpacking, stage.Everyone, at)
		}
		return stage.Stage{}
	})
}

func allBlocks(a *collectives.Args) int64 {
	if a.Op == collectives.OpAllgatherv {
		return a.AllCounts()
	}
	return a.Count * int64(a.Size)
}

// toHead packs the blocks of a node at its head.
var toHead = collectives.Algorithm{
	Rounds: func(a *collectives.Args) int { return 1 },
	Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
		if !isHead(a) {
			return step.Send(dst, stage.Head(a, nodeOf(a)), step.In(0, a.InLen()))
		}
		at, _ := nodeBlock(a, nodeOf(a))
		for _, q := range ownNode(a) {
			b := collectives.Ref{Buf: packing(a, collectives.Out), Off: at, Len: a.Gathered(int(q)).Len}
			at += b.Len
			switch {
			case int(q) != a.Rank:
				dst = step.Recv(dst, int(q), b)
			case !a.InPlace || b.Buf == collectives.Scratch:
				dst = step.Copy(dst, step.In(0, b.Len), b)
			}
		}
		return dst
	},
	Scratch: step.None,
	Sent: func(a *collectives.Args) int64 {
		if isHead(a) {
			return 0
		}
		return a.InLen()
	},
}

// nodesDirect and nodesRing exchange the packed blocks of nodes between heads.
var (
	nodesDirect = collectives.Algorithm{
		Rounds: func(*collectives.Args) int { return 1 },
		Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
			own, p := nodeOf(a), a.Nodes.Len()
			mine := packed(a, own)
			for d := 1; d < p; d++ {
				dst = step.Send(dst, stage.Head(a, step.Wrap(own+d, p)), mine)
			}
			b := packed(a, 0) // the blocks of all nodes follow it
			for k := range p {
				b.Len = nodeLen(a, k)
				if k != own {
					dst = step.Recv(dst, stage.Head(a, k), b)
				}
				b.Off += b.Len
			}
			return dst
		},
		Scratch: step.None,
		Steps:   func(*collectives.Args) int { return 1 },
		Sent: func(a *collectives.Args) int64 {
			return packed(a, nodeOf(a)).Len * int64(a.Nodes.Len()-1)
		},
	}
	nodesRing = collectives.Algorithm{
		Rounds: func(a *collectives.Args) int { return a.Nodes.Len() - 1 },
		Round: func(a *collectives.Args, r int, dst []collectives.Step) []collectives.Step {
			own, p := nodeOf(a), a.Nodes.Len()
			dst = step.Send(dst, stage.Head(a, step.Wrap(own+1, p)), packed(a, step.Wrap(own-r, p)))
			return step.Recv(dst, stage.Head(a, step.Wrap(own-1, p)), packed(a, step.Wrap(own-1-r, p)))
		},
		Scratch: step.None,
		Steps:   func(a *collectives.Args) int { return a.Nodes.Len() - 1 },
		Sent: func(a *collectives.Args) int64 {
			return allBlocks(a) - packed(a, step.Wrap(nodeOf(a)+1, a.Nodes.Len())).Len
		},
	}
)

// packed is where the blocks of a node lie.
func packed(a *collectives.Args, node int) collectives.Ref {
	off, n := nodeBlock(a, node)
	return collectives.Ref{Buf: packing(a, collectives.Out), Off: off, Len: n}
}
