// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"
)

// String formats the queue as a table for people.
func (q *Queue) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "head %s: %d of %d slots are taken, %s decides\n", q.Name, q.Taken, q.Total, q.Manager)
	if len(q.Jobs) == 0 {
		return b.String()
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tPROGRAM\tPID\tSTATE\tFOR\tSLOTS\tWANTS")
	for i := range q.Jobs {
		e := &q.Jobs[i]
		state, wants := "runs", "-"
		switch {
		case e.Has == 0 && e.Target > 0:
			state = "starts"
		case e.Has == 0:
			state, wants = "waits", fmt.Sprint(e.Start)
		case e.Target > 0:
			state = fmt.Sprintf("to %d", e.Target)
		case e.Follows:
			state = "follows"
		}
		if e.Has > 0 && e.Wants > e.Has {
			wants = fmt.Sprint(e.Wants)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%.1f s\t%d\t%s\n", e.Job, printable(e.Program), e.PID, state, e.For.Seconds(), max(e.Has, e.Target), wants)
	}
	w.Flush()
	return b.String()
}

// printable removes characters that a terminal would obey from a name.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == ' ' {
			return -1
		}
		return r
	}, name)
	if name == "" {
		return "-"
	}
	return name
}
