// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"gompi/internal/control/protocol"
)

const psetsHelp = `Usage: gompictl psets JOB [--dot|--svg]

Lists the process sets of a job that somebody holds: their names, how many processes
they have (of how many), how many of those watch them for changes, and which change
made them of which sets. The main set is the one that gompictl resize changes.

  --dot   print the graph of sets and changes for Graphviz (dot -Tpdf)
  --svg   draw it: gompictl psets JOB --svg >sets.svg
`

func psets(ctx context.Context, tty terminal, args []string) error {
	form, jobs := "", []string{}
	for _, a := range args {
		switch {
		case a == "--dot" || a == "--svg":
			if form != "" {
				return usagef("one of --dot and --svg")
			}
			form = a
		case strings.HasPrefix(a, "-"):
			return usagef("psets has no flag %s (try gompictl psets --help)", a)
		default:
			jobs = append(jobs, a)
		}
	}
	if len(jobs) != 1 {
		return usagef("psets needs one JOB (see gompictl ps)")
	}
	t, j, err := dial(ctx, jobs[0])
	if err != nil {
		return err
	}
	defer t.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	list, err := t.Sets(ctx)
	if err != nil {
		return err
	}
	switch form {
	case "--dot":
		return dot(tty.out, list)
	case "--svg":
		return svg(tty.out, fmt.Sprintf("job %016x", uint64(j.Job)), list)
	}
	w := tabwriter.NewWriter(tty.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tPROCESSES\tWATCHED BY\tMADE BY")
	for i := range list {
		s := &list[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", strings.Join(names(s), " = "), living(s), watchers(s), origin(s, list))
	}
	return w.Flush()
}

// names returns the names of a set.
func names(s *protocol.SetReport) []string {
	all := append([]string{s.Set.Name}, s.Names...)
	if s.Main {
		all = append(all, "gompi://main")
	}
	return all
}

func living(s *protocol.SetReport) string {
	if s.Living == s.Size {
		return fmt.Sprint(s.Size)
	}
	return fmt.Sprintf("%d of %d", s.Living, s.Size)
}

func watchers(s *protocol.SetReport) string {
	switch s.Watched {
	case 0:
		return "nobody"
	case s.Living:
		return "all"
	}
	return fmt.Sprint(s.Watched)
}

// origin describes the operation that made a set, and its inputs.
func origin(s *protocol.SetReport, list []protocol.SetReport) string {
	if s.Made == "" {
		return "-"
	}
	text := maker(s)
	for i, n := range s.Of {
		sep := ", "
		if i == 0 {
			sep = " of "
		}
		text += sep + nameOf(n, list)
	}
	if s.Pending {
		text += " (not decided)"
	}
	return text
}

// maker names the operation that made a set.
func maker(s *protocol.SetReport) string {
	if s.Op == 0 {
		return s.Made
	}
	return fmt.Sprintf("%s %d", s.Made, s.Op)
}

func nameOf(number uint32, list []protocol.SetReport) string {
	for i := range list {
		if list[i].Set.Number == number {
			return list[i].Set.Name
		}
	}
	return "a set that is gone"
}
