// SPDX-License-Identifier: Apache-2.0

package core

import "fmt"

// Intercommunicators. One of the two groups is the low one, on both sides the
// same; both groups together, that one first, have a hidden communicator, over
// which calls that make other communicators agree.

// meeting is the communicator over which all ranks that make a call meet.
func (c *Comm) meeting() *Comm {
	if c.Both != nil {
		return c.Both
	}
	return c
}

// ShareFate revokes an intercommunicator if its hidden communicator was: by a
// rank that abandoned a call.
func (c *Comm) ShareFate() {
	if c.Both != nil && c.Both.Ctx.Revoked() {
		c.Engine.Revoke(c.Ctx)
	}
}

// LowSize is the size of the low group, which comes first where both meet; that
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

// Who names a rank where all meet.
func (c *Comm) Who(i int) string {
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
