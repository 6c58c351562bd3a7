// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/mpi"
)

// typeMust fails the test if a constructor failed.
func typeMust(t testing.TB) func(mpi.Datatype, error) mpi.Datatype {
	return func(dt mpi.Datatype, err error) mpi.Datatype {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return dt
	}
}

// numbers returns 0, 1, 2, ...
func numbers(n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = float64(i)
	}
	return s
}

// packed gives the elements of b as float64s.
func packed(t *testing.T, b mpi.Buf) []float64 {
	t.Helper()
	raw, err := mpi.Pack(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(raw)/8)
	if rest, err := mpi.Unpack(raw, mpi.BufOf(out)); err != nil || len(rest) != 0 {
		t.Fatalf("%d bytes left, %v", len(rest), err)
	}
	return out
}

// TestConstructors: every constructor, what it makes and what it is made of.
func TestConstructors(t *testing.T) {
	f := mpi.TypeOf[float64]()
	type made struct {
		dt  mpi.Datatype
		err error
	}
	make := func(dt mpi.Datatype, err error) (m made) {
		m.dt, m.err = dt, err
		return m
	}
	grid := func(size, rank int, order mpi.Order) (mpi.Datatype, error) {
		return mpi.TypeDarray(size, rank, []int{4, 5}, []mpi.Distribution{mpi.DistributeBlock, mpi.DistributeCyclic},
			[]int{mpi.DefaultArg, 2}, []int{2, 2}, order, f)
	}
	for _, c := range []struct {
		made   made
		name   string
		ints   []int
		lb, ex int
		places []float64 // indices of the elements, from the origin on
	}{
		{make(mpi.TypeContiguous(3, f)), "contiguous", []int{3}, 0, 24, []float64{0, 1, 2}},
		{make(mpi.TypeContiguous(0, f)), "contiguous", []int{0}, 0, 0, nil},
		{make(mpi.TypeVector(3, 2, 4, f)), "vector", []int{3, 2, 4}, 0, 80, []float64{0, 1, 4, 5, 8, 9}},
		{make(mpi.TypeVector(3, 1, -2, f)), "vector", []int{3, 1, -2}, -32, 40, []float64{0, -2, -4}},
		{make(mpi.TypeHvector(2, 1, 16, f)), "hvector", []int{2, 1, 16}, 0, 24, []float64{0, 2}},
		{make(mpi.TypeIndexed([]int{2, 0, 1}, []int{3, 9, -1}, f)), "indexed", []int{2, 0, 1, 3, 9, -1}, -8, 48, []float64{3, 4, -1}},
		{make(mpi.TypeHindexed([]int{1, 2}, []int{32, 0}, f)), "hindexed", []int{1, 2, 32, 0}, 0, 40, []float64{4, 0, 1}},
		{make(mpi.TypeIndexedBlock(2, []int{4, 0}, f)), "indexed_block", []int{2, 4, 0}, 0, 48, []float64{4, 5, 0, 1}},
		{make(mpi.TypeHindexedBlock(1, []int{8, 0}, f)), "hindexed_block", []int{1, 8, 0}, 0, 16, []float64{1, 0}},
		{make(mpi.TypeStruct([]int{1, 2}, []int{8, 24}, []mpi.Datatype{f, f})), "struct", []int{1, 2, 8, 24}, 8, 32, []float64{1, 3, 4}},
		{make(mpi.TypeSubarray([]int{4, 5}, []int{2, 3}, []int{1, 2}, mpi.OrderC, f)), "subarray",
			[]int{4, 5, 2, 3, 1, 2, 0}, 0, 160, []float64{7, 8, 9, 12, 13, 14}},
		{make(mpi.TypeSubarray([]int{4, 5}, []int{2, 3}, []int{1, 2}, mpi.OrderFortran, f)), "subarray",
			[]int{4, 5, 2, 3, 1, 2, 1}, 0, 160, []float64{9, 10, 13, 14, 17, 18}},
		{make(grid(4, 2, mpi.OrderC)), "darray",
			[]int{4, 2, 4, 5, 0, 1, mpi.DefaultArg, 2, 2, 2, 0}, 0, 160, []float64{10, 11, 14, 15, 16, 19}},
		{make(grid(4, 1, mpi.OrderFortran)), "darray",
			[]int{4, 1, 4, 5, 0, 1, mpi.DefaultArg, 2, 2, 2, 1}, 0, 160, []float64{8, 9, 12, 13}},
		{make(mpi.TypeResized(f, -8, 32)), "resized", []int{-8, 32}, -8, 32, []float64{0}},
		{make(f.Dup()), "dup", nil, 0, 8, []float64{0}},
	} {
		t.Run(fmt.Sprint(c.name, c.ints), func(t *testing.T) {
			dt := typeMust(t)(c.made.dt, c.made.err)
			lb, ex := dt.Extent()
			if dt.Size() != 8*len(c.places) || lb != c.lb || ex != c.ex {
				t.Errorf("%v; want size %d, lower bound %d, extent %d", dt, 8*len(c.places), c.lb, c.ex)
			}
			got := dt.Contents()
			if got.Combiner != c.name || !slices.Equal(got.Ints, c.ints) {
				t.Errorf("made by %s%v, want %s%v", got.Combiner, got.Ints, c.name, c.ints)
			}
			for _, old := range got.Types {
				if old != f {
					t.Errorf("made of %v", old)
				}
			}
			const origin = 10
			places := packed(t, mpi.BufAt(dt, numbers(40), origin, 1))
			for i := range places {
				places[i] -= origin
			}
			if !slices.Equal(places, c.places) {
				t.Errorf("elements at %v, want %v", places, c.places)
			}
		})
	}
}

