// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"gompi/bench/report"
	"gompi/collectives/sim"
)

// PredictedHeader writes the head of the table that PredictedRows fills.
func PredictedHeader(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%8s %8s  %-18s %12s %9s %8s %11s %9s\n",
		"ranks", "bytes", "algorithm", "usec", "x best", "steps", "messages", "scratch")
	return err
}

// PredictedRows writes the rows of one point.
func PredictedRows(w io.Writer, rows []Predicted) error {
	for _, r := range rows {
		mark, messages, selected := ' ', "-", ""
		if r.From != nil {
			mark = '~'
		} else {
			messages = fmt.Sprint(r.Messages)
		}
		if r.Selected {
			selected = " *"
		}
		over := "-"
		if r.Best > 0 {
			over = report.Number(r.Usec / r.Best)
		}
		_, err := fmt.Fprintf(w, "%8d %8s  %-18s %c%11s %9s %8d %11s %9s%s\n",
			r.Ranks, report.Bytes(float64(r.Bytes)), r.Algorithm, mark, report.Number(r.Usec), over, r.Steps, messages, roughBytes(r.Scratch), selected)
		if err != nil {
			return err
		}
	}
	return nil
}

// PredictedNotes explains the marks in rows.
func PredictedNotes(w io.Writer, rows []Predicted) error {
	var text string
	if slices.ContainsFunc(rows, func(r Predicted) bool { return r.From != nil }) {
		most := 0
		for _, r := range rows {
			if r.From != nil {
				most = max(most, slices.Max(r.From))
			}
		}
		text += fmt.Sprintf("~ extrapolated: each rank sends to so many others that only groups of up to %d ranks were simulated\n", most)
	}
	if slices.ContainsFunc(rows, func(r Predicted) bool { return r.Selected }) {
		text += "* what the built-in table chooses\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// roughBytes writes a number of bytes with at most three digits of precision.
func roughBytes(n int64) string {
	if n < 1024 {
		return fmt.Sprint(n)
	}
	v := float64(n) / 1024
	for _, s := range []string{"K", "M", "G"} {
		if v < 1000 {
			return report.Number(v) + s
		}
		v /= 1024
	}
	return report.Number(v) + "T"
}

// PredictedJSON writes each row as one JSON object a line.
func PredictedJSON(w io.Writer, rows []Predicted) error {
	e := json.NewEncoder(w)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// WriteTrace writes the messages of one simulation, one a line, in the manner of GOAL:
// sender, receiver, bytes, and start and end in microseconds.
func WriteTrace(w io.Writer, c *sim.Call, r sim.Result, ms []sim.Message) error {
	_, err := fmt.Fprintf(w, "# %v: %d ranks, %d bytes, %s us\n", c.Alg, c.Ranks, c.Count*int64(c.ElemBytes), report.Number(r.Usec))
	for _, m := range ms {
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "rank %d: send %db to %d at %.3f, received at %.3f\n", m.From, m.Bytes, m.To, m.Start, m.End)
	}
	return err
}

// FigureOf makes a figure of the rows of one operation: time against ranks if these vary,
// else against bytes, with a line for each algorithm. There must be at least one row, and
// all must have one size or one number of ranks.
func FigureOf(rows []Predicted) (*report.Figure, error) {
	if len(rows) == 0 {
		return nil, errors.New("bench: no row to plot")
	}
	first := rows[0]
	overRanks := slices.ContainsFunc(rows, func(r Predicted) bool { return r.Ranks != first.Ranks })
	overBytes := slices.ContainsFunc(rows, func(r Predicted) bool { return r.Bytes != first.Bytes })
	if overRanks && overBytes {
		return nil, fmt.Errorf("bench: a plot is over ranks or over bytes: give one of them a single value")
	}
	f := &report.Figure{
		Title: fmt.Sprintf("%s on %d ranks (LogGP)", first.Op, first.Ranks),
		X:     report.Axis{Label: "size in bytes", Binary: true, Bytes: true},
		Y:     report.Axis{Label: "time in us"},
	}
	if overRanks {
		f.Title = fmt.Sprintf("%s of %s bytes (LogGP)", first.Op, report.Bytes(float64(first.Bytes)))
		if first.Bytes == 0 {
			f.Title = fmt.Sprintf("%s (LogGP)", first.Op)
		}
		f.X = report.Axis{Label: "ranks", Binary: true}
	}
	for _, r := range rows {
		i := slices.IndexFunc(f.Series, func(s report.Series) bool { return s.Name == r.Algorithm })
		if i < 0 {
			i = len(f.Series)
			f.Series = append(f.Series, report.Series{Name: r.Algorithm})
		}
		x := float64(r.Bytes)
		if overRanks {
			x = float64(r.Ranks)
		}
		s := &f.Series[i]
		s.X, s.Y = append(s.X, x), append(s.Y, r.Usec)
	}
	return f, nil
}
