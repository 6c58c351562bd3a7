// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Kind is the rule that assigns elements to ranks.
type Kind uint8

// The rules. In order means that lower ranks have lower elements.
const (
	Block     Kind = iota // in order, equal counts; the first ranks get one more
	Cyclic                // blocks of a fixed size, dealt out in turn
	Weighted              // in order, in proportion to weights of ranks
	Rows                  // rows in order, by weights of rows; a row is one element
	Entries               // the same rows; a row has as many elements as its weight
	Irregular             // in order, with listed counts for some numbers of ranks
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

// Bounds on the number of elements and of ranks. Within them no encoded size overflows.
const (
	MaxElems = 1 << 48
	MaxRanks = 1 << 24
)

// Run is a range of elements with successive global indices.
type Run struct {
	At  int64 `json:"at"`
	Len int64 `json:"len"`
}

// Layout is a rule for any number of ranks. Its Kind says which fields it needs. A Layout must
// not change once it is in use.
type Layout struct {
	Kind Kind `json:"kind"`
	// N is the number of elements. For Entries it is the sum of Weights.
	N int64 `json:"n"`
	// Block is the block size of Cyclic.
	Block int64 `json:"block,omitempty"`
	// Weights are weights of ranks or of rows. For Weighted, rank r has the weight at index
	// r modulo the number of weights.
	Weights []int64 `json:"weights,omitempty"`
	// Counts are lists of the number of elements of each rank. A list applies if there are
	// as many ranks as it has entries. For other numbers of ranks the split is that of Block.
	Counts [][]int64 `json:"counts,omitempty"`
	// Dims are the extents of a Grid; the last dimension varies fastest.
	Dims []int64 `json:"dims,omitempty"`
	// Least says that after a change ranks keep as many of their elements as possible. It
	// works for Block, Weighted and Irregular.
	Least bool `json:"least,omitempty"`
	// Parts are the runs of each rank that result from Least; nil before the first change.
	Parts [][]Run `json:"parts,omitempty"`
}

// Split says which elements each rank has. Its methods panic for a rank that does not exist.
type Split interface {
	// Ranks returns the number of ranks, and Elems the number of elements.
	Ranks() int
	Elems() int64
	// Count returns the number of elements of a rank.
	Count(rank int) int64
	// Runs iterates over the elements of a rank in ascending order.
	Runs(rank int) iter.Seq[Run]
	// Locate returns the rank that has element i, and the index of the element on that rank.
	// n is how many elements from i on the rank has at successive indices, at least.
	Locate(i int64) (rank int, local, n int64)
}

// Check returns an error if l is not a valid layout.
func (l *Layout) Check() error {
	if l.Kind >= kinds {
		return fmt.Errorf("layout of %v", l.Kind)
	}
	if l.N < 0 || l.N > MaxElems {
		return fmt.Errorf("%v of %d elements, 0 to %d allowed", l.Kind, l.N, int64(MaxElems))
	}
	if l.Least && l.Kind != Block && l.Kind != Weighted && l.Kind != Irregular {
		return fmt.Errorf("least movement of %v: only block, weighted and irregular allow it", l.Kind)
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

// sumOf returns the sum of numbers that must not be negative.
func sumOf(list []int64) (sum int64, err error) {
	for _, w := range list {
		if w < 0 || w > MaxElems-sum {
			return 0, fmt.Errorf("%d among weights or counts, whose sum may be %d", w, int64(MaxElems))
		}
		sum += w
	}
	return sum, nil
}

// Over returns the split of the first distribution over so many ranks. If Parts has an entry
// for each of these ranks, it returns the split of Parts.
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

// initial returns the split of the rule alone, without Parts.
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

// Next returns the split after a change to so many ranks, and the layout that goes with it.
// stay lists ranks of old: stay[i] is rank i of the new split.
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
		return nil, next, fmt.Errorf("ranks %v of %d stay, and there will be %d", stay, old.Ranks(), ranks)
	case !l.Least:
		return fresh, next, nil
	}
	p := leastMovement(old, stay, fresh, l.Kind == Block)
	next.Parts = p.ranks
	return p, next, nil
}

// Contiguous reports whether each rank always has one range, and the ranges are in the order of
// ranks.
func (l *Layout) Contiguous() bool { return l.Kind != Cyclic && l.Kind != Grid && !l.Least }

// Same reports whether two layouts are the same rule for the same elements.
func (l *Layout) Same(o *Layout) bool {
	return l.Kind == o.Kind && l.N == o.N && l.Block == o.Block && l.Least == o.Least && slices.Equal(l.Weights, o.Weights) &&
		slices.Equal(l.Dims, o.Dims) && slices.EqualFunc(l.Counts, o.Counts, slices.Equal)
}

// singleRun iterates over one run, if it is not empty.
func singleRun(at, n int64) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		if n > 0 {
			yield(Run{at, n})
		}
	}
}

const _ = uint64(math.MaxInt64 / MaxElems / 1024) // with elements of 1 KiB, byte offsets fit