// TestBadConstructors: each bad argument is an error with its number.
func TestBadConstructors(t *testing.T) {
	f, none := mpi.TypeOf[float64](), mpi.Datatype{}
	one := []int{1}
	block := []mpi.Distribution{mpi.DistributeBlock}
	far := typeMust(t)(mpi.TypeResized(f, 0, math.MaxInt64))
	for _, c := range []struct {
		class mpi.Class
		want  string
		f     func() (mpi.Datatype, error)
	}{
		{mpi.ErrArg, "count = -1 is negative", func() (mpi.Datatype, error) { return mpi.TypeContiguous(-1, f) }},
		{mpi.ErrArg, "64 bits", func() (mpi.Datatype, error) { return mpi.TypeContiguous(math.MaxInt64, f) }},
		{mpi.ErrArg, "64 bits", func() (mpi.Datatype, error) { return mpi.TypeContiguous(3, far) }},
		{mpi.ErrArg, "block length = -2", func() (mpi.Datatype, error) { return mpi.TypeVector(1, -2, 1, f) }},
		{mpi.ErrArg, "64 bits", func() (mpi.Datatype, error) { return mpi.TypeVector(2, 1, math.MinInt64, f) }},
		{mpi.ErrArg, "64 bits", func() (mpi.Datatype, error) { return mpi.TypeHvector(3, 1, math.MinInt64, f) }},
		{mpi.ErrArg, "block lengths[1] = -1", func() (mpi.Datatype, error) { return mpi.TypeIndexed([]int{1, -1}, []int{0, 0}, f) }},
		{mpi.ErrArg, "length of displacements = 2 is not 1", func() (mpi.Datatype, error) { return mpi.TypeHindexed(one, []int{0, 0}, f) }},
		{mpi.ErrArg, "64 bits", func() (mpi.Datatype, error) { return mpi.TypeIndexed(one, []int{math.MaxInt64 / 4}, f) }},
		{mpi.ErrArg, "64 bits", func() (mpi.Datatype, error) {
			return mpi.TypeHindexedBlock(1, []int{math.MinInt64, math.MaxInt64 - 8}, f)
		}},
		{mpi.ErrArg, "block length = -1", func() (mpi.Datatype, error) { return mpi.TypeIndexedBlock(-1, one, f) }},
		{mpi.ErrArg, "length of types = 0 is not 1", func() (mpi.Datatype, error) { return mpi.TypeStruct(one, one, nil) }},
		{mpi.ErrArg, "dimensions = 0", func() (mpi.Datatype, error) { return mpi.TypeSubarray(nil, nil, nil, mpi.OrderC, f) }},
		{mpi.ErrArg, "order = 2", func() (mpi.Datatype, error) { return mpi.TypeSubarray(one, one, []int{0}, 2, f) }},
		{mpi.ErrArg, "subsizes[0] = 2", func() (mpi.Datatype, error) { return mpi.TypeSubarray(one, []int{2}, []int{0}, mpi.OrderC, f) }},
		{mpi.ErrArg, "subsizes[0] = 0", func() (mpi.Datatype, error) { return mpi.TypeSubarray(one, []int{0}, []int{0}, mpi.OrderC, f) }},
		{mpi.ErrArg, "starts[0] = 1", func() (mpi.Datatype, error) { return mpi.TypeSubarray(one, one, one, mpi.OrderC, f) }},
		{mpi.ErrArg, "64 bits", func() (mpi.Datatype, error) {
			return mpi.TypeSubarray([]int{1 << 31, 1 << 31}, []int{1, 1}, []int{0, 0}, mpi.OrderC, f)
		}},
		{mpi.ErrArg, "rank = 1", func() (mpi.Datatype, error) { return mpi.TypeDarray(1, 1, one, block, one, one, mpi.OrderC, f) }},
		{mpi.ErrArg, "product of processes = 1", func() (mpi.Datatype, error) { return mpi.TypeDarray(2, 1, one, block, one, one, mpi.OrderC, f) }},
		{mpi.ErrArg, "arguments[0] = 2 times", func() (mpi.Datatype, error) {
			return mpi.TypeDarray(2, 1, []int{5}, block, []int{2}, []int{2}, mpi.OrderC, f)
		}},
		{mpi.ErrArg, "arguments[0] = 0", func() (mpi.Datatype, error) {
			return mpi.TypeDarray(1, 0, one, block, []int{0}, one, mpi.OrderC, f)
		}},
		{mpi.ErrArg, "distributions[0] = 3", func() (mpi.Datatype, error) {
			return mpi.TypeDarray(1, 0, one, []mpi.Distribution{3}, one, one, mpi.OrderC, f)
		}},
		{mpi.ErrArg, "processes[0] = 2", func() (mpi.Datatype, error) {
			return mpi.TypeDarray(2, 0, one, []mpi.Distribution{mpi.DistributeNone}, one, []int{2}, mpi.OrderC, f)
		}},
		{mpi.ErrArg, "64 bits", func() (mpi.Datatype, error) { return mpi.TypeResized(f, math.MaxInt64, 1) }},
		{mpi.ErrType, "zero Datatype", func() (mpi.Datatype, error) { return mpi.TypeContiguous(1, none) }},
		{mpi.ErrType, "zero Datatype", func() (mpi.Datatype, error) { return none.Dup() }},
		{mpi.ErrType, "a string", func() (mpi.Datatype, error) { return mpi.TypeContiguous(1, mpi.TypeOf[string]()) }},
		{mpi.ErrType, "type 1", func() (mpi.Datatype, error) {
			return mpi.TypeStruct([]int{1, 1}, []int{0, 8}, []mpi.Datatype{f, mpi.TypeOf[*int]()})
		}},
	} {
		dt, err := c.f()
		var e *mpi.Error
		if !errors.As(err, &e) || e.Class != c.class || !strings.Contains(err.Error(), c.want) || dt != none {
			t.Errorf("got %v and error %v, want %v: %s", dt, err, c.class, c.want)
		}
	}
}

