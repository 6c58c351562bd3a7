// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"math/bits"

	"gompi/collectives"
	"gompi/collectives/step"
)

// The binomial tree on p vertices numbered from the root 0: the parent of v is
// v without its lowest set bit, and the subtree of v is [v, v+span(v)). Child k
// of v is v+2^k. Contiguous subtrees let blocks travel in one piece, and let a
// reduction towards vertex 0 keep the order of the ranks.

func span(v, p int) int {
	if v == 0 {
		return p
	}
	return min(v&-v, p-v)
}

func children(v, p int) int { return bits.Len(uint(span(v, p) - 1)) }

func parent(v int) int { return v & (v - 1) }

// vertex numbers the ranks from the root on; rankOf is its inverse.
func vertex(a *collectives.Args) int        { return step.Wrap(a.Rank-a.Root, a.Size) }
func rankOf(a *collectives.Args, v int) int { return step.Wrap(v+a.Root, a.Size) }
