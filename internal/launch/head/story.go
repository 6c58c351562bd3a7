// SPDX-License-Identifier: Apache-2.0

package head

import (
	"bytes"
	"fmt"

	"gompi/internal/control"
	"gompi/internal/rollcall"
)

// Report writes the whole story of a job at one moment: the roll call of
// blocking calls, what the operations under way wait for, unmatched messages, and
// goroutine dumps. title is its first line.
func Report(title string, procs []control.StackReport, ops []control.OpReport) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, %d processes\n", title, len(procs))
	calls := make([]rollcall.ProcEntries, 0, len(procs))
	for _, p := range procs {
		e := rollcall.ProcEntries{Proc: p.Proc, Rank: p.Rank, Size: p.Size, Name: p.Name, Entries: p.Calls}
		switch p.State {
		case control.Starting:
			e.Note = "has not called Init"
		case control.Finalized:
			e.Note = "has called Finalize"
		case control.Exited:
			e.Note = "has ended"
		}
		if p.Silent != "" {
			e.Note = p.Silent
		}
		calls = append(calls, e)
	}
	b.WriteString(rollcall.Report(calls))
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
		case p.State == control.Joined && !p.Answered:
			fmt.Fprintf(&b, "--- %s (pid %d) did not answer\n", p.Called(), p.PID)
		}
	}
	return b.String()
}

func section(b *bytes.Buffer, p control.StackReport, what string, text []byte) {
	fmt.Fprintf(b, "--- %s (pid %d): %s\n", p.Called(), p.PID, what)
	b.Write(bytes.TrimRight(text, "\n"))
	b.WriteByte('\n')
}