type inner struct {
	Y float64
	Z int32
}

type body struct {
	Kind     int8
	Pos, Vel [3]float64
	Inner    inner
	inner
	id   int64
	Next *body
}

type plain struct {
	B   bool
	X   float64
	A   [2]inner
	_   [3]int16
	End uint8
}

// TestTypeFields selects fields and moves them, and nothing else.
func TestTypeFields(t *testing.T) {
	dt := typeMust(t)(mpi.TypeFields[body]("Vel", "Inner.Y", "Z", "id"))
	if _, ex := dt.Extent(); dt.Size() != 24+8+4+8 || ex != int(reflect.TypeFor[body]().Size()) {
		t.Errorf("%v", dt)
	}
	src := make([]body, 3)
	for i := range src {
		f := float64(i)
		src[i] = body{1, [3]float64{f, f, f}, [3]float64{f + 1, f + 2, f + 3}, inner{f + 4, 4}, inner{f + 5, int32(i) + 6}, int64(i) + 7, &src[0]}
	}
	raw, err := mpi.Pack(nil, mpi.BufAs(dt, src, 3))
	if err != nil || len(raw) != 3*dt.Size() {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	out := make([]body, 3)
	if _, err := mpi.Unpack(raw, mpi.BufAs(dt.WithName("moving"), out, 3)); err != nil {
		t.Fatal(err)
	}
	for i, got := range out {
		want := body{Vel: src[i].Vel, Inner: inner{Y: src[i].Inner.Y}, inner: inner{Z: src[i].Z}, id: src[i].id}
		if got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	// Other types could write over the pointers.
	pair := typeMust(t)(mpi.TypeContiguous(2, dt))
	for _, other := range []mpi.Datatype{pair, mpi.TypeOf[byte](), typeMust(t)(mpi.TypeFields[plain]("X"))} {
		if err := mpi.BufAs(other, src, 1).Err(); !errors.Is(err, mpi.ErrType) {
			t.Errorf("%v in a slice with pointers: %v", other, err)
		}
	}
	all := typeMust(t)(mpi.TypeFields[plain]())
	if all.Size() != 1+8+2*12+1 {
		t.Errorf("%v", all)
	}
	some := typeMust(t)(mpi.TypeFields[plain]("A", "B"))
	in := []plain{{true, 1, [2]inner{{2, 3}, {4, 5}}, [3]int16{}, 6}, {false, 7, [2]inner{{8, 9}, {10, 11}}, [3]int16{}, 12}}
	for _, c := range []struct {
		dt   mpi.Datatype
		want []plain
	}{
		{all, in},
		{some, []plain{{true, 0, in[0].A, [3]int16{}, 0}, {false, 0, in[1].A, [3]int16{}, 0}}},
	} {
		raw, err := mpi.Pack(nil, mpi.BufAs(c.dt, in, 2))
		if err != nil {
			t.Fatal(err)
		}
		out := make([]plain, 2)
		if _, err := mpi.Unpack(raw, mpi.BufAs(c.dt, out, 2)); err != nil || !slices.Equal(out, c.want) {
			t.Errorf("got %v, want %v, error %v", out, c.want, err)
		}
	}
}

func TestBadFields(t *testing.T) {
	for _, c := range []struct {
		class mpi.Class
		want  string
		names []string
	}{
		{mpi.ErrArg, `is "Speed", but mpi_test.body has no field "Speed"`, []string{"Vel", "Speed"}},
		{mpi.ErrArg, `has no fields`, []string{"Vel.X"}},
		{mpi.ErrArg, `names[1]`, []string{"Inner", "Inner.Y"}},
		{mpi.ErrArg, `named already`, []string{"Kind", "Kind"}},
		{mpi.ErrType, `field Next of mpi_test.body cannot be sent: Next is a pointer (*mpi_test.body)`, []string{"Next"}},
		{mpi.ErrType, `field Next`, nil},
	} {
		_, err := mpi.TypeFields[body](c.names...)
		if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %v: %s", c.names, err, c.class, c.want)
		}
	}
	if _, err := mpi.TypeFields[int](); !errors.Is(err, mpi.ErrType) {
		t.Error(err)
	}
	type event struct {
		At struct{ When time.Time }
		By [2]error
	}
	for name, want := range map[string]string{
		"At": "field At of mpi_test.event cannot be sent: At.When.loc is a pointer (*time.Location)",
		"By": "field By of mpi_test.event cannot be sent: By is an interface (error)",
	} {
		if _, err := mpi.TypeFields[event](name); !errors.Is(err, mpi.ErrType) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	type list struct{ *body }
	if _, err := mpi.TypeFields[list]("Kind"); !errors.Is(err, mpi.ErrType) {
		t.Error(err)
	}
}

// TestBufBounds: elements that do not lie in the slice are refused.
func TestBufBounds(t *testing.T) {
	f := mpi.TypeOf[float64]()
	s := numbers(10)
	up := typeMust(t)(mpi.TypeVector(3, 1, 3, f))    // 0, 3, 6
	down := typeMust(t)(mpi.TypeVector(3, 1, -3, f)) // 0, -3, -6
	far := typeMust(t)(mpi.TypeResized(f, 0, math.MaxInt64/2))
	still := typeMust(t)(mpi.TypeResized(f, 0, 0))
	for _, c := range []struct {
		dt            mpi.Datatype
		origin, count int
		class         mpi.Class // 0: fine
	}{
		{up, 0, 1, 0}, {up, 3, 1, 0}, {up, 4, 1, mpi.ErrCount}, {up, 0, 2, mpi.ErrCount}, {up, 9, 0, 0},
		{down, 0, 1, mpi.ErrCount}, {down, 5, 1, mpi.ErrCount}, {down, 6, 1, 0}, {down, 9, 1, 0}, {down, 10, 1, mpi.ErrArg},
		{f, 0, 10, 0}, {f, 0, 11, mpi.ErrCount}, {f, 1, 10, mpi.ErrCount}, {f, 0, -1, mpi.ErrCount}, {f, -1, 1, mpi.ErrArg},
		{f, 0, math.MaxInt64, mpi.ErrCount}, {f, 0, math.MaxInt64 / 8, mpi.ErrCount},
		{far, 0, 1, 0}, {far, 0, 2, mpi.ErrCount}, {far, 0, 5, mpi.ErrCount}, {far, 9, 1, 0},
		{still, 0, 5, 0}, {still, 0, 1 << 45, mpi.ErrCount}, {still, 0, math.MaxInt64, mpi.ErrCount},
		{mpi.Datatype{}, 0, 1, mpi.ErrType},
	} {
		b := mpi.BufAt(c.dt, s, c.origin, c.count)
		if err := b.Err(); (err == nil) != (c.class == 0) || err != nil && !errors.Is(err, c.class) {
			t.Errorf("%v from %d, %d elements: %v, want %v", c.dt, c.origin, c.count, err, c.class)
		}
		if raw, err := mpi.Pack([]byte{1}, b); (err == nil) != (c.class == 0) || err != nil && len(raw) != 1 {
			t.Errorf("packed %d bytes, %v", len(raw), err)
		}
	}
	if err := mpi.BufAs(f, []struct{}{{}}, 1).Err(); !errors.Is(err, mpi.ErrCount) {
		t.Errorf("elements in no memory: %v", err)
	}
	if n := testing.AllocsPerRun(100, func() { mpi.BufAs(up, s, 1) }); n != 0 {
		t.Errorf("%v allocations for a Buf", n)
	}
}

// TestPackAppends: Pack appends, Unpack returns the rest and refuses too few
// bytes without a change.
func TestPackAppends(t *testing.T) {
	col := typeMust(t)(mpi.TypeVector(3, 1, 2, mpi.TypeOf[uint8]()))
	s := []byte{1, 2, 3, 4, 5, 6}
	raw, err := mpi.Pack([]byte("ab"), mpi.BufAs(col, s, 1))
	if err != nil || string(raw) != "ab\x01\x03\x05" {
		t.Fatalf("%q, %v", raw, err)
	}
	if n := col.PackSize(1); n != 3 {
		t.Errorf("pack size %d", n)
	}
	for _, n := range []int{-1, math.MaxInt64/3 + 1, math.MaxInt64} {
		if col.PackSize(n) != mpi.Undefined || col.ExternalSize(n) != mpi.Undefined {
			t.Errorf("pack size of %d elements: %d", n, col.PackSize(n))
		}
	}
	out := make([]byte, 6)
	rest, err := mpi.Unpack(raw[2:], mpi.BufAs(col, out, 1))
	if err != nil || len(rest) != 0 || !bytes.Equal(out, []byte{1, 0, 3, 0, 5, 0}) {
		t.Errorf("%v, rest %v, %v", out, rest, err)
	}
	if rest, err = mpi.Unpack([]byte{9, 9, 9, 8}, mpi.BufAs(col, out, 1)); err != nil || len(rest) != 1 || rest[0] != 8 {
		t.Errorf("rest %v, %v", rest, err)
	}
	rest, err = mpi.Unpack([]byte{7, 7}, mpi.BufAs(col, out, 1))
	var e *mpi.Error
	if !errors.As(err, &e) || e.Class != mpi.ErrTruncate || e.Got != 2 || e.Want != 3 || len(rest) != 2 || out[0] != 9 {
		t.Errorf("%v, rest %v, %v", err, rest, out)
	}
}

// TestExternal: the bytes of external32 are the same on every machine.
func TestExternal(t *testing.T) {
	type record struct {
		A int16
		B float64
		C complex64
		D bool
	}
	in := []record{{0x0102, 1, complex(2, -2), true}}
	want := []byte{1, 2, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0xc0, 0, 0, 0, 1}
	for _, dt := range []mpi.Datatype{mpi.TypeOf[record](), typeMust(t)(mpi.TypeFields[record]())} {
		got, err := mpi.PackExternal([]byte{0xff}, mpi.BufAs(dt, in, 1))
		if err != nil || !bytes.Equal(got, append([]byte{0xff}, want...)) {
			t.Errorf("%v: % x, want % x, %v", dt, got, want, err)
		}
		if dt.ExternalSize(1) != len(want) {
			t.Errorf("external size %d, want %d", dt.ExternalSize(1), len(want))
		}
		out := make([]record, 1)
		rest, err := mpi.UnpackExternal(append(want, 5), mpi.BufAs(dt, out, 1))
		if err != nil || !bytes.Equal(rest, []byte{5}) || out[0] != in[0] {
			t.Errorf("%v: %v, rest %v, %v", dt, out, rest, err)
		}
		if _, err := mpi.UnpackExternal(want[:18], mpi.BufAs(dt, out, 1)); !errors.Is(err, mpi.ErrTruncate) {
			t.Error(err)
		}
	}
}

// TestElements counts elements and basic elements of received bytes.
func TestElements(t *testing.T) {
	f, i := mpi.TypeOf[float64](), mpi.TypeOf[int32]()
	pair := typeMust(t)(mpi.TypeStruct([]int{1, 2}, []int{0, 8}, []mpi.Datatype{i, f}))
	pairs := typeMust(t)(mpi.TypeContiguous(2, pair))
	for _, c := range []struct {
		dt              mpi.Datatype
		bytes           int64
		count, elements int
	}{
		{f, 16, 2, 2}, {f, 12, mpi.Undefined, mpi.Undefined}, {f, 0, 0, 0},
		{pair, 20, 1, 3}, {pair, 24, mpi.Undefined, 4}, {pair, 32, mpi.Undefined, 5}, {pair, 33, mpi.Undefined, mpi.Undefined},
		{pair, 2, mpi.Undefined, mpi.Undefined}, {pairs, 40, 1, 6}, {pairs, 64, mpi.Undefined, 10}, {pairs, 60, mpi.Undefined, 9},
	} {
		st := mpi.Status{Bytes: c.bytes}
		if n, m := c.dt.Count(st), c.dt.Elements(st); n != c.count || m != c.elements {
			t.Errorf("%d bytes of %v: %d, %d, want %d, %d", c.bytes, c.dt, n, m, c.count, c.elements)
		}
	}
}

func TestDatatypeNames(t *testing.T) {
	f := mpi.TypeOf[float64]()
	if f.Name() != "float64" || f.Contents().Combiner != "named" {
		t.Errorf("%v", f)
	}
	col := typeMust(t)(mpi.TypeVector(4, 1, 4, f))
	if s := col.WithName("column"); s.Name() != "column" || s.Contents().Combiner != "vector" || col.Name() != "vector of float64" {
		t.Errorf("%v, %v", s, col)
	}
	if s := f.WithName("meters"); s.Name() != "meters" || s.Size() != 8 || f.Name() != "float64" || s.Contents().Combiner != "named" {
		t.Errorf("%v", s)
	}
	if s := fmt.Sprint(col); s != "vector of float64 (size 32, lower bound 0, extent 104)" {
		t.Error(s)
	}
	if lb, ex := typeMust(t)(mpi.TypeResized(col, -8, 8)).TrueExtent(); lb != 0 || ex != 104 {
		t.Errorf("true extent %d, %d", lb, ex)
	}
	if err := mpi.TypeOf[[]int]().Err(); !errors.Is(err, mpi.ErrType) {
		t.Error(err)
	}
}
