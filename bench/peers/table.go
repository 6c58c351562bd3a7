// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
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
	if e.few() {
		return fmt.Sprintf("%s (of %d)", report.Number(e.usec), e.batches)
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
	return append(t.start(r), t.spread(r), report.Number(r.allocs))
}

// start are the fields that rows of all and rows of a state have.
func (t table) start(r row) []string {
	f := []string{r.work()}
	for _, e := range r.cells {
		f = append(f, r.number(e))
	}
	return append(f, r.ratioText(), r.goalText(), r.verdict())
}

// stateHeader and stateFields are header and fields of a state's rows: instead of a spread
// over rounds they have how many batches the numbers are of, the fewest of all.
func (t table) stateHeader() []string {
	h := t.header()
	return append(h[:len(h)-2], "batches")
}

func (t table) stateFields(r row) []string {
	least := slices.MinFunc(r.cells, func(a, b entry) int { return a.batches - b.batches })
	return append(t.start(r), strconv.Itoa(least.batches))
}

// title tells what a state is.
func (s state) title() string {
	return fmt.Sprintf("%s: a line of memory goes there and back in %s ns", s.name, report.Number(s.probe))
}

// text writes the table for a terminal, those of the states, then the notes.
func (t table) text(w io.Writer) error {
	write := func(header []string, rows []row, fields func(row) []string) error {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, strings.Join(header, "\t"))
		for _, r := range rows {
			fmt.Fprintln(tw, strings.Join(fields(r), "\t"))
		}
		return tw.Flush()
	}
	if err := write(t.header(), t.rows, t.fields); err != nil {
		return err
	}
	for _, s := range t.states {
		if _, err := fmt.Fprintf(w, "\n%s\n", s.title()); err != nil {
			return err
		}
		if err := write(t.stateHeader(), s.rows, t.stateFields); err != nil {
			return err
		}
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
	rows := t.rows
	for _, s := range t.states {
		rows = slices.Concat(rows, s.rows)
	}
	for _, r := range rows {
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
	begin := func(title string, h []string) {
		fmt.Fprintf(&b, "\n### %s\n\n", title)
		line(h)
		fmt.Fprintf(&b, "|---|%s\n", strings.Repeat("---:|", len(h)-1))
	}
	verdict := 3 + len(t.impls)
	told := func(f []string) []string {
		if f[verdict] == "miss" {
			f[verdict] = "**miss**"
		}
		return f
	}
	for i, r := range t.rows {
		if i == 0 || r.group != t.rows[i-1].group {
			begin(r.group, t.header())
		}
		line(told(t.fields(r)))
	}
	for _, s := range t.states {
		begin(s.title(), t.stateHeader())
		for _, r := range s.rows {
			line(told(t.stateFields(r)))
		}
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
