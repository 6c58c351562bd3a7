// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"testing"

	"gompi/collectives/verify"
)

// A long chain with the algorithm's own piece.
func TestChainOwnSegment(t *testing.T) {
	for _, n := range []int64{chainSegment - 1, chainSegment, 2*chainSegment + 1} {
		if err := verify.Prove(&scanChain, verify.Case{Size: 5, Count: n}); err != nil {
			t.Error(err)
		}
	}
}
