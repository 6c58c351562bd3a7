// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math"
)

// Resize is what changes of the number of ranks have taken: medians of several. Times
// are in milliseconds, but for CheckMaxUsec; those that begin with a change begin when
// the head of the job notices it.
type Resize struct {
	Mode  string `json:"mode"`  // "add" or "sub"
	Delta int    `json:"delta"` // ranks that come, or go
	// TotalMsec: until the last rank that stays or comes has returned from Commit, and
	// the last one that goes was seen to exit. WaitMsec is the part of it in which all
	// was ready and only the agreed iteration was awaited.
	TotalMsec float64 `json:"total_msec"`
	WaitMsec  float64 `json:"wait_msec"`
	// InitiationMsec: until the first fork, or the news of a removal, is ordered.
	InitiationMsec float64 `json:"initiation_msec"`
	// AppOverheadMsec is the time in the Check that returns the change and in Commit,
	// the longest of the ranks that were there before and stay; SkewMsec the part of it
	// until the last of them had come there.
	AppOverheadMsec       float64 `json:"app_overhead_msec"`
	SkewMsec              float64 `json:"skew_msec"`
	AppOverheadMedianMsec float64 `json:"app_overhead_median_msec"`
	// CheckMaxUsec is the longest other call of Check.
	CheckMaxUsec float64 `json:"check_max_usec"`
	// InitMaxMsec is from the start of a new process until its Init is done, the
	// longest; ReadyMsec until all have joined.
	InitMaxMsec float64 `json:"init_max_msec"`
	ReadyMsec   float64 `json:"ready_msec"`
	// Barriers of the new communicator, by rank 0's clock.
	FirstBarrierMsec float64 `json:"first_barrier_msec"`
	LaterBarrierMsec float64 `json:"later_barrier_msec"`
	// GoneMsec: until the pids of those that go are free.
	GoneMsec float64 `json:"gone_msec"`
}

// columns are the times, under the names that a table has for them.
func (r *Resize) columns() []column {
	return []column{
		{"total", &r.TotalMsec}, {"wait", &r.WaitMsec}, {"initiation", &r.InitiationMsec}, {"overhead", &r.AppOverheadMsec}, {"skew", &r.SkewMsec},
		{"median", &r.AppOverheadMedianMsec}, {"check us", &r.CheckMaxUsec}, {"init", &r.InitMaxMsec}, {"ready", &r.ReadyMsec},
		{"barrier", &r.FirstBarrierMsec}, {"later", &r.LaterBarrierMsec}, {"gone", &r.GoneMsec},
	}
}

type column struct {
	name  string
	value *float64
}

// Values are all times, in the order of ResizeNames.
func (r *Resize) Values() []float64 { return valuesOf(r.columns()) }

// ResizeNames are the names that a table has for Values.
func ResizeNames() []string { return namesOf(new(Resize).columns()) }

func valuesOf(columns []column) (list []float64) {
	for _, c := range columns {
		list = append(list, *c.value)
	}
	return list
}

func namesOf(columns []column) (list []string) {
	for _, c := range columns {
		list = append(list, c.name)
	}
	return list
}

// SetResize fills r from several changes of the same kind: the medians. An empty sample
// is a bug of the caller.
func (r *Result) SetResize(sample []Resize) {
	r.Resize = &Resize{Mode: sample[0].Mode, Delta: sample[0].Delta}
	usec := make([]float64, len(sample))
	for i := range sample {
		usec[i] = 1e3 * sample[i].TotalMsec
	}
	r.SetTimes(usec)
	for k, c := range r.columns() {
		values := make([]float64, len(sample))
		for i := range sample {
			values[i] = *sample[i].columns()[k].value
		}
		*c.value = short(Median(values))
	}
}

func (r *Resize) check() error {
	for _, c := range r.columns() {
		if v := *c.value; v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is %v", c.name, v)
		}
	}
	if r.Mode != "add" && r.Mode != "sub" || r.Delta < 1 {
		return fmt.Errorf("mode %q, delta %d", r.Mode, r.Delta)
	}
	return nil
}

// ResizeHeader writes the head of the table of which ResizeRow writes the lines, in
// milliseconds.
func ResizeHeader(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%-9s %5s %4s %5s", "transport", "start", "mode", "delta")
	for _, c := range new(Resize).columns() {
		if err == nil {
			_, err = fmt.Fprintf(w, " %10s", c.name)
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}

// ResizeRow writes one line of the table.
func ResizeRow(w io.Writer, r Result) error {
	_, err := fmt.Fprintf(w, "%-9s %5d %4s %5d", r.Transport, r.Ranks, r.Mode, r.Delta)
	for _, c := range r.columns() {
		if err == nil {
			_, err = fmt.Fprintf(w, " %10s", Number(*c.value))
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	return err
}
