// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"slices"
	"testing"

	"gompi/internal/base/wire"
)

// TestHostsOfSet: what the head says of where the members of a set are holds of
// its communicator and of those made of its ranks, without a message.
func TestHostsOfSet(t *testing.T) {
	world := worldOn(t, 4, wire.Hosts{{Host: 3, Count: 2}, {Host: 5, Count: 2}})
	each(world, func(c *Comm) {
		if got := c.Hosts(); !slices.Equal(got, []uint32{3, 3, 5, 5}) || c.Nodes == nil || c.Nodes.Len() != 2 {
			t.Errorf("rank %d: hosts %v, %v", c.Rank, got, c.Nodes)
		}
		all, a, f := c.Choices("Split", context.Background(), c.Rank%2, -c.Rank, false)
		if f != nil {
			t.Error(f.Err)
			return
		}
		d := made(t, c, a, a.Chosen(all, c.Rank%2), nil)
		if d != nil && !slices.Equal(d.Hosts(), []uint32{5, 3}) {
			t.Errorf("rank %d: hosts %v in a part", c.Rank, d.Hosts())
		}
	})
	each(worldOn(t, 2, wire.Hosts{{Host: 3, Count: 1}, {Host: wire.NoHost, Count: 1}}), func(c *Comm) {
		if got := c.Hosts(); got != nil || c.Nodes != nil {
			t.Errorf("rank %d: hosts %v, one is not known", c.Rank, got)
		}
	})
}
