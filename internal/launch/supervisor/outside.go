// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"time"

	"gompi/internal/launch"
)

// EndFor ends the job because of something outside of it, which is said: who still runs
// after grace is killed, and what is not out then is dropped. It may be called from
// anywhere.
func (h *Head) EndFor(why string, grace time.Duration) {
	h.Post(func() {
		if !h.ending {
			h.say("%s", why)
		}
		h.decide(launch.ExitFailure)
		h.ft, h.left = false, false
		h.end(why)
		if h.grace != nil {
			h.grace = time.After(min(grace, h.o.KillGrace))
		}
		time.AfterFunc(grace, func() { h.Post(func() { h.impatient = true }) })
	})
}
