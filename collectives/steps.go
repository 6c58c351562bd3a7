// SPDX-License-Identifier: Apache-2.0

package collectives

import "math/bits"

func in(off, n int64) Ref      { return Ref{In, off, n} }
func out(off, n int64) Ref     { return Ref{Out, off, n} }
func scratch(off, n int64) Ref { return Ref{Scratch, off, n} }

// The step constructors leave out steps on no elements. Both ends of a message
// know its length, so both leave it out.

func send(dst []Step, peer int, r Ref) []Step {
	if r.Len == 0 {
		return dst
	}
	return append(dst, Step{Kind: Send, Peer: int32(peer), A: r})
}

func recv(dst []Step, peer int, r Ref) []Step {
	if r.Len == 0 {
		return dst
	}
	return append(dst, Step{Kind: Recv, Peer: int32(peer), A: r})
}

func reduce(dst []Step, from, into Ref, left bool) []Step {
	if from.Len == 0 {
		return dst
	}
	return append(dst, Step{Kind: Reduce, Left: left, A: from, B: into})
}

func move(dst []Step, from, to Ref) []Step {
	if from.Len == 0 {
		return dst
	}
	return append(dst, Step{Kind: Copy, A: from, B: to})
}

// signal and await are the empty messages of barriers.
func signal(dst []Step, peer int) []Step {
	return append(dst, Step{Kind: Send, Peer: int32(peer)})
}

func await(dst []Step, peer int) []Step {
	return append(dst, Step{Kind: Recv, Peer: int32(peer), A: out(0, 0)})
}

// take receives a peer's partial result for Out[off:off+n] and combines it
// with the rank's own. fresh: the rank's own is still its contribution, in In;
// then the message may land in Out directly, and neither scratch nor a copy is
// needed. In place In is Out already, and the message goes to scratch.
func take(dst []Step, a *Args, peer int, off, n int64, fresh, peerLower bool) []Step {
	if fresh && !a.InPlace {
		dst = recv(dst, peer, out(off, n))
		return reduce(dst, in(off, n), out(off, n), !peerLower)
	}
	dst = recv(dst, peer, scratch(0, n))
	return reduce(dst, scratch(0, n), out(off, n), peerLower)
}

// mine is where a rank's partial result is: still in In, or in Out.
func mine(off, n int64, fresh bool) Ref {
	if fresh {
		return in(off, n)
	}
	return out(off, n)
}

func isPowerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 }

// floorLog and ceilLog are the base-2 logarithms of n >= 1, rounded.
func floorLog(n int) int { return bits.Len(uint(n)) - 1 }
func ceilLog(n int) int  { return bits.Len(uint(n - 1)) }

// wrap is x modulo p for -p <= x < 2p.
func wrap(x, p int) int {
	if x < 0 {
		return x + p
	}
	if x >= p {
		return x - p
	}
	return x
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
