// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

const opsHelp = `Usage: gompictl ops JOB

Lists the changes of the job's process sets that are under way, and the latest that
are over: what each does, how far it is, and when it came there, in milliseconds
since it was asked for. WHY names the processes that one under way waits for, by
rank in the job's main set, and for how long it has. COL is how many bytes the program
has said of it for the resource manager; the column is there if it has of any.

  queued        what it needs is taken: another change of the same set, or places
  granted       it has processes, and its new sets have names
  launching     newcomers start
  ready         they have joined; the members are told
  adopting      at least one member was handed the change
  committed     it holds; leavers end
  done          they have ended
  refused, cancelled, rolled back: the job is as it was; WHY says the reason
`

func ops(ctx context.Context, tty terminal, args []string) error {
	if len(args) != 1 {
		return usagef("ops needs one JOB (see gompictl ps)")
	}
	t, _, err := dial(ctx, args[0])
	if err != nil {
		return err
	}
	defer t.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	list, err := t.Ops(ctx)
	if err != nil {
		return err
	}
	return listOps(tty.out, list)
}

func listOps(out io.Writer, list []protocol.OpReport) error {
	col, said := "", slices.ContainsFunc(list, func(r protocol.OpReport) bool { return r.COL > 0 })
	if said {
		col = "COL\t"
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "OP\tASKED\tKIND\tSET\tPROCESSES\tSTATE\tTIMES\t%sWHY\n", col)
	for i := range list {
		r := &list[i]
		if said {
			col = fmt.Sprintf("%d B\t", r.COL)
		}
		fmt.Fprintf(w, "%d\t%s\t%v\t%s\t%s\t%v\t%s\t%s%s\n",
			r.Op.Op, asked(r), r.Kind, inputs(r), strings.TrimSuffix(sizes(r), " processes"), r.Op.State, times(r), col, reason(r))
	}
	err := w.Flush()
	for i := range list {
		if s := list[i].Op.State; err == nil && !s.Known() {
			_, err = fmt.Fprintln(out, unknown(s))
			break
		}
	}
	return err
}

// unknown describes a state that only a newer gompirun knows.
func unknown(s change.State) string {
	return fmt.Sprintf("%v: the job's gompirun is of a newer version than this gompictl, which does not know that state; use the gompictl beside it", s)
}

func asked(r *protocol.OpReport) string { return r.Op.Times.Asked.Format(time.TimeOnly) }

// times lists the times of an operation's states on one line.
func times(r *protocol.OpReport) string {
	var list []string
	for _, p := range phasesOf(r) {
		list = append(list, p.name+" "+strings.TrimSuffix(msec(p.at), " ms"))
	}
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}

// reason explains why an operation has failed, or why it waits.
func reason(r *protocol.OpReport) string {
	switch {
	case r.Op.Text != "":
		return r.Op.Text
	case r.Waits != "":
		return fmt.Sprintf("waits for %s (%.1f s)", r.Waits, r.For.Seconds())
	}
	return "-"
}
