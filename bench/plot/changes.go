// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"gompi/bench/report"
)

// resize is the section of changes of the number of ranks.
func (s *section) resize(rs []report.Result) error {
	s.Note = "Milliseconds, medians, from when the head of the job notices the request: until the last rank that stays or comes is back " +
		"and the last that goes has exited (total), until all newcomers have joined (ready), until the pids of those who go are free (gone); " +
		"in the library of the ranks that stay (overhead), the longest; the first barrier of the new communicator."
	slices.SortStableFunc(rs, func(a, b report.Result) int {
		return cmp.Or(cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Delta, b.Delta))
	})
	mark := map[string]string{"add": "+", "sub": "-"}
	for _, rs := range grouped(rs, func(a, b report.Result) bool { return a.Mode == b.Mode }) {
		title := map[string]string{"add": "resize: ranks are added", "sub": "resize: ranks are removed"}[rs[0].Mode]
		f := report.Figure{Title: title, X: report.Axis{Label: "ranks and by how many they change"}, Y: report.Axis{Label: "ms", Linear: true}}
		parts := []struct {
			name string
			of   func(r *report.Resize) float64
		}{
			{"total", func(r *report.Resize) float64 { return r.TotalMsec }},
			{"ready", func(r *report.Resize) float64 { return r.ReadyMsec }},
			{"gone", func(r *report.Resize) float64 { return r.GoneMsec }},
			{"overhead", func(r *report.Resize) float64 { return r.AppOverheadMsec }},
			{"first barrier", func(r *report.Resize) float64 { return r.FirstBarrierMsec }},
		}
		for _, p := range parts {
			series(&f, p.name)
		}
		t := table{Title: title, Left: 1, Head: []string{"transport", "start", "change"}}
		t.Head = append(t.Head, report.ResizeNames()...)
		for _, r := range rs {
			f.Names = append(f.Names, fmt.Sprintf("%d%s%d", r.Ranks, mark[r.Mode], r.Delta))
			for i, p := range parts {
				f.Series[i].Y = append(f.Series[i].Y, p.of(r.Resize))
			}
			row := []string{r.Transport, strconv.Itoa(r.Ranks), mark[r.Mode] + strconv.Itoa(r.Delta)}
			for _, v := range r.Resize.Values() {
				row = append(row, report.Number(v))
			}
			t.Rows = append(t.Rows, row)
		}
		if err := s.draw(f); err != nil {
			return err
		}
		s.Tables = append(s.Tables, t)
	}
	return nil
}

// spawn is the section of processes that were started from a running job.
func (s *section) spawn(rs []report.Result) error {
	s.Note = "Milliseconds until CommSpawn has returned and all children have joined, medians; what IntercommMerge takes after it."
	slices.SortStableFunc(rs, func(a, b report.Result) int {
		return cmp.Or(cmp.Compare(a.Transport, b.Transport), cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Count, b.Count))
	})
	x, y := report.Axis{Label: "processes that are spawned", Binary: true}, report.Axis{Label: "ms"}
	name := func(r report.Result) string { return fmt.Sprintf("%s, %d parents", r.Transport, r.Ranks) }
	f := against("spawn: until all have joined", x, y, rs, name, func(r report.Result) float64 { return float64(r.Count) }, func(r report.Result) float64 { return r.Msec })
	t := table{Left: 1, Head: []string{"transport", "parents", "count", "ms (median)", "least", "most", "merge"}}
	for _, r := range rs {
		t.Rows = append(t.Rows, []string{r.Transport, strconv.Itoa(r.Ranks), strconv.Itoa(r.Count), report.Number(r.Msec), report.Number(r.UsecMin / 1e3), report.Number(r.MsecMax), report.Number(r.MergeMsec)})
	}
	s.Tables = append(s.Tables, t)
	return s.draw(f)
}
