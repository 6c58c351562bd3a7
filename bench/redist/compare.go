// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gompi/bench/report"
	"gompi/mam"
)

// Goals of the comparison, as parts of the best peer's time: cold and warm.
const (
	goalCold      = 0.5
	goalWarm      = 0.8
	goalPlaceCold = 0.3 // of INPLACE alone
	goalPlaceWarm = 0.1
	goalByCOL     = 1.0 // PULL and RMA-Lockall by our own COL, cold
)

// compare writes the comparison with peers, of those pairs that they have measured, and
// of ours among each other.
func (b *board) compare(t *strings.Builder) {
	if len(b.peers) > 0 {
		for _, c := range []struct {
			title  string
			number func(*report.Redist) float64
			goals  [2]float64
		}{{"cold", msecOf, [2]float64{goalCold, goalPlaceCold}}, {"warm", warmOf, [2]float64{goalWarm, goalPlaceWarm}}} {
			b.against(t, c.title, c.number, c.goals)
		}
	}
	columns := []string{"ranks"}
	list := []mam.Method{mam.P2P, mam.RMALock, mam.RMALockall, mam.Pull, mam.InPlace}
	for _, m := range list {
		columns = append(columns, m.String())
	}
	began := false
	for _, p := range b.pairs {
		col := b.ofMethod(p, mam.COL.String(), msecOf)
		if col == nil {
			continue
		}
		if !began {
			head(t, fmt.Sprintf("Our other methods by our COL, all blocking, cold (goal of pull and rma-lockall: at most %.1f)", goalByCOL), columns...)
			began = true
		}
		row := []string{p.String()}
		for _, m := range list {
			row = append(row, fixed(ratio(b.ofMethod(p, m.String(), msecOf), col)))
		}
		line(t, row...)
	}
}

// against is our best method and INPLACE beside the peers.
func (b *board) against(t *strings.Builder, title string, number func(*report.Redist) float64, goals [2]float64) {
	columns := slices.Concat([]string{"ranks", ours}, b.peers, []string{"by the best peer", "goal", "inplace", "by the best peer", "goal"})
	began := false
	for _, p := range b.pairs {
		mine := b.least(ours, p, number)
		var theirs rounds
		var cells []string
		for _, peer := range b.peers {
			r := b.least(peer, p, number)
			cells = append(cells, r.String())
			if r.values != nil && (theirs.values == nil || report.Median(r.values) < report.Median(theirs.values)) {
				theirs = r
			}
		}
		if theirs.values == nil || mine.values == nil {
			continue
		}
		if !began {
			head(t, fmt.Sprintf("Beside peers, %s, blocking, msec", title), columns...)
			began = true
		}
		place := rounds{mam.InPlace.String(), b.values(cell{ours, p, mam.InPlace.String(), report.BlockingStrategy}, number)}
		row := slices.Concat([]string{p.String(), mine.String()}, cells, []string{
			fixed(ratio(mine.values, theirs.values)), fmt.Sprintf("<= %.1f", goals[0]),
			place.String(), fixed(ratio(place.values, theirs.values)), fmt.Sprintf("<= %.1f", goals[1]),
		})
		line(t, row...)
	}
}

// rounds are the numbers of one method, by rounds.
type rounds struct {
	method string
	values []float64
}

func (r rounds) String() string {
	if r.values == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s)", report.Number(report.Median(r.values)), r.method)
}

// least is the method with the least median of an implementation; INPLACE has a column of
// its own.
func (b *board) least(impl string, p pair, number func(*report.Redist) float64) (r rounds) {
	for m := mam.COL; m < mam.InPlace; m++ {
		values := b.values(cell{impl, p, m.String(), report.BlockingStrategy}, number)
		if values != nil && (r.values == nil || report.Median(values) < report.Median(r.values)) {
			r = rounds{m.String(), values}
		}
	}
	return r
}

func (b *board) ofMethod(p pair, method string, number func(*report.Redist) float64) []float64 {
	return b.values(cell{"", p, method, report.BlockingStrategy}, number)
}

// values are the numbers of a cell by rounds; nil: there are none.
func (b *board) values(c cell, number func(*report.Redist) float64) (values []float64) {
	for _, r := range b.results(c) {
		values = append(values, number(r.Redist))
	}
	return values
}

// ratio is the median of the rounds' ratios, since a machine's speed changes between them;
// of other numbers of rounds the ratio of the medians; NaN without numbers.
func ratio(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return math.NaN()
	}
	if len(a) != len(b) {
		return report.Median(a) / report.Median(b)
	}
	rs := make([]float64, len(a))
	for i := range a {
		rs[i] = a[i] / b[i]
	}
	return report.Median(rs)
}
