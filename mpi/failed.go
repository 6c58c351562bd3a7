// SPDX-License-Identifier: Apache-2.0

package mpi

import "gompi/internal/base/fault"

const opSyncFailed fault.Call = "SyncFailed"

// SyncFailed waits until this process knows of every failure that the launcher
// has seen when it is called, and returns Failed. A call that fails with
// ErrProcFailed has told of one: others may have died with it. Survivors that
// make a communicator of the living (CommFromGroup) need not agree before: who
// has heard of fewer failures fails in it, and tries again. Local; it gives up
// when the context of c ends.
func (c *Comm) SyncFailed() ([]int, error) {
	if err := c.exists(opSyncFailed); err != nil {
		return nil, err
	}
	if f := c.core.Engine.SyncFailed(c.core.Ctx, opSyncFailed, c.user); f != nil {
		return nil, c.errorOf(opSyncFailed, ProcNull, -1, f)
	}
	return c.Failed(), nil
}
