// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"time"

	"gompi/internal/launch"
)

// look asks every process what it is doing, without stopping the head, and then runs
// then on the head's goroutine.
func (h *Head) look(why string, then func(text string, procs int)) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), reportWait)
		defer cancel()
		procs := h.server.Stacks(ctx)
		text := Report(fmt.Sprintf("gompirun: %s: job %016x", why, uint64(h.job)), procs, h.server.Ops())
		h.Post(func() { then(text, len(procs)) })
	}()
}

// timedOut ends the job, which has run for as long as it may, with a report of what its
// processes were doing. A job whose last process ends before the report is made was not
// late: nothing is said, and its status is its own.
func (h *Head) timedOut() {
	h.runPosted() // its end may be among it
	if h.ending || !h.running() {
		return
	}
	h.look("timeout", func(text string, procs int) {
		if procs > 0 {
			h.endLate(text)
			return
		}
		// All have left the control plane: their ends are under way.
		time.AfterFunc(reportWait, func() { h.Post(func() { h.endLate(text) }) })
	})
}

// endLate ends the job because of its time limit, unless it has ended by itself.
func (h *Head) endLate(text string) {
	if h.ending || !h.running() {
		return
	}
	h.say("the job did not end within %v (--timeout)", h.o.Timeout)
	h.print(text)
	h.failed, h.status = true, launch.ExitTimeout
	h.ft = false
	h.end("timeout")
}
