// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"gompi/bench/report"
)

// work names a row for people.
func (r row) work() string {
	s := fmt.Sprintf("%s, %s, %d ranks", r.bench, r.transport, r.ranks)
	if r.bench == startup {
		return fmt.Sprintf("start and stop of %d empty ranks", r.ranks)
	}
	if r.bench == spawning {
		return fmt.Sprintf("spawn of %d processes by one rank", r.ranks)
	}
	if r.group == redistribution {
		return fmt.Sprintf("%s %s, the best method of each", sizeText(r.bytes), r.bench)
	}
	if r.group == nonblocking {
		s += " (overlapped)"
	}
	if r.bytes > 0 {
		s = sizeText(r.bytes) + " " + s
	}
	return s
}

// sizeText writes 8 B, 4 KiB, 64 MiB.
func sizeText(n int64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if n < 1024 || n%1024 != 0 {
			return fmt.Sprintf("%d %s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%d GiB", n)
}

// number is a cell of the table: microseconds, for start-up and spawns milliseconds.
func (r row) number(e entry) string {
	if e.why != "" {
		return e.why
	}
	if math.IsNaN(e.usec) {
		return "-"
	}
	if r.bench == startup || r.bench == spawning || r.group == redistribution {
		return report.Number(e.usec/1e3) + " ms"
	}
	if !math.IsNaN(e.hidden) {
		return fmt.Sprintf("%s (%.0f %%)", report.Number(e.usec), e.hidden)
	}
	return report.Number(e.usec)
}

func (r row) ratioText() string {
	if math.IsNaN(r.ratio) {
		return "-"
	}
	if r.ratio < 0.1 {
		return fmt.Sprintf("%.3f", r.ratio)
	}
	return fmt.Sprintf("%.2f", r.ratio)
}

func (r row) goalText() string {
	if r.goal == 0 {
		return "-"
	}
	return fmt.Sprintf("<= %.2f", r.goal)
}

// spread is how far gompi's rounds (or those of the only one measured) lie
// apart, as a factor.
func (t table) spread(r row) string {
	i := max(0, slices.Index(t.impls, ours))
	if e := r.cells[i]; e.lo > 0 {
		return fmt.Sprintf("%.2f", e.hi/e.lo)
	}
	return "-"
}

func (t table) header() []string {
	return slices.Concat([]string{"work (median us)"}, t.impls, []string{"ratio to best", "goal", "", "spread", "allocs"})
}

func (t table) fields(r row) []string {
	f := []string{r.work()}
	for _, e := range r.cells {
		f = append(f, r.number(e))
	}
	return append(f, r.ratioText(), r.goalText(), r.verdict(), t.spread(r), report.Number(r.allocs))
}

// text writes the table for a terminal, then the notes.
func (t table) text(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(t.header(), "\t"))
	for _, r := range t.rows {
		fmt.Fprintln(tw, strings.Join(t.fields(r), "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	pass, of := t.score()
	if _, err := fmt.Fprintf(w, "%d of %d goals reached; compared with %s\n", pass, of, t.against()); err != nil {
		return err
	}
	for _, n := range t.notes {
		if _, err := fmt.Fprintln(w, "note:", n); err != nil {
			return err
		}
	}
	return nil
}

// against tells which the peers are.
func (t table) against() string {
	if len(t.versions) == 0 {
		return "nobody"
	}
	return strings.Join(t.versions, " and ")
}

// score counts the rows with a verdict.
func (t table) score() (pass, of int) {
	for _, r := range t.rows {
		switch r.verdict() {
		case "pass":
			pass++
			of++
		case "miss":
			of++
		}
	}
	return pass, of
}

// markdown writes the table with a line on how it was measured, and the notes.
func (t table) markdown(w io.Writer, machine string, o options) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s against %s: %d interleaved rounds of %d ms a point, medians; the ratio is the median of the rounds' ratios to the peer with the best median. "+
		"\"spread\" is gompi's slowest round over its fastest, \"allocs\" gompi's heap allocations an operation.\n",
		machine, t.against(), o.rounds, o.msec)
	line := func(f []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(f, " | ")) }
	h := t.header()
	for i, r := range t.rows {
		if i == 0 || r.group != t.rows[i-1].group {
			fmt.Fprintf(&b, "\n### %s\n\n", r.group)
			line(h)
			fmt.Fprintf(&b, "|---|%s\n", strings.Repeat("---:|", len(h)-1))
		}
		f := t.fields(r)
		if v := r.verdict(); v != "" {
			f[len(f)-3] = map[string]string{"pass": "pass", "miss": "**miss**"}[v]
		}
		line(f)
	}
	pass, of := t.score()
	fmt.Fprintf(&b, "\n%d of %d goals reached.\n", pass, of)
	for i, n := range t.notes {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(n, "\n", " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// machine describes where this runs.
func machine() string {
	cpu := runtime.GOARCH
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for l := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
				cpu = strings.TrimSpace(v)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores of %s", runtime.NumCPU(), cpu)
}
