// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bytes"
	"fmt"

	"gompi/internal/control/callreg"
	"gompi/internal/control/protocol"
)

// Report writes the whole story of a job at one moment: the roll call of
// blocking calls, what the operations under way wait for, unmatched messages, and
// goroutine dumps. title is its first line.
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
