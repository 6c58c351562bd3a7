// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"time"

	"gompi/internal/launch"
)

// EndFor ends the job for a reason from outside, and prints it. After grace, processes
// that still run are killed, and output that is not written is dropped. It may be called
// from any goroutine.
func (sv *Supervisor) EndFor(why string, grace time.Duration) {
	sv.Post(func() {
		if !sv.ending {
			sv.say("%s", why)
		}
		sv.setStatus(launch.ExitFailure)
		sv.ft, sv.someFinished = false, false
		sv.end(why)
		if sv.grace != nil {
			sv.grace = time.After(min(grace, sv.o.KillGrace))
		}
		time.AfterFunc(grace, func() { sv.Post(func() { sv.dropOutput = true }) })
	})
}
