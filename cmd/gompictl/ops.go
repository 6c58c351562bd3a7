// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"gompi/internal/control"
)

const opsHelp = `Usage: gompictl ops JOB

Lists the changes of the job's process sets that are under way, and the latest that
are over: what each does, how far it is, and when it came there, in milliseconds
since it was asked for.

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
		return errors.New("ops needs one JOB (see gompictl ps)")
	}
	t, _, err := dial(args[0])
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
	w := tabwriter.NewWriter(tty.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OP\tASKED\tKIND\tSET\tPROCESSES\tSTATE\tTIMES\tWHY")
	for i := range list {
		r := &list[i]
		fmt.Fprintf(w, "%d\t%s\t%v\t%s\t%s\t%v\t%s\t%s\n",
			r.Op.Op, asked(r), r.Kind, inputs(r), strings.TrimSuffix(sizes(r), " processes"), r.Op.State, times(r), reason(r))
	}
	return w.Flush()
}

func asked(r *control.OpReport) string { return r.Op.Times.Asked.Format(time.TimeOnly) }

// times is when an operation came how far, on one line.
func times(r *control.OpReport) string {
	var list []string
	for _, p := range phasesOf(r) {
		list = append(list, p.name+" "+strings.TrimSuffix(msec(p.at), " ms"))
	}
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}

// reason is why an operation has not happened, or what it waits for.
func reason(r *control.OpReport) string {
	switch {
	case r.Op.Text != "":
		return r.Op.Text
	case r.Waits != "":
		return "waits for " + r.Waits
	}
	return "-"
}
