// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"gompi/bench/report"
	"gompi/collectives"
	"gompi/collectives/selection"
)

// worthIt is how much faster than the algorithms of smaller sizes others must be to get
// rules of their own: this gives fewer rules, and fewer that only noise made.
const worthIt = 1.05

const tableHead = `# Rules that select algorithms of collectives: gompirun --coll-table FILE.
# Written by gompibench tune, which replaces the rules of the collectives and
# numbers of ranks that it measures, and keeps all others.
# operation max-ranks max-bytes algorithm; 0 is no limit; the first that fits wins.
`

// Rules returns the rules that select the fastest algorithm of each size: up to the
// measured number of ranks, and up to the middle between two sizes. A winner that does not
// support every call is followed by the next best.
func (t *Tuned) Rules() []selection.Rule {
	var rules []selection.Rule
	points := t.points()
	for i := 0; i < len(points); {
		list, next := ranking(points[i].Times), i+1
		for next < len(points) && nearlyBest(list, points[next].Times) {
			next++
		}
		limit := int64(0)
		if next < len(points) {
			limit = between(points[next-1].Bytes, points[next].Bytes)
		}
		for _, g := range list {
			rules = append(rules, selection.Rule{Op: t.Op, MaxRanks: t.Ranks, MaxBytes: limit, Name: g.Name})
		}
		i = next
	}
	return rules
}

// points returns the points between which rules can choose: a single one with the relative
// times of all, if lengths do not matter.
func (t *Tuned) points() []TunedPoint {
	if len(t.Points) == 0 || t.Points[len(t.Points)-1].Bytes > 0 {
		return t.Points
	}
	product, sizes := map[*collectives.Algorithm]float64{}, map[*collectives.Algorithm]int{}
	for _, p := range t.Points {
		for _, x := range p.Times {
			sizes[x.Alg]++
			product[x.Alg] += math.Log(x.Usec / p.Times[0].Usec)
		}
	}
	var all TunedPoint
	for _, x := range t.Points[0].Times {
		if sizes[x.Alg] == len(t.Points) {
			all.Times = append(all.Times, TunedTiming{x.Alg, math.Exp(product[x.Alg] / float64(len(t.Points)))})
		}
	}
	slices.SortStableFunc(all.Times, func(x, y TunedTiming) int { return cmp.Compare(x.Usec, y.Usec) })
	return []TunedPoint{all}
}

// ranking returns the algorithms that get rules: each supports calls that those before it
// do not.
func ranking(times []TunedTiming) []*collectives.Algorithm {
	var list []*collectives.Algorithm
	covered := uint(0)
	for _, x := range times {
		if can := classes(x.Alg); can&^covered != 0 {
			list = append(list, x.Alg)
			covered |= can
		}
	}
	return list
}

// nearlyBest reports whether rules for list would be as good as those for these times, for
// every call.
func nearlyBest(list []*collectives.Algorithm, times []TunedTiming) bool {
	usec := map[*collectives.Algorithm]float64{}
	for _, x := range times {
		usec[x.Alg] = x.Usec
	}
	best := ranking(times)
	for class := range numClasses {
		mine, theirs := first(list, class), first(best, class)
		if mine == theirs {
			continue
		}
		if t, ok := usec[mine]; !ok || theirs == nil || t > worthIt*usec[theirs] {
			return false
		}
	}
	return true
}

func first(list []*collectives.Algorithm, class uint) *collectives.Algorithm {
	i := slices.IndexFunc(list, func(g *collectives.Algorithm) bool { return classes(g)&(1<<class) != 0 })
	if i < 0 {
		return nil
	}
	return list[i]
}

// numClasses of calls: with or without shared memory, memory that others read,
// an operation that commutes, several nodes, a power of two of ranks.
const numClasses uint = 32

