// SPDX-License-Identifier: Apache-2.0

package dtype

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// extremes are the arguments at which sums and products stop to fit.
var extremes = []int64{
	0, 1, 2, 3, 8, -1, -2, -8, 1 << 20, -1 << 20, 1<<31 - 1, 1 << 32, 1 << 59, 1 << 60, 1 << 61, 1<<62 - 1, 1 << 62, -1 << 62,
	math.MaxInt64 - 8, math.MaxInt64 - 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, math.MinInt64 + 8,
}

// drawExtreme makes a type of any arguments, or gives the constructor's error.
func drawExtreme(r *rapid.T, depth int) (*Type, error) {
	if depth == 0 {
		return rapid.SampledFrom(basics).Draw(r, "basic"), nil
	}
	old, err := drawExtreme(r, depth-1)
	if err != nil {
		return nil, err
	}
	v := func() int64 { return rapid.SampledFrom(extremes).Draw(r, "argument") }
	pair := func() []int64 { return []int64{v(), v()} }
	switch rapid.IntRange(0, 8).Draw(r, "constructor") {
	case 0:
		return NewContiguous(v(), old)
	case 1:
		return NewVector(v(), v(), v(), old)
	case 2:
		return NewHvector(v(), v(), v(), old)
	case 3:
		return NewIndexed(pair(), pair(), old)
	case 4:
		return NewHindexedBlock(v(), pair(), old)
	case 5:
		other, err := drawExtreme(r, depth-1)
		if err != nil {
			return nil, err
		}
		return NewStruct(pair(), pair(), []*Type{old, other})
	case 6:
		return NewResized(old, v(), v())
	case 7:
		return NewSubarray(pair(), pair(), pair(), OrderC, old)
	}
	g := ArrayDistribution{pair(), []Distribution{Distribution(rapid.IntRange(0, 2).Draw(r, "distribution")), DistributeCyclic}, pair(), pair(), OrderFortran}
	return NewDarray(v(), v(), g, old)
}

// TestExtremes: whatever the arguments, there is an error, or a type whose
// numbers are right.
func TestExtremes(t *testing.T) {
	for range 50 {
		rapid.Check(t, func(r *rapid.T) {
			dt, err := drawExtreme(r, rapid.IntRange(1, 3).Draw(r, "depth"))
			if err != nil {
				var arg *ArgError
				if !errors.As(err, &arg) && !errors.Is(err, ErrOverflow) {
					r.Fatalf("error %v", err)
				}
				return
			}
			compareNumbers(r, dt)
		})
	}
}

func compareNumbers(r *rapid.T, dt *Type) {
	lb, ub := dt.TrueLB(), dt.TrueLB()+dt.TrueExtent()
	if dt.Size < 0 || dt.TrueExtent() < 0 || ub < lb || dt.ExternalSize() < 0 || dt.ExternalSize() > dt.Size {
		r.Fatalf("size %d, true bounds [%d, %d), external size %d", dt.Size, lb, ub, dt.ExternalSize())
	}
	if dt.Size == 0 {
		return
	}
	if lo, hi, ok := dt.Reach(1); !ok || lo != lb || hi != ub {
		r.Fatalf("reach [%d, %d), %v, want [%d, %d)", lo, hi, ok, lb, ub)
	}
	if lo, hi := dt.Span(0, dt.Size); lo != lb || hi != ub {
		r.Fatalf("span [%d, %d), want [%d, %d)", lo, hi, lb, ub)
	}
	for _, off := range []int64{0, dt.Size / 3, dt.Size - 1} {
		if at, n := dt.Block(off, 1); n != 1 || at < lb || at >= ub {
			r.Fatalf("byte %d: %d at %d, outside [%d, %d)", off, n, at, lb, ub)
		}
		if lo, hi := dt.Span(off, dt.Size-off); lo < lb || hi > ub || lo >= hi {
			r.Fatalf("span from %d is [%d, %d), outside [%d, %d)", off, lo, hi, lb, ub)
		}
	}
	if n, whole := dt.Elements(dt.Size); n <= 0 || !whole {
		r.Fatalf("%d basic elements, %v", n, whole)
	}
}
