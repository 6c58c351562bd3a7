// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	"gompi/internal/base/fault"
)

// Intercommunicators. One of the two groups is the low one, on both sides the
// same; both groups together, that one first, have a hidden communicator, over
// which calls that make other communicators agree.

// whole is the communicator of all ranks that make a call, of both groups.
func (c *Comm) whole() *Comm {
	if c.Both != nil {
		return c.Both
	}
	return c
}

// fromWhole is a fault of a call on the whole, nil: none, as one of c.
func (c *Comm) fromWhole(f *fault.Fault) *fault.Fault {
	if f != nil && c.Both != nil {
		c.followRevoke()
	}
	return c.byGroup(f)
}

// byGroup names the rank of such a fault by its group.
func (c *Comm) byGroup(f *fault.Fault) *fault.Fault {
	if f == nil || c.Both == nil || f.Peer < 0 {
		return f
	}
	g, r := *f, int(f.Peer)
	if g.Peer = int32(r - c.firstTarget()); g.Peer < 0 || int(g.Peer) >= c.Targets {
		g.Peer, g.Local = int32(r-c.firstOfGroup(r)), true
	}
	return &g
}

// firstOfGroup is the first rank of the whole that is in the group of rank r.
func (c *Comm) firstOfGroup(r int) int {
	if n := c.LowSize(); r >= n {
		return n
	}
	return 0
}

// followRevoke revokes an intercommunicator if its hidden communicator was: by a
// rank that gave up a call.
func (c *Comm) followRevoke() {
	if c.Both != nil && c.Both.Ctx.Revoked() {
		c.Engine.Revoke(c.Ctx)
	}
}

// LowSize is the size of the low group, which comes first in the whole; that
// of the only group of an intracommunicator.
func (c *Comm) LowSize() int {
	if c.Both != nil && !c.Low {
		return c.Targets
	}
	return c.Size
}

// firstTarget is where the ranks that messages go to begin among all who make a
// collective call.
func (c *Comm) firstTarget() int {
	if c.Both != nil && c.Low {
		return c.Size
	}
	return 0
}

// MemberName names member i in errors and reports: a rank, or a rank of one of the two groups.
func (c *Comm) MemberName(i int) string {
	if c.Both == nil {
		return fmt.Sprintf("rank %d", i)
	}
	first, second := "local", "remote"
	n := c.LowSize()
	if !c.Low {
		first, second = second, first
	}
	if i < n {
		return fmt.Sprintf("rank %d of the %s group", i, first)
	}
	return fmt.Sprintf("rank %d of the %s group", i-n, second)
}
