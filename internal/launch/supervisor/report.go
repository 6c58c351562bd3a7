// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"gompi/internal/control/callreg"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// inspect asks every process for its stacks without blocking the supervisor, and then
// calls then on its goroutine.
func (sv *Supervisor) inspect(why string, then func(text string, procs int)) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), reportWait)
		defer cancel()
		procs := sv.control.Stacks(ctx)
		text := Report(fmt.Sprintf("gompirun: %s: job %016x", why, uint64(sv.job)), procs, sv.control.Ops())
		sv.Post(func() { then(text, len(procs)) })
	}()
}

// timeOut ends the job because of --timeout, with a report on its processes. If the last
// process ends before the report is complete, nothing is printed and the exit status is
// the job's own.
func (sv *Supervisor) timeOut() {
	sv.runPosted() // the last exit may be among them
	if sv.ending || !sv.running() {
		return
	}
	sv.inspect("timeout", func(text string, procs int) {
		if procs > 0 {
			sv.endLate(text)
			return
		}
		// All have left the control plane: they are about to end.
		time.AfterFunc(reportWait, func() { sv.Post(func() { sv.endLate(text) }) })
	})
}

// endLate ends the job because of its time limit, unless it has ended by itself.
func (sv *Supervisor) endLate(text string) {
	if sv.ending || !sv.running() {
		return
	}
	sv.say("the job did not end within %v (--timeout)", sv.o.Timeout)
	sv.print(text)
	sv.failed, sv.status = true, launch.ExitTimeout
	sv.ft = false
	sv.end("timeout")
}

// Report writes the state of a job at one moment: the blocking calls of all processes, the
// reason why operations under way wait, unmatched messages, and goroutine dumps. title is
// its first line.
func Report(title string, procs []protocol.StackReport, ops []protocol.OpReport) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, %d processes\n", title, len(procs))
	calls := make([]callreg.ProcEntries, 0, len(procs))
	for _, p := range procs {
		e := callreg.ProcEntries{Proc: p.Proc, Rank: p.Rank, Size: p.Size, Name: p.Name, Entries: p.Calls}
		switch p.State {
		case protocol.Starting:
			e.Note = "has not called Init"
		case protocol.Finalized:
			e.Note = "has called Finalize"
		case protocol.Exited:
			e.Note = "has ended"
		}
		if p.Silent != "" {
			e.Note = p.Silent
		}
		calls = append(calls, e)
	}
	b.WriteString(callreg.Report(calls))
	for i := range ops {
		b.WriteString(ops[i].Waiting())
	}
	for _, p := range procs {
		if len(p.Queues) > 0 {
			section(&b, p, "messages", p.Queues)
		}
	}
	for _, p := range procs {
		switch {
		case len(p.Stacks) > 0:
			section(&b, p, "goroutines", p.Stacks)
		case p.State == protocol.Joined && !p.Answered:
			fmt.Fprintf(&b, "--- %s (pid %d) did not answer\n", p.Called(), p.PID)
		}
	}
	return b.String()
}

func section(b *bytes.Buffer, p protocol.StackReport, what string, text []byte) {
	fmt.Fprintf(b, "--- %s (pid %d): %s\n", p.Called(), p.PID, what)
	b.Write(bytes.TrimRight(text, "\n"))
	b.WriteByte('\n')
}
