// SPDX-License-Identifier: Apache-2.0

package inter

import (
	"gompi/collectives"
	"gompi/collectives/step"
)

// onceUnlessIdle is the rounds of an operation of one step between the root and
// the remote group.
func onceUnlessIdle(a *collectives.Args) int {
	if a.Idle() {
		return 0
	}
	return 1
}

// rootSendsEach is what is sent if the root sends a block to or for each remote
// rank.
func rootSendsEach(a *collectives.Args) int64 {
	if !a.IsRoot() {
		return 0
	}
	return a.Count * int64(a.Remote)
}

// sendFar and recvFar are send and recv with a rank of the remote group.

func sendFar(dst []collectives.Step, peer int, r collectives.Ref) []collectives.Step {
	n := len(dst)
	return remote(step.Send(dst, peer, r), n)
}

func recvFar(dst []collectives.Step, peer int, r collectives.Ref) []collectives.Step {
	n := len(dst)
	return remote(step.Recv(dst, peer, r), n)
}

// remote addresses the steps from the n-th on to the remote group.
func remote(dst []collectives.Step, n int) []collectives.Step {
	for i := n; i < len(dst); i++ {
		dst[i].Remote = true
	}
	return dst
}

// toLocal turns a into a call of op by the local group, rooted at rank 0, the
// leader.
func toLocal(a *collectives.Args, op collectives.Op) {
	a.Op, a.Root, a.Remote, a.RootRemote = op, 0, 0, false
}

// larger is the size of the larger group.
func larger(a *collectives.Args) int { return max(a.Size, a.Remote) }

// swap is the stage in which the leaders exchange mine for theirs.
func swap(dst []collectives.Step, a *collectives.Args, mine, theirs collectives.Ref) []collectives.Step {
	if a.Rank != 0 {
		return dst
	}
	return recvFar(sendFar(dst, 0, mine), 0, theirs)
}
