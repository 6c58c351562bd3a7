// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"gompi/internal/base/retry"
	"gompi/internal/base/wire"
)

// fetchContact asks the control plane how to reach a process. The caller must not hold the
// lock.
func (nt *network) fetchContact(p wire.ProcID) (wire.Contact, error) {
	var r retry.Retry
	for {
		c, err := nt.process.cfg.Control.Contact(p)
		if err == nil || !r.Allows(err) {
			return c, err
		}
		time.Sleep(r.NextPause())
	}
}
