// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	"gompi/internal/base/fault"
)

// Intercommunicators. One of the two groups is the low one, the same on both sides. Both
// groups together, the low one first, have a hidden communicator, on which calls that make
// other communicators agree.

// whole returns the communicator of all ranks of both groups.
func (c *Comm) whole() *Comm {
	if c.Both != nil {
		return c.Both
	}
	return c
}

// fromWhole turns the fault of a call on the whole into one of c; nil stays nil.
func (c *Comm) fromWhole(f *fault.Fault) *fault.Fault {
	if f != nil && c.Both != nil {
		c.followRevoke()
	}
	return c.byGroup(f)
}

// byGroup turns the rank of a fault on the whole into a rank of one of the groups.
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

// firstOfGroup returns the first rank of the whole that is in the group of rank r.
func (c *Comm) firstOfGroup(r int) int {
	if n := c.LowSize(); r >= n {
		return n
	}
	return 0
}

// followRevoke revokes an intercommunicator whose hidden communicator was revoked, by a rank
// that gave up a call.
func (c *Comm) followRevoke() {
	if c.Both != nil && c.Both.Ctx.Revoked() {
		c.Engine.Revoke(c.Ctx)
	}
}

// LowSize returns the size of the low group, which comes first in the whole; of an
// intracommunicator, Size.
func (c *Comm) LowSize() int {
	if c.Both != nil && !c.Low {
		return c.Targets
	}
	return c.Size
}

// firstTarget returns the first rank of the remote group in the whole.
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
