// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

type (
	label    string
	labels   map[string]int
	loose    map[string]any
	anything any
)

// plainValues are some that have no struct in them.
func plainValues() []any {
	return []any{
		true, 7, int8(-3), uint16(9), float32(2.5), 1.5, complex64(1i), complex(1, 2), "text", label("l"), time.Second,
		[]bool{true, false}, []string{"a", "", "c"}, [][]string{{"a"}, nil, {"b", "c"}}, [][]float64{{1}, {2, 3}}, [][]byte{[]byte("x")},
		map[string]int{"a": 1, "b": -2}, map[int]string{1: "x", math.MinInt: "y"}, map[string][]float64{"x": {1, math.Inf(1)}},
		map[int]float32{3: 1}, map[string]bool{"t": true}, labels{"named": 3}, map[string]int8{"a": -1}, map[string]uint64{"m": math.MaxUint64},
		[]any{1, "two", 3.0, nil, []any{true, []string{"deep"}}, []int{4}, []byte("b"), map[string]int{"in": 1}},
		map[string]any{"n": 1, "list": []any{2i, uint8(3)}, "map": map[string]any{"k": nil}},
		map[int]any{1: "x"}, loose{"a": 1}, []map[string]any{{"row": 1}, {"row": "two"}},
		map[string]int{}, []any{}, map[string]any{},
	}
}

// pointerTo is a pointer to a new v.
func pointerTo(v any) any {
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	return p.Interface()
}

func TestPlain(t *testing.T) {
	cs := new(codecs)
	values := plainValues()
	for _, v := range values {
		b, err := cs.encode(pointerTo(v))
		if err != nil || b[0] != formPlain && b[0] != formNumbers {
			t.Fatalf("%#v: form %d, %v", v, b[0], err)
		}
		if p := reflect.ValueOf(v); p.Type().PkgPath() == "" && (p.Kind() != reflect.Slice || p.Len() > 0) {
			// Others have to be registered, or arrive as nil.
			over(t, cs, cs, v)
		}
	}
	over(t, cs, cs, anything([]any{values[0]}))
	over(t, cs, cs, any(nil))
	if s := cs.plain(); len(s.byCode) != len(s.byType)+1 || len(s.byCode) > math.MaxUint8 {
		t.Errorf("%d shapes of %d types", len(s.byCode), len(s.byType))
	}
	// What contains itself has no end.
	round := []any{nil}
	round[0] = round
	if _, err := cs.encode(&round); err == nil {
		t.Error("a slice that contains itself was encoded")
	}
}

// A plain value is received as the types that gob would receive it as, with the
// same result, but for types behind interfaces, which need not be registered.
func TestPlainConverts(t *testing.T) {
	gob.Register([]any{})
	gob.Register(map[string]any{})
	gob.Register(map[string]int{})
	gob.Register(time.Second)
	cs := new(codecs)
	values := plainValues()
	into := append(plainValues(), int64(0), map[label]int16{}, map[string]*int{}, []*string{}, map[int32]any{}, []label{}, []time.Duration{},
		[]fmt.Stringer{}, [2]string{}, point{}, map[string]map[string]any{}, new(*map[string]int64), map[string]wild{}, map[string]labels{}, [][]float32{})
	for _, v := range values {
		b, err := cs.encode(pointerTo(v))
		if err != nil || b[0] != formPlain {
			continue // numbers convert by rules of their own
		}
		stream, err := encodeStream(pointerTo(v))
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range into {
			got, want := reflect.New(reflect.TypeOf(to)), reflect.New(reflect.TypeOf(to))
			err, wantErr := cs.decode(b, got.Interface()), decode(stream[1:], want.Interface())
			switch {
			case (err == nil) != (wantErr == nil):
				t.Errorf("%#v as %T: %v, gob says %v", v, to, err, wantErr)
			case err == nil && !reflect.DeepEqual(got.Interface(), want.Interface()) && reflect.ValueOf(v).Len() > 0:
				t.Errorf("%#v as %T: %#v, gob gives %#v", v, to, got.Elem(), want.Elem())
			}
		}
	}
}

