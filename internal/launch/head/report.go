// SPDX-License-Identifier: Apache-2.0

package head

import (
	"context"
	"fmt"

	"gompi/internal/launch"
)

// report prints what every process is doing, without stopping the head, and
// then runs then (if not nil) on the head's goroutine.
func (h *Head) report(why string, then func()) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), reportWait)
		defer cancel()
		text := Report(fmt.Sprintf("gompirun: %s: job %016x", why, uint64(h.job)), h.server.Stacks(ctx), h.server.Ops())
		h.Post(func() {
			h.print(text)
			if then != nil {
				then()
			}
		})
	}()
}

func (h *Head) timedOut() {
	if h.ending {
		return
	}
	h.say("the job did not end within %v (--timeout)", h.o.Timeout)
	h.report("timeout", func() {
		h.failed, h.status = true, launch.ExitTimeout
		h.ft = false
		h.end("timeout")
	})
}
