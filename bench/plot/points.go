// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/report"
)

// byPoint orders results as the page shows them.
func byPoint(a, b report.Result) int {
	return cmp.Or(cmp.Compare(a.Bench, b.Bench), cmp.Compare(a.Transport, b.Transport),
		cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Bytes, b.Bytes))
}

// merge sorts a copy of rs and makes repeated points one.
func merge(rs []report.Result) []report.Result {
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, byPoint)
	var out []report.Result
	for _, same := range grouped(rs, func(a, b report.Result) bool { return byPoint(a, b) == 0 }) {
		out = append(out, middle(same))
	}
	return out
}

// middle takes the median of each number of several runs of one point.
func middle(rs []report.Result) report.Result {
	m := rs[0]
	of := func(f func(r *report.Result) float64) float64 {
		v := make([]float64, len(rs))
		for i := range rs {
			v[i] = f(&rs[i])
		}
		return report.Median(v)
	}
	m.Usec = of(func(r *report.Result) float64 { return r.Usec })
	m.UsecMin = of(func(r *report.Result) float64 { return r.UsecMin })
	m.UsecP99 = of(func(r *report.Result) float64 { return r.UsecP99 })
	m.MBps = of(func(r *report.Result) float64 { return r.MBps })
	m.Allocs = of(func(r *report.Result) float64 { return r.Allocs })
	if len(rs) > 1 {
		m.States = nil // each run has parted its own
	}
	return m
}

// points is the section of a measurement of messages or collectives, or of what has one
// number for each transport.
func (s *section) points(rs []report.Result) error {
	rs = merge(rs)
	byBytes := slices.ContainsFunc(rs, func(r report.Result) bool { return r.Bytes != rs[0].Bytes })
	byRanks := slices.ContainsFunc(rs, func(r report.Result) bool { return r.Ranks != rs[0].Ranks })
	usec := func(r report.Result) float64 { return r.Usec }
	transport := func(r report.Result) string { return r.Transport }
	s.table(rs)
	switch {
	case byBytes:
		x := report.Axis{Label: "message size in bytes", Binary: true, Bytes: true}
		bytesOf := func(r report.Result) float64 { return float64(r.Bytes) }
		figs := []report.Figure{
			against(s.Bench+": time", x, report.Axis{Label: "time in us"}, rs, lineOfJob, bytesOf, usec),
			against(s.Bench+": bandwidth", x, report.Axis{Label: "bandwidth in MB/s"}, rs, lineOfJob, bytesOf, func(r report.Result) float64 { return r.MBps }),
		}
		if states := byState(rs); len(states) > 0 {
			figs = append(figs, against(s.Bench+": time, near and far", x, report.Axis{Label: "time in us"}, states, lineOfJob, bytesOf, usec))
		}
		ours := slices.DeleteFunc(slices.Clone(rs), func(r report.Result) bool { return math.IsNaN(toBest(rs, r)) })
		if len(ours) > 0 {
			figs = append(figs, against(s.Bench+": time over that of the best peer", x, report.Axis{Label: "ratio (below 1: faster)"}, ours, lineOfJob, bytesOf,
				func(r report.Result) float64 { return toBest(rs, r) }))
		}
		return s.draw(figs...)
	case byRanks:
		return s.draw(against(s.Bench+": time", report.Axis{Label: "ranks", Binary: true}, report.Axis{Label: "time in us"}, rs,
			transport, func(r report.Result) float64 { return float64(r.Ranks) }, usec))
	case len(rs) > 1:
		return s.draw(barsOf(s.Bench+": time", "time in us", rs, transport, func(report.Result) string { return "" }, usec))
	}
	return nil
}

// byState are the medians of each state of the machine, where there are two.
func byState(rs []report.Result) []report.Result {
	var list []report.Result
	for _, r := range rs {
		if s := r.States; s != nil {
			for _, x := range []struct {
				name string
				usec float64
			}{{", near", s.UsecNear}, {", far", s.UsecFar}} {
				if x.usec > 0 {
					list = append(list, report.Result{Transport: r.Transport + x.name, Ranks: r.Ranks, Bytes: r.Bytes, Usec: x.usec})
				}
			}
		}
	}
	return list
}

// ours is what transports of this library are called beside those of peers, as "us/shm".
const ours = "gompi"

// toBest is the time of a point of ours over that of the peer which takes the least for the
// same; NaN if the point is not ours, or no peer has it.
func toBest(rs []report.Result, r report.Result) float64 {
	who, over, ok := strings.Cut(r.Transport, "/")
	best := math.Inf(1)
	for _, p := range rs {
		if name, same, peer := strings.Cut(p.Transport, "/"); peer && name != ours && same == over && p.Ranks == r.Ranks && p.Bytes == r.Bytes && p.Usec > 0 {
			best = min(best, p.Usec)
		}
	}
	if !ok || who != ours || math.IsInf(best, 1) {
		return math.NaN()
	}
	return r.Usec / best
}

// table is the numbers of points.
func (s *section) table(rs []report.Result) {
	t := table{Left: 1, Head: []string{"transport", "ranks", "bytes", "us (median)", "min", "p99", "MB/s", "allocs"}}
	peers := slices.ContainsFunc(rs, func(r report.Result) bool { return !math.IsNaN(toBest(rs, r)) })
	if peers {
		t.Head = append(t.Head, "to best peer")
	}
	for _, r := range rs {
		rate := "-"
		if r.Bytes > 0 {
			rate = report.Number(r.MBps)
		}
		row := []string{r.Transport, strconv.Itoa(r.Ranks), sizeText(r.Bytes), report.Number(r.Usec), report.Number(r.UsecMin), report.Number(r.UsecP99), rate, report.Number(r.Allocs)}
		if peers {
			row = append(row, report.Number(toBest(rs, r)))
		}
		t.Rows = append(t.Rows, row)
	}
	s.Tables = append(s.Tables, t)
}

func lineOfJob(r report.Result) string { return r.Transport + ", " + ranksText(r.Ranks) }

func ranksText(n int) string {
	if n == 1 {
		return "1 rank"
	}
	return strconv.Itoa(n) + " ranks"
}
