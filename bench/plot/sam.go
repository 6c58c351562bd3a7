// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"gompi/bench/report"
)

// mostRuns is how many runs of the synthetic application get a figure of their own: the
// numbers have all.
const mostRuns = 8

// sam is the section of runs of the synthetic application: of each configuration its
// changes and what they take, the stages of iterations in each phase and group, and some
// runs iteration by iteration.
func (s *section) sam(rs []report.Result) error {
	s.Note = "Runs of the synthetic application, medians of the repetitions. A change is from the request until the new ranks go on (total), with " +
		"the start of newcomers (spawn), constant data while the sources iterate (async) and data at the commit (sync); these may overlap. " +
		"Stages are the medians of the iterations of a group."
	slices.SortStableFunc(rs, func(a, b report.Result) int {
		return cmp.Or(cmp.Compare(a.Sam.Config, b.Sam.Config), cmp.Compare(a.Sam.Repetition, b.Sam.Repetition))
	})
	for _, rs := range grouped(rs, func(a, b report.Result) bool { return a.Sam.Config == b.Sam.Config }) {
		if err := s.samOf(rs); err != nil {
			return err
		}
	}
	return nil
}

// change is one of a run.
type change struct {
	run  *report.Sam
	what *report.SamResize
	part string
	msec float64
}

func (s *section) samOf(rs []report.Result) error {
	config := rs[0].Sam.Config
	name := func(r report.Result) string { return r.Sam.Name() }
	runs := table{Title: config + ": runs", Left: 2, Head: []string{"variant", "transport", "repetition", "total ms", "iterations", "median ms/iter", "of them during changes"}}
	changes := table{Title: config + ": changes", Left: 4, Head: []string{"variant", "change", "method", "strategy", "repetition"}}
	changes.Head = append(append(changes.Head, report.SamTimeNames()...), "moved MB", "iterations meanwhile")
	var parts []change
	for _, r := range rs {
		var all []float64
		during := 0
		for i, g := range r.Sam.Groups {
			meanwhile := 0
			for _, p := range g.Phases {
				all = append(all, p.IterMsec...)
				meanwhile += p.Overlapped
			}
			during += meanwhile
			if i == len(r.Sam.Resizes) {
				continue
			}
			x := &r.Sam.Resizes[i]
			row := []string{r.Sam.Name(), fmt.Sprintf("%d\u2192%d", x.From, x.To), x.Method, x.Strategy, strconv.Itoa(r.Sam.Repetition)}
			for _, v := range x.Times() {
				row = append(row, report.Number(v))
			}
			changes.Rows = append(changes.Rows, append(row, report.Number(float64(x.MovedBytes)/1e6), strconv.Itoa(meanwhile)))
			for _, p := range []struct {
				part string
				msec float64
			}{{"total", x.TotalMsec}, {"spawn", x.SpawnMsec}, {"async", x.AsyncMsec}, {"sync", x.SyncMsec}} {
				parts = append(parts, change{r.Sam, x, p.part, p.msec})
			}
		}
		runs.Rows = append(runs.Rows, []string{r.Sam.Name(), r.Transport, strconv.Itoa(r.Sam.Repetition), report.Number(r.Sam.TotalMsec), strconv.Itoa(len(all)), report.Number(report.Median(all)), strconv.Itoa(during)})
	}
	s.Tables = append(s.Tables, runs)
	figs := []report.Figure{barsOf(config+": the whole", "ms", rs, name, func(report.Result) string { return "" }, func(r report.Result) float64 { return r.Sam.TotalMsec })}
	if len(changes.Rows) > 0 {
		s.Tables = append(s.Tables, changes)
		label := func(c change) string {
			if len(c.run.Resizes) == 1 {
				return c.run.Name()
			}
			return fmt.Sprintf("%d\u2192%d in %s", c.what.From, c.what.To, c.run.Name())
		}
		figs = append(figs, barsOf(config+": changes", "ms", parts, label, func(c change) string { return c.part }, func(c change) float64 { return c.msec }))
	}
	figs = append(figs, stagesOf(config, rs)...)
	drawn := 0
	for _, r := range rs {
		if r.Sam.Repetition == rs[0].Sam.Repetition && drawn < mostRuns {
			figs = append(figs, timeline(r.Sam))
			drawn++
		}
	}
	return s.draw(figs...)
}

// spent is the time of a stage in the iterations of a group.
type spent struct {
	procs, stage int
	name         string
	msec         float64
}

// stagesOf draws, for each phase, the stages of iterations on each number of ranks.
func stagesOf(config string, rs []report.Result) (figs []report.Figure) {
	var phases [][]spent
	for _, r := range rs {
		for _, g := range r.Sam.Groups {
			for _, p := range g.Phases {
				for len(phases) <= p.Phase && p.Phase < mostBars {
					phases = append(phases, nil)
				}
				for k, list := range p.StageMsec {
					if p.Phase < mostBars && len(list) > 0 {
						phases[p.Phase] = append(phases[p.Phase], spent{g.Procs, k, fmt.Sprintf("%d: %s", k, r.Sam.Stages[p.Phase][k]), report.Median(list)})
					}
				}
			}
		}
	}
	for i, list := range phases {
		slices.SortStableFunc(list, func(a, b spent) int {
			return cmp.Or(cmp.Compare(a.procs, b.procs), cmp.Compare(a.stage, b.stage))
		})
		f := barsOf(fmt.Sprintf("%s: stages of an iteration of phase %d", config, i), "ms", list,
			func(x spent) string { return ranksText(x.procs) }, func(x spent) string { return x.name }, func(x spent) float64 { return x.msec })
		f.Stacked = true
		figs = append(figs, f)
	}
	return figs
}

// timeline draws a run iteration by iteration: each group, and those of the last
// iterations that it did while the next one was on its way.
func timeline(s *report.Sam) report.Figure {
	f := report.Figure{Title: s.Name(), X: report.Axis{Label: "iteration", Linear: true}, Y: report.Axis{Label: "ms"}}
	at := 0
	for i, g := range s.Groups {
		name := fmt.Sprintf("group %d: %s", i, ranksText(g.Procs))
		own, last := report.Series{Name: name}, report.Series{Name: name + ", changing"}
		for _, p := range g.Phases {
			for k, v := range p.IterMsec {
				to := &own
				if k >= len(p.IterMsec)-p.Overlapped {
					to = &last
				}
				to.X, to.Y = append(to.X, float64(at)), append(to.Y, v)
				at++
			}
		}
		f.Series = append(f.Series, own, last)
	}
	return f
}
