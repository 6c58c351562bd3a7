// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// take receives a peer's partial result for Out[off:off+n] and combines it
// with the rank's own. fresh: the rank's own is still its contribution, in In;
// then the message may land in Out directly, and neither scratch nor a copy is
// needed. In place In is Out already, and the message goes to scratch.
func take(dst []collectives.Step, a *collectives.Args, peer int, off, n int64, fresh, peerLower bool) []collectives.Step {
	if fresh && !a.InPlace {
		dst = step.Recv(dst, peer, step.Out(off, n))
		return step.Reduce(dst, step.In(off, n), step.Out(off, n), !peerLower)
	}
	dst = step.Recv(dst, peer, step.Scratch(0, n))
	return step.Reduce(dst, step.Scratch(0, n), step.Out(off, n), peerLower)
}

// mine is where a rank's partial result is: still in In, or in Out.
func mine(off, n int64, fresh bool) collectives.Ref {
	if fresh {
		return step.In(off, n)
	}
	return step.Out(off, n)
}

// keepOwn copies the rank's contribution to its place in Out.
func keepOwn(dst []collectives.Step, a *collectives.Args) []collectives.Step {
	if a.InPlace {
		return dst
	}
	n := a.InLen()
	return step.Copy(dst, step.In(0, n), step.Out(a.Own(), n))
}

// keepOwnBlock copies the rank's own block of In of Scatter(v) to Out.
func keepOwnBlock(dst []collectives.Step, a *collectives.Args) []collectives.Step {
	if a.InPlace {
		return dst
	}
	own := a.Scattered(a.Rank)
	return step.Copy(dst, own, step.Out(0, own.Len))
}

// cut is the start of block i when n elements are cut into p blocks whose
// lengths differ by at most one, the longer ones first; cut(n, p, p) is n.
func cut(n int64, p, i int) int64 {
	q, r := n/int64(p), n%int64(p)
	return int64(i)*q + min(int64(i), r)
}

// piece is the range of blocks [i, j) of that cut.
func piece(n int64, p, i, j int) (off, length int64) {
	off = cut(n, p, i)
	return off, cut(n, p, j) - off
}