// classes is the set of the classes of calls that an algorithm supports.
func classes(g *collectives.Algorithm) (set uint) {
	needs := uint(0)
	for i, need := range []bool{g.Shared && !g.Reads, g.Reads, g.Commutative, g.TwoLevel, g.PowerOfTwo} {
		if need {
			needs |= 1 << i
		}
	}
	for class := range numClasses {
		if needs&^class == 0 {
			set |= 1 << class
		}
	}
	return set
}

// between returns the largest power of two up to the geometric mean of two sizes, but at
// least the smaller one.
func between(small, large int64) int64 {
	mean := uint64(math.Sqrt(float64(small)) * math.Sqrt(float64(large)))
	return max(small, int64(1)<<max(bits.Len64(mean)-1, 0))
}

// Section returns the rules as text after the medians that led to them, as comments. name
// describes the measurement.
func (t *Tuned) Section(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %v on %d ranks, %s: medians of %d rounds in us\n", t.Op, t.Ranks, name, t.Rounds)
	for _, p := range t.Points {
		fmt.Fprintf(&b, "# %8s ", report.Bytes(float64(p.Size)))
		for _, x := range p.Times {
			fmt.Fprintf(&b, "  %s %s", x.Alg.Name, report.Number(x.Usec))
		}
		b.WriteByte('\n')
	}
	return b.String() + selection.FormatRules(t.Rules())
}

// MergeTable replaces the rules for the same collectives and numbers of ranks in the text
// of a table, which may be empty. All else stays as it is. name is as in Section. Errors:
// an invalid table.
func MergeTable(text, name string, measured []Tuned) (string, error) {
	if _, err := selection.ParseTable(text); err != nil {
		return "", err
	}
	sections, err := cutTable(text)
	if err != nil {
		return "", err
	}
	if len(sections) == 0 {
		sections = []tableSection{{text: tableHead}}
	}
	for i := range measured {
		t := &measured[i]
		sections = slices.DeleteFunc(sections, func(s tableSection) bool { return s.rules && s.op == t.Op && s.ranks == t.Ranks })
		sections = slices.Insert(sections, place(sections, t), tableSection{t.Section(name), true, t.Op, t.Ranks})
	}
	parts := make([]string, len(sections))
	for i, s := range sections {
		parts[i] = strings.Trim(s.text, "\n") + "\n"
	}
	merged := strings.Join(parts, "\n")
	_, err = selection.ParseTable(merged)
	return merged, err
}

// place returns the position of a new section: rules are tried in order, so rules of an
// operation for fewer ranks come first. Operations are in their usual order unless the
// user has changed it.
func place(sections []tableSection, t *Tuned) int {
	later, last, other := -1, -1, -1
	for i, s := range sections {
		switch {
		case !s.rules:
		case s.op == t.Op:
			last = i
			if later < 0 && (s.ranks == 0 || s.ranks > t.Ranks) {
				later = i
			}
		case other < 0 && s.op > t.Op:
			other = i
		}
	}
	switch {
	case later >= 0:
		return later
	case last >= 0:
		return last + 1
	case other >= 0:
		return other
	}
	return len(sections)
}

// tableSection is a piece of a table: comments, or rules of one operation and
// number of ranks with the comments before them.
type tableSection struct {
	text  string
	rules bool
	op    collectives.Op
	ranks int
}

// cutTable cuts a table where the operation or the number of ranks changes,
// and at empty lines.
func cutTable(text string) ([]tableSection, error) {
	var list []tableSection
	var s tableSection
	end := func() {
		if s.text != "" {
			list = append(list, s)
		}
		s = tableSection{}
	}
	for line := range strings.Lines(text) {
		rules, err := selection.ParseRules(line)
		if err != nil {
			return nil, err
		}
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "":
			end()
			continue
		case len(rules) == 0:
			if s.rules {
				end()
			}
		default:
			r := rules[0]
			if s.rules && (s.op != r.Op || s.ranks != r.MaxRanks) {
				end()
			}
			s.rules, s.op, s.ranks = true, r.Op, r.MaxRanks
		}
		s.text += strings.TrimSuffix(line, "\n") + "\n"
	}
	end()
	return list, nil
}