// A few values in a map or behind interfaces cost an allocation for each string
// and box, and some for the message and the whole.
func TestPlainAllocates(t *testing.T) {
	cs := new(codecs)
	m, list := map[string]int{"a": 1, "b": 2, "c": 3}, []any{1, "two", 3.0}
	for _, c := range []struct {
		v, to any
		most  float64
	}{{&m, new(map[string]int), 6}, {&list, new([]any), 7}} {
		n := testing.AllocsPerRun(100, func() {
			b, err := cs.encode(c.v)
			if err != nil || cs.decode(b, c.to) != nil {
				t.Fatal(err)
			}
		})
		if n > c.most {
			t.Errorf("%T: %v allocations, at most %v expected", c.to, n, c.most)
		}
	}
}

func TestPlainRefuses(t *testing.T) {
	cs := new(codecs)
	code := func(v any) byte { return cs.plain().byType[reflect.TypeOf(v)].number() }
	const many = "\xff\xff\xff\xff\x7f"
	deep := bytes.Repeat([]byte{code([]any{}), 1}, maxDepth+2)
	for _, c := range []struct {
		what string
		b    []byte
	}{
		{"nothing", nil},
		{"no shape", []byte{0}},
		{"an unknown shape", []byte{255, 1}},
		{"no value", []byte{code(map[string]int{})}},
		{"a map of many", join(code(map[string]int{}), many, 1, "k", 2)},
		{"half a map", join(code(map[string]int{}), 2, 1, "k", 2)},
		{"more than a map", join(code(map[string]int{}), 1, 1, "k", 2, 0)},
		{"a long string", join(code(""), many, "k")},
		{"half a number", join(code(1.5), "abc")},
		{"half of the numbers", join(code(map[string][]float64{}), 1, 1, "k", 2, "12345678")},
		{"many numbers", join(code(map[string][]float64{}), 1, 1, "k", many)},
		{"too long an integer", join(code(1), strings.Repeat("\xff", 11))},
		{"an integer that does not fit", join(code(int8(1)), 0x80, 0x02)},
		{"no bool", []byte{code(true), 2}},
		{"an interface in an interface", []byte{anyCode, anyCode, 0}},
		{"an unknown type behind an interface", []byte{anyCode, 255, 0}},
		{"nothing behind an interface", []byte{anyCode}},
		{"too deep", append([]byte{anyCode}, deep...)},
	} {
		for _, to := range []any{new(any), new(map[string]int), new(int8), new(string), new(map[string][]float64), new(float64), new(bool), new(int)} {
			var err error
			n := allocated(func() { err = cs.decode(append([]byte{formPlain}, c.b...), to) })
			if err == nil || n > uint64(1<<20+100*len(c.b)) {
				t.Errorf("%s as %T: %v, %d bytes taken", c.what, to, err, n)
			}
		}
	}
}

// FuzzPlain: what is accepted is the same after another way through the codec.
func FuzzPlain(f *testing.F) {
	cs := new(codecs)
	for _, v := range plainValues() {
		b, err := cs.encode(pointerTo(v))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[1:])
		if b, err = cs.encode(&v); err == nil && b[0] == formPlain {
			f.Add(b[1:])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append([]byte{formPlain}, b...)
		for _, v := range []any{new(any), new([]any), new(map[string]any), new(map[string]int), new(map[label]float32), new([]string), new(map[int][]float64)} {
			var err error
			n := allocated(func() { err = cs.decode(b, v) })
			if limit := uint64(1<<20 + 1000*len(b)); n > limit {
				t.Fatalf("%d bytes take %d bytes of memory", len(b), n)
			}
			if err != nil {
				continue
			}
			again := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			c, err := cs.encode(v)
			if err != nil {
				t.Fatal(err)
			}
			if err := cs.decode(c, again); err != nil || !strings.Contains(fmt.Sprint(reflect.ValueOf(v).Elem()), "NaN") && !reflect.DeepEqual(v, again) {
				t.Fatalf("%#v becomes %#v, %v", v, again, err)
			}
		}
	})
}
