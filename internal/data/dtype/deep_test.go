// SPDX-License-Identifier: Apache-2.0

package dtype

import "testing"

// doubled is a struct of an int16 and a float64 in a struct of two of these,
// and so on, depth structs deep.
func doubled(t testing.TB, depth int) *Type {
	dt, err := NewStruct([]int64{1, 1}, []int64{0, 8}, []*Type{tInt16, tFloat64})
	for range depth {
		if err != nil {
			t.Fatal(err)
		}
		dt, err = NewStruct([]int64{1, 1}, []int64{0, dt.Extent()}, []*Type{dt, dt})
	}
	if err != nil {
		t.Fatal(err)
	}
	return dt
}

// TestDeepNesting: what a type takes to make and to count does not double with
// each struct around it.
func TestDeepNesting(t *testing.T) {
	const depth = 55
	dt, n := doubled(t, depth), int64(1)<<depth
	if dt.Size != 10*n || dt.Extent() != 16*n || dt.ExternalSize() != 10*n {
		t.Errorf("size %d, extent %d, external size %d", dt.Size, dt.Extent(), dt.ExternalSize())
	}
	for _, c := range []struct {
		bytes, elements int64
		whole           bool
	}{
		{0, 0, true}, {2, 1, true}, {9, 1, false}, {10, 2, true}, {10 * n, 2 * n, true}, {10*n - 8, 2*n - 1, true}, {10*n - 1, 2*n - 1, false},
		{5 * n, n, true}, {10*n + 12, 2*n + 3, true},
	} {
		if got, whole := dt.Elements(c.bytes); got != c.elements || whole != c.whole {
			t.Errorf("%d bytes: %d basic elements, %v, want %d, %v", c.bytes, got, whole, c.elements, c.whole)
		}
	}
	if k := len(dt.Signature()); k > 2*fewRuns {
		t.Errorf("the signature has %d runs", k)
	}
}

// TestLongSignature: the numbers of a type whose signature shares parts.
func TestLongSignature(t *testing.T) {
	deep := doubled(t, 8)
	dt, err := NewStruct([]int64{1, 2, 1}, []int64{0, 8, 8 + 2*deep.Extent()}, []*Type{tComplex, deep, tInt16})
	if err != nil {
		t.Fatal(err)
	}
	var widths []int64
	var walk func([]Run)
	walk = func(runs []Run) {
		for _, r := range runs {
			for range r.N {
				if r.Sub != nil {
					walk(r.Sub)
				} else {
					widths = append(widths, r.Width)
				}
			}
		}
	}
	walk(dt.Signature())
	if len(widths) != 2+2*2*256+1 {
		t.Fatalf("%d numbers", len(widths))
	}
	for i, w := range widths {
		want := int64(8)
		if i >= 2 && i%2 == 0 {
			want = 2
		}
		if w != want {
			t.Fatalf("number %d has %d bytes, want %d", i, w, want)
		}
	}
	if n, whole := dt.Elements(dt.Size); n != 1+2*2*256+1 || !whole {
		t.Errorf("%d basic elements, %v", n, whole)
	}
}
