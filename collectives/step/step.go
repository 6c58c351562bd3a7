// SPDX-License-Identifier: Apache-2.0

// Package step has helpers to write the rounds of a schedule. In, Out and Scratch refer to blocks
// of buffers. Send, Recv, Reduce and Copy construct the four kinds of steps. FloorLog, CeilLog and
// Wrap are arithmetic on ranks. The package allocates nothing.
package step

import (
	"math/bits"

	"gompi/collectives"
)

// In refers to n elements of the rank's contribution.
func In(off, n int64) collectives.Ref { return collectives.Ref{Buf: collectives.In, Off: off, Len: n} }

// Out refers to n elements of the rank's result.
func Out(off, n int64) collectives.Ref {
	return collectives.Ref{Buf: collectives.Out, Off: off, Len: n}
}

// Scratch refers to n elements of the call's scratch memory.
func Scratch(off, n int64) collectives.Ref {
	return collectives.Ref{Buf: collectives.Scratch, Off: off, Len: n}
}

// The step constructors omit steps on no elements. Both sides of a message know its length, so
// both omit it.

// Send sends r to a rank.
func Send(dst []collectives.Step, peer int, r collectives.Ref) []collectives.Step {
	if r.Len == 0 {
		return dst
	}
	return append(dst, collectives.Step{Kind: collectives.Send, Peer: int32(peer), A: r})
}

// Recv receives r from a rank.
func Recv(dst []collectives.Step, peer int, r collectives.Ref) []collectives.Step {
	if r.Len == 0 {
		return dst
	}
	return append(dst, collectives.Step{Kind: collectives.Recv, Peer: int32(peer), A: r})
}

// Reduce combines from into the other range. left says that from is the left operand.
func Reduce(dst []collectives.Step, from, into collectives.Ref, left bool) []collectives.Step {
	if from.Len == 0 {
		return dst
	}
	return append(dst, collectives.Step{Kind: collectives.Reduce, Left: left, A: from, B: into})
}

// Copy copies from to the other range.
func Copy(dst []collectives.Step, from, to collectives.Ref) []collectives.Step {
	if from.Len == 0 {
		return dst
	}
	return append(dst, collectives.Step{Kind: collectives.Copy, A: from, B: to})
}

// Signal sends the empty message of a barrier.
func Signal(dst []collectives.Step, peer int) []collectives.Step {
	return append(dst, collectives.Step{Kind: collectives.Send, Peer: int32(peer)})
}

// Await receives the message of Signal.
func Await(dst []collectives.Step, peer int) []collectives.Step {
	return append(dst, collectives.Step{Kind: collectives.Recv, Peer: int32(peer), A: Out(0, 0)})
}

// None is the result of algorithms without scratch, and of ranks that send nothing.
func None(*collectives.Args) int64 { return 0 }

// FloorLog returns the base-2 logarithm of n >= 1, rounded down.
func FloorLog(n int) int { return bits.Len(uint(n)) - 1 }

// CeilLog returns the base-2 logarithm of n >= 1, rounded up.
func CeilLog(n int) int { return bits.Len(uint(n - 1)) }

// Wrap returns x modulo p for -p <= x < 2p.
func Wrap(x, p int) int {
	if x < 0 {
		return x + p
	}
	if x >= p {
		return x - p
	}
	return x
}
