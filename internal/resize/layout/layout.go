// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Kind is a rule by which elements are given to ranks.
type Kind uint8

// The rules.
const (
	Block     Kind = iota // in order, as many each; the first get one more
	Cyclic                // blocks of some size, dealt out in turn
	Weighted              // in order, in proportion to weights of ranks
	Rows                  // rows, in order, by weights of rows; an element a row
	Entries               // the same rows; as many elements a row as it weighs
	Irregular             // in order, as many as is said for each number of ranks
	Grid                  // blocks of an array of several dimensions, row-major
	kinds
)

var kindNames = [kinds]string{"block", "cyclic", "weighted", "rows", "entries", "irregular", "grid"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Most elements of a whole, and most ranks: what is sent of them does not overflow.
const (
	MaxElems = 1 << 48
	MaxRanks = 1 << 24
)

// Run is elements that are neighbours in the whole.
type Run struct {
	At  int64 `json:"at"`
	Len int64 `json:"len"`
}

// Layout is a rule. Its fields are what the Kind needs, and are not changed once it is
// used.
type Layout struct {
	Kind Kind `json:"kind"`
	// N is how many elements there are; of Entries the sum of Weights.
	N int64 `json:"n"`
	// Block is the size of the blocks of Cyclic.
	Block int64 `json:"block,omitempty"`
	// Weights are those of ranks (Weighted: of rank r the one at r modulo how many
	// there are) or of rows.
	Weights []int64 `json:"weights,omitempty"`
	// Counts are lists of how many elements each rank has, each for as many ranks as it
	// is long; between other numbers of ranks elements are split as Block does.
	Counts [][]int64 `json:"counts,omitempty"`
	// Dims are the extents of a Grid, the last one that of neighbours.
	Dims []int64 `json:"dims,omitempty"`
	// Least: at a change ranks keep what they can of what they have. Of Block, Weighted
	// and Irregular.
	Least bool `json:"least,omitempty"`
	// Parts is what Least has come to, of each rank; nil before the first change.
	Parts [][]Run `json:"parts,omitempty"`
}

// Split is what each of some ranks has. Of a rank outside of them it panics.
type Split interface {
	// Ranks is how many there are, Elems how many elements they share.
	Ranks() int
	Elems() int64
	// Count is how many elements a rank has.
	Count(rank int) int64
	// Runs are the elements of a rank, in order.
	Runs(rank int) iter.Seq[Run]
	// Locate says who has element i, as how manyth, and how many elements from it on
	// are at least there, too, side by side.
	Locate(i int64) (rank int, local, n int64)
}

// Check is why l is no layout; nil: it is one.
func (l *Layout) Check() error {
	if l.Kind >= kinds {
		return fmt.Errorf("layout of %v", l.Kind)
	}
	if l.N < 0 || l.N > MaxElems {
		return fmt.Errorf("%v of %d elements, 0 to %d allowed", l.Kind, l.N, int64(MaxElems))
	}
	if l.Least && l.Kind != Block && l.Kind != Weighted && l.Kind != Irregular {
		return fmt.Errorf("least movement of %v: where elements are counts for nothing there only of block, weighted and irregular", l.Kind)
	}
	if err := l.checkKind(); err != nil {
		return fmt.Errorf("%v of %d elements: %w", l.Kind, l.N, err)
	}
	if l.Parts != nil {
		if !l.Least {
			return fmt.Errorf("%v of %d elements: parts of ranks, without least movement", l.Kind, l.N)
		}
		if _, err := newRunSplit(l.N, l.Parts); err != nil {
			return fmt.Errorf("%v of %d elements: %w", l.Kind, l.N, err)
		}
	}
	return nil
}

func (l *Layout) checkKind() error {
	switch l.Kind {
	case Cyclic:
		if l.Block <= 0 || l.Block > MaxElems {
			return fmt.Errorf("blocks of %d", l.Block)
		}
	case Weighted:
		if sum, err := sumOf(l.Weights); err != nil {
			return err
		} else if sum == 0 {
			return fmt.Errorf("%d weights of ranks, none of them above 0", len(l.Weights))
		}
	case Rows, Entries:
		sum, err := sumOf(l.Weights)
		want := int64(len(l.Weights))
		if l.Kind == Entries {
			want = sum
		}
		if err == nil && want != l.N {
			err = fmt.Errorf("%d rows with %d entries", len(l.Weights), sum)
		}
		return err
	case Irregular:
		for i, list := range l.Counts {
			switch sum, err := sumOf(list); {
			case err != nil:
				return err
			case sum != l.N || len(list) == 0:
				return fmt.Errorf("the counts of %d ranks make %d", len(list), sum)
			case slices.ContainsFunc(l.Counts[:i], func(o []int64) bool { return len(o) == len(list) }):
				return fmt.Errorf("two lists of counts of %d ranks", len(list))
			}
		}
	case Grid:
		product := int64(1)
		for _, d := range l.Dims {
			if d < 0 || d > 0 && product > MaxElems/d {
				return fmt.Errorf("extents %v", l.Dims)
			}
			product *= d
		}
		if len(l.Dims) == 0 || len(l.Dims) > 8 || product != l.N {
			return fmt.Errorf("extents %v, 1 to 8 of them", l.Dims)
		}
	}
	return nil
}

// sumOf adds what is not negative.
func sumOf(list []int64) (sum int64, err error) {
	for _, w := range list {
		if w < 0 || w > MaxElems-sum {
			return 0, fmt.Errorf("%d among weights or counts, whose sum may be %d", w, int64(MaxElems))
		}
		sum += w
	}
	return sum, nil
}

// Over is what ranks have if nobody had anything before, or, of Least, what Parts says
// if that is for as many.
func (l *Layout) Over(ranks int) (Split, error) {
	if ranks < 1 || ranks > MaxRanks {
		return nil, fmt.Errorf("%v over %d ranks, 1 to %d allowed", l.Kind, ranks, MaxRanks)
	}
	if err := l.Check(); err != nil {
		return nil, err
	}
	if len(l.Parts) == ranks {
		return newRunSplit(l.N, l.Parts)
	}
	return l.initial(ranks), nil
}

// fresh is the rule without what was before.
func (l *Layout) initial(ranks int) Split {
	switch l.Kind {
	case Cyclic:
		return cyclic{l.N, l.Block, ranks}
	case Weighted:
		return weighted(l.N, l.Weights, ranks)
	case Rows:
		return rows(l.Weights, ranks)
	case Entries:
		return entries(l.Weights, ranks)
	case Irregular:
		for _, list := range l.Counts {
			if len(list) == ranks {
				return cutsOfCounts(list)
			}
		}
	case Grid:
		return newGrid(l.Dims, ranks)
	}
	return block{l.N, ranks}
}

// Next is what ranks have after a change: stay are the ranks in old of the first of them,
// who were there before. The layout is that of the time after.
func (l *Layout) Next(old Split, stay []int, ranks int) (Split, Layout, error) {
	next := *l
	next.Parts = nil
	fresh, err := next.Over(ranks)
	switch {
	case err != nil:
		return nil, next, err
	case old.Elems() != l.N:
		return nil, next, fmt.Errorf("%v of %d elements, there were %d", l.Kind, l.N, old.Elems())
	case len(stay) > ranks || slices.ContainsFunc(stay, func(r int) bool { return r < 0 || r >= old.Ranks() }):
		return nil, next, fmt.Errorf("of %d ranks %v stay among %d", old.Ranks(), stay, ranks)
	case !l.Least:
		return fresh, next, nil
	}
	p := leastMovement(old, stay, fresh, l.Kind == Block)
	next.Parts = p.ranks
	return p, next, nil
}

// Contiguous reports whether each rank has one range, and the ranges are in the order of
// ranks, whatever their number.
func (l *Layout) Contiguous() bool { return l.Kind != Cyclic && l.Kind != Grid && !l.Least }

// Same reports whether two layouts are the same rule for the same elements.
func (l *Layout) Same(o *Layout) bool {
	return l.Kind == o.Kind && l.N == o.N && l.Block == o.Block && l.Least == o.Least && slices.Equal(l.Weights, o.Weights) &&
		slices.Equal(l.Dims, o.Dims) && slices.EqualFunc(l.Counts, o.Counts, slices.Equal)
}

// one is the runs of who has elements side by side.
func singleRun(at, n int64) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		if n > 0 {
			yield(Run{at, n})
		}
	}
}

const _ = uint64(math.MaxInt64 / MaxElems / 1024) // of 1 KiB each, all bytes have a number
