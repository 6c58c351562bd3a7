// SPDX-License-Identifier: Apache-2.0

package mpi

import "gompi/internal/base/fault"

const opSyncFailed fault.Call = "SyncFailed"

// SyncFailed waits until this process knows of every failure that the launcher has seen by
// now, and returns Failed. Local. A call that fails with ErrProcFailed reports one death, and
// others may have died at the same time. Survivors that make a communicator of the living
// processes (CommFromGroup) need not agree before: a process that knows of fewer failures
// gets an error there, and tries again. Error: ErrCancelled when the context of c ends.
func (c *Comm) SyncFailed() ([]int, error) {
	if err := c.exists(opSyncFailed); err != nil {
		return nil, err
	}
	if f := c.core.Engine.SyncFailed(c.core.Ctx, opSyncFailed, c.user); f != nil {
		return nil, c.errorOf(opSyncFailed, ProcNull, -1, f)
	}
	return c.Failed(), nil
}
