// SPDX-License-Identifier: Apache-2.0

package dtype

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

func must(t testing.TB) func(*Type, error) *Type {
	return func(dt *Type, err error) *Type {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return dt
	}
}

// String writes a node as blocks, loops and lists.
func (n *node) String() string {
	switch {
	case n == nil:
		return "none"
	case n.shape == shapeBlock:
		return fmt.Sprint(n.size)
	case n.shape == shapeLoop:
		return fmt.Sprintf("%d*%d(%v)", n.count, n.stride, n.child)
	}
	s := "["
	for i := range len(n.blocks) - 1 {
		s += fmt.Sprintf("%d@%d ", n.blocks[i+1].off-n.blocks[i].off, n.blocks[i].at)
	}
	for _, p := range n.entries {
		s += fmt.Sprintf("%v@%d ", p.n, p.at)
	}
	return s[:len(s)-1] + "]"
}

// TestShortest: what is regular becomes loops, whatever it was made by, and
// neighbours become one block; nothing is as long as it has elements.
func TestShortest(t *testing.T) {
	ok := must(t)
	f, g := tFloat64, tFloat32
	column := ok(NewVector(4096, 1, 4096, f))
	face := ok(NewSubarray([]int64{1 << 20, 1 << 20, 1 << 10}, []int64{1 << 19, 1, 1 << 9}, []int64{5, 6, 7}, OrderC, f))
	for _, c := range []struct {
		t    *Type
		want string // empty: contiguous
	}{
		{ok(NewContiguous(5, ok(NewContiguous(7, f)))), ""},
		{ok(NewVector(5, 3, 3, f)), ""},
		{ok(NewIndexed([]int64{2, 0, 3}, []int64{0, 9, 2}, f)), ""},
		{ok(NewStruct([]int64{1, 1, 2}, []int64{0, 4, 8}, []*Type{g, g, f})), ""},
		{ok(NewResized(ok(NewResized(f, 0, 99)), 0, 8)), ""},
		{ok(NewSubarray([]int64{4, 5}, []int64{4, 5}, []int64{0, 0}, OrderC, f)), ""},
		{column, "4096*32768(8)"},
		{ok(NewContiguous(4096, ok(NewResized(f, 0, 32768)))), "4096*32768(8)"},
		{ok(NewIndexed([]int64{1, 1, 1}, []int64{4, 6, 8}, f)), "3*16(8)"},
		{ok(NewIndexed([]int64{2, 1, 1, 2}, []int64{4, 8, 9, 12}, f)), "3*32(16)"},
		{ok(NewVector(10, 1, 5, ok(NewVector(5, 1, 2, ok(NewResized(f, 0, 16)))))), "10*720(5*32(8))"},
		{ok(NewHvector(10, 1, 80, ok(NewVector(5, 1, 2, f)))), "50*16(8)"},
		{ok(NewContiguous(4096, ok(NewResized(column, 0, 8)))), "4096*8(4096*32768(8))"},
		{face, "524288*8589934592(4096)"},
		{ok(NewStruct([]int64{1, 1}, []int64{0, 8}, []*Type{g, f})), "[4@0 8@8]"},
		{ok(NewHindexed([]int64{1, 2}, []int64{0, 80}, ok(NewVector(2, 1, 2, f)))), "[2*16(8)@0 2*24(2*16(8))@80]"},
		{ok(NewDarray(6, 1, ArrayDistribution{[]int64{1 << 30, 1 << 30}, []Distribution{DistributeCyclic, DistributeBlock}, []int64{5, DefaultArg},
			[]int64{3, 2}, OrderC}, Byte)), "[71582788*16106127360(5*1073741824(536870912))@0 4*1073741824(536870912)@1152921500311879680]"},
	} {
		got := ""
		if !c.t.Contiguous() {
			got = c.t.layout.node.String()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.t.Name, got, c.want)
		}
	}
}

// TestHuge: types of more elements than memory has are made and looked up at
// once.
func TestHuge(t *testing.T) {
	n := int64(1 << 58)
	v := must(t)(NewHvector(n, 1, 16, tFloat64))
	if v.Size != 8*n || v.Extent() != 16*(n-1)+8 {
		t.Errorf("size %d, extent %d", v.Size, v.Extent())
	}
	if at, length := v.Block(8*(n-1)+3, 5); at != 16*(n-1)+3 || length != 5 {
		t.Errorf("%d bytes at %d", length, at)
	}
	if lo, hi := v.Span(4, 8*n-8); lo != 4 || hi != 16*(n-1)+4 {
		t.Errorf("span [%d, %d)", lo, hi)
	}
	if _, _, ok := v.Reach(2); !ok {
		t.Error("two elements fit in 64 bits")
	}
	if _, _, ok := v.Reach(16); ok {
		t.Error("sixteen elements do not fit in 64 bits")
	}
	for _, err := range []error{
		errOf(NewContiguous(2, must(t)(NewHvector(1<<59, 1, 0, tFloat64)))),
		errOf(NewHvector(1<<60, 1, 0, tFloat64)),
		errOf(NewHindexed([]int64{1, 1}, []int64{math.MinInt64, 0}, tFloat64)),
		errOf(NewStruct([]int64{1}, []int64{math.MaxInt64 - 7}, []*Type{tFloat64})),
		errOf(NewStruct([]int64{1, 1}, []int64{0, math.MaxInt64 - 9}, []*Type{tFloat64, tFloat64})),
		errOf(NewResized(tFloat64, math.MinInt64, -1)),
	} {
		if !errors.Is(err, ErrOverflow) {
			t.Errorf("got %v, want an overflow", err)
		}
	}
}

func errOf(_ *Type, err error) error { return err }

// TestManyBlocks: a list of a million blocks takes a few words for each, and a
// byte in it is found without a walk.
func TestManyBlocks(t *testing.T) {
	const n = 1 << 20
	displs := make([]int64, n)
	for i := range displs {
		displs[i] = int64(3*i + i*i%2)
	}
	dt := must(t)(NewIndexedBlock(1, displs, tFloat64))
	for _, i := range []int64{0, 1, n / 2, n - 2} {
		if at, length := dt.Block(8*i+3, 100); at != 8*displs[i]+3 || length != 5 {
			t.Errorf("block %d: %d bytes at %d", i, length, at)
		}
	}
	lens := make([]int64, n)
	for i := range lens {
		lens[i] = int64(1 + i%2)
	}
	dt = must(t)(NewIndexed(lens, displs, tFloat64))
	if at, length := dt.Block(8*(3*n/4)+2, 100); at != 8*displs[n/2]+2 || length != 6 {
		t.Errorf("%d bytes at %d, want 6 at %d", length, at, 8*displs[n/2]+2)
	}
}

func TestWithName(t *testing.T) {
	named := tFloat64.WithName("meters")
	v := must(t)(NewVector(2, 1, 2, named))
	if named.Name != "meters" || named.Base() != tFloat64 || named.Kind != Float64 || v.Base() != tFloat64 || v.Unit() != 8 {
		t.Errorf("%+v, base %v, unit %d", named, v.Base(), v.Unit())
	}
	mixed := must(t)(NewStruct([]int64{1, 1}, []int64{0, 8}, []*Type{tFloat32, tFloat64}))
	if mixed.Base() != nil || mixed.Unit() != 1 {
		t.Errorf("base %v, unit %d", mixed.Base(), mixed.Unit())
	}
	// Blocks of no elements do not count.
	same := must(t)(NewStruct([]int64{0, 1}, []int64{0, 8}, []*Type{tFloat32, tFloat64}))
	if same.Base() != tFloat64 {
		t.Errorf("base %v", same.Base())
	}
}
