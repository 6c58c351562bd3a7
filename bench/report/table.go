// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
)

// Header writes the head of the table for people, of which Row writes the
// lines. The columns are as wide as any usual value, so that lines can be
// written while measuring.
func Header(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%-19s %-9s %5s %8s %11s %11s %11s %11s %8s\n",
		"bench", "transport", "ranks", "bytes", "usec", "min", "p99", "MB/s", "allocs")
	return err
}

// Row writes one line of the table.
func Row(w io.Writer, r Result) error {
	rate := "-"
	if r.Bytes > 0 {
		rate = Number(r.MBps)
	}
	more := ""
	if r.Overlap != nil {
		more = fmt.Sprintf("  %.0f%% overlapped", *r.Overlap)
	}
	if t := r.Target; t != nil {
		more = fmt.Sprintf("  %s usec while the target is %s, slowed down by %.1f%% (%.1f%% by the same elsewhere)", Number(t.Usec), t.Does, t.Slowdown, t.SlowdownOwn)
	}
	if s := r.States; s != nil {
		more += fmt.Sprintf("  near %s (%d batches, probe %s ns), far %s (%d, %s ns)",
			Number(s.UsecNear), s.BatchesNear, Number(s.ProbeNear), Number(s.UsecFar), s.BatchesFar, Number(s.ProbeFar))
	}
	if c := r.Curve; c != nil {
		more += c.text()
	}
	if f := r.First; f != nil {
		more = " of a " + f.Of
		if f.Call > 0 {
			more = fmt.Sprintf(" call %d%s", f.Call, more)
		}
		more = " " + more
	}
	_, err := fmt.Fprintf(w, "%-19s %-9s %5d %8s %11s %11s %11s %11s %8s%s\n",
		r.Bench, r.Transport, r.Ranks, Bytes(float64(r.Bytes)),
		Number(r.Usec), Number(r.UsecMin), Number(r.UsecP99), rate, Number(r.Allocs), more)
	return err
}

// Number writes v with three digits, or all digits before the point if these
// are more: 0.104, 12.3, 4194.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case a == 0:
		return "0"
	case a < 0.001:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case a < 0.9995:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
