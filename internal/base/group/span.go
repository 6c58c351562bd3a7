// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"fmt"
	"slices"
)

// span is count ranks: first, first+step, ...; step > 0.
type span struct{ first, count, step int }

func (s span) last() int { return s.first + (s.count-1)*s.step }

// ascending returns the span of the ranks first, first+step, ... for a step of either
// sign.
func ascending(first, count, step int) span {
	if step < 0 {
		first, step = first+(count-1)*step, -step
	}
	if count == 1 {
		step = 1
	}
	return span{first, count, step}
}

// total returns the number of ranks of disjoint spans.
func total(spans []span) int {
	n := 0
	for _, s := range spans {
		n += s.count
	}
	return n
}

// push appends rank i, which is above all ranks of spans.
func push(spans []span, i int) []span {
	if k := len(spans) - 1; k >= 0 {
		switch s := &spans[k]; {
		case s.count == 1:
			s.step = i - s.first
			s.count++
			return spans
		case s.first+s.count*s.step == i:
			s.count++
			return spans
		}
	}
	return append(spans, span{i, 1, 1})
}

// sorted returns the ranks of spans in an order in which each span ends before the
// next one begins. It takes interleaved spans apart. A duplicate rank is an error.
func sorted(spans []span) ([]span, error) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var out []span
	for i := 0; i < len(spans); {
		j, last := i+1, spans[i].last()
		for j < len(spans) && spans[j].first <= last {
			last = max(last, spans[j].last())
			j++
		}
		if j == i+1 {
			out = append(out, spans[i])
			i = j
			continue
		}
		var ranks []int
		for _, s := range spans[i:j] {
			if len(ranks)+s.count > last-spans[i].first+1 {
				return nil, fmt.Errorf("a rank from %d to %d is listed twice", spans[i].first, last)
			}
			for k := range s.count {
				ranks = append(ranks, s.first+k*s.step)
			}
		}
		slices.Sort(ranks)
		for k, r := range ranks {
			if k > 0 && ranks[k-1] == r {
				return nil, fmt.Errorf("rank %d is listed twice", r)
			}
			out = push(out, r)
		}
		i = j
	}
	return out, nil
}

// complement returns the ranks below n that are not in the ordered spans.
func complement(n int, spans []span) []span {
	var out []span
	next := 0
	upTo := func(end int) { // appends the ranks from next up to end
		if end > next {
			out = append(out, ascending(next, end-next, 1))
		}
	}
	for _, s := range spans {
		upTo(s.first)
		switch s.step {
		case 1:
		case 2:
			if s.count > 1 {
				out = append(out, ascending(s.first+1, s.count-1, 2))
			}
		default:
			for i := range s.count - 1 {
				next = s.first + i*s.step + 1
				upTo(next + s.step - 1)
			}
		}
		next = s.last() + 1
	}
	upTo(n)
	return out
}
