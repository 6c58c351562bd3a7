// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

type point struct {
	X, Y float64
	Name string
	Tags []string
}

// tree has itself, times encode themselves.
type tree struct {
	Left, Right *tree
	When        time.Time
	Wait        time.Duration
}

type halves []float32

// over sends v from one process to another, again and again.
func over[T any](t *testing.T, from, to *codecs, v T) {
	t.Helper()
	for i := range 5 {
		b, err := from.encode(&v)
		if err != nil {
			t.Fatal(err)
		}
		var got T
		if err := to.decode(b, &got); err != nil || !reflect.DeepEqual(got, v) {
			t.Fatalf("turn %d: %v, %+v, want %+v", i, err, got, v)
		}
	}
}

func TestCodecs(t *testing.T) {
	gob.Register(point{})
	gob.Register([]any{})
	from, to := new(codecs), new(codecs)
	over(t, from, to, point{1, 2, "a", []string{"b", "c"}})
	over(t, from, to, map[string][]point{"x": {{Name: "y"}}})
	over(t, from, to, tree{Left: &tree{Wait: 5}, Right: &tree{When: time.Unix(7, 8).UTC()}})
	over(t, from, to, "text")
	over(t, from, to, 42)
	over(t, from, to, [2]bool{true, false})
	over(t, from, to, []bool{true, false})
	over(t, from, to, []int{1, -2, math.MaxInt})
	over(t, from, to, []byte("bytes"))
	over(t, from, to, []time.Duration{1, 2})
	over(t, from, to, []complex128{1i})
	over(t, from, to, halves{1.5})
	over(t, from, to, []float64{math.Inf(1), 2})
	over(t, from, to, []float64(nil))
	over(t, from, to, [][]float64{{1}, {2, 3}})
	over(t, from, to, []any{point{Name: "behind"}, 3, "x"})
	over(t, from, to, any(point{Name: "z"}))
	over(t, from, to, map[string]any{"a": 1, "b": []any{"c"}, "p": point{Tags: []string{"t"}}})
	// Types come later, one after the other.
	gob.Register(plan{})
	gob.Register(tree{})
	gob.Register(map[string]int{})
	for range 3 {
		over(t, from, to, []any{nil, point{Name: "p"}})
		over(t, from, to, []any{plan{Name: "q"}, 3, map[string]int{"a": 1}})
		over(t, from, to, []any{map[string]int{"a": 1}, tree{Wait: 1}})
		over(t, from, to, []any{strings.Repeat("long", 1000), tree{Wait: 1}, 2.5})
	}
	// Others decode it as something of their own.
	var p struct{ Name string }
	b, err := from.encode(&point{Name: "n", X: 3})
	for range 3 {
		if p.Name = ""; err != nil || to.decode(b, &p) != nil || p.Name != "n" {
			t.Fatal(err, p)
		}
	}
	var ptr **[]int16
	if b, err = from.encode(&[]int{5, -6}); err != nil || to.decode(b, &ptr) != nil || !reflect.DeepEqual(**ptr, []int16{5, -6}) {
		t.Fatal(err, ptr)
	}
	for _, v := range []any{new([]int16), new([]float64), new([]uint64), new(string), new([1]int), new(any), new(point)} {
		if b, err = from.encode(&[]int{1 << 20}); err != nil || to.decode(b, v) == nil {
			t.Errorf("a slice of int is received as %T", v)
		}
	}
}

// A process that has seen many types keeps a few of them.
func TestCodecsAreBounded(t *testing.T) {
	cs := new(codecs)
	for n := range 3 * maxTypes {
		v := reflect.New(reflect.StructOf([]reflect.StructField{{Name: fmt.Sprint("F", n), Type: reflect.TypeFor[int]()}}))
		v.Elem().Field(0).SetInt(7)
		b, err := cs.encode(v.Interface())
		if err != nil {
			t.Fatal(err)
		}
		if err := cs.decode(b, v.Interface()); err != nil {
			t.Fatal(err)
		}
	}
	if len(cs.encoders) > maxTypes || len(cs.decoders) > maxTypes {
		t.Errorf("%d and %d types are kept", len(cs.encoders), len(cs.decoders))
	}
	big := point{Name: strings.Repeat("x", maxKept)}
	b, err := cs.encode(&big)
	if err != nil || cs.decode(b, new(point)) != nil {
		t.Fatal(err)
	}
	for _, es := range cs.encoders {
		for _, e := range es.free {
			if cap(e.out) > 0 {
				t.Errorf("an encoder keeps %d bytes", cap(e.out))
			}
		}
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { over(t, cs, cs, point{Name: "n"}) })
	}
	all.Wait()
	for key, ds := range cs.decoders {
		if len(ds) > maxCoders {
			t.Errorf("%d decoders of %v are kept", len(ds), key.into)
		}
	}
}

// What others send decides about no decoder but the one that reads it.
func TestCodecsRefuse(t *testing.T) {
	cs := new(codecs)
	good, err := cs.encode(&point{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	n, k := binary.Uvarint(good[1:])
	value := 1 + k + int(n)
	definitions, message := good[1+k:value], good[value:]
	primed := func(primer []byte, values ...[]byte) []byte { return primed(primer, bytes.Join(values, nil)) }
	for _, c := range []struct {
		what string
		b    []byte
	}{
		{"nothing", nil},
		{"no form", []byte{9}},
		{"definitions that are cut", good[:value-3]},
		{"no length", []byte{formPrimed}},
		{"a long length", append([]byte{formPrimed}, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"...)},
		{"no value", primed(definitions)},
		{"two values", primed(definitions, message, message)},
		{"a sample that is cut", primed(append(append([]byte{}, definitions...), message[:len(message)-2]...), message)},
		{"a sample of too many", primed(join(definitions, message[:1], 0xf8, many), message)},
		{"definitions twice", primed(definitions, definitions, message)},
		{"half a value", primed(definitions, message[:len(message)-2])},
		{"a map of many", primed([]byte(stream([]byte(defMap))), stream(join(id65, 0, many, 1, "k", 2)))},
		{"half a number", []byte{formNumbers, byte(reflect.Int64), 0, 0, 0, 0, 0, 0, 1, 2}},
		{"short numbers", []byte{formNumbers, byte(reflect.Int64)}},
		{"no kind of numbers", []byte{formNumbers, 200, 0, 0, 0, 0, 0, 0, 1}},
	} {
		for range 2 {
			var err error
			var p point
			var m map[string]int
			n := allocated(func() { err = cs.decode(c.b, &p) })
			n += allocated(func() {
				if cs.decode(c.b, &m) == nil || cs.decode(c.b, new([]int)) == nil {
					t.Errorf("%s: no error", c.what)
				}
			})
			if err == nil || n > 1<<20 {
				t.Errorf("%s: %v, %d bytes taken", c.what, err, n)
			}
		}
		var p point
		if err := cs.decode(good, &p); err != nil || p.Name != "n" {
			t.Fatalf("after %s: %v", c.what, err)
		}
	}
}

// FuzzPrimed: decoders that have read values before accept the same, and give
// the same, as new ones, and take no more memory.
func FuzzPrimed(f *testing.F) {
	gob.Register(point{})
	first := new(codecs)
	for _, v := range []any{
		&plan{Name: "a", Parts: map[string][]int{"x": {1, 2}}, Next: &plan{Name: "b"}}, &plan{}, &point{Tags: []string{"t"}},
		&[]int{1, 2}, &[]float32{1}, &[]any{1}, &[]any{point{Name: "p"}, 1}, &map[string]any{"k": []any{1}},
	} {
		b, err := first.encode(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	cs := new(codecs) // has read everything that came before
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range []any{plan{}, point{}, []int{}, []float64{}, map[string]int{}, []any{}, map[string]any{}} {
			fresh, kept := reflect.New(reflect.TypeOf(v)), reflect.New(reflect.TypeOf(v))
			want := new(codecs).decode(b, fresh.Interface())
			for range 2 {
				kept.Elem().SetZero()
				var err error
				n := allocated(func() { err = cs.decode(b, kept.Interface()) })
				if (err == nil) != (want == nil) {
					t.Fatalf("as %T: %v, a new decoder says %v", v, err, want)
				}
				if err == nil && fmt.Sprintf("%#v", kept.Elem()) != fmt.Sprintf("%#v", fresh.Elem()) && !strings.Contains(fmt.Sprintf("%#v", fresh.Elem()), "0x") {
					t.Fatalf("as %T: %#v, a new decoder gives %#v", v, kept.Elem(), fresh.Elem())
				}
				if limit := uint64(8<<20 + 4096*len(b)); n > limit {
					t.Fatalf("%d bytes take %d bytes of memory", len(b), n)
				}
			}
		}
	})
}

// encodeStream encodes by an encoder of its own.
func encodeStream(v any) ([]byte, error) {
	var w bytes.Buffer
	w.WriteByte(formStream)
	if err := gob.NewEncoder(&w).Encode(v); err != nil {
		return nil, err
	}
	return w.Bytes(), nil
}

// BenchmarkCodecs encodes and decodes, with what was learned before and, as
// streams, without.
func BenchmarkCodecs(b *testing.B) {
	gob.Register(point{})
	numbers, object := make([]float64, 1000), any(point{1, 2, "name", []string{"a"}})
	for name, v := range map[string]any{
		"struct": &point{1, 2, "name", []string{"a"}}, "map": &map[string]int{"a": 1, "b": 2, "c": 3},
		"numbers": &numbers, "interface": &[]any{1, "two", 3.0}, "object": &object,
	} {
		to := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		b.Run(name, func(b *testing.B) {
			cs := new(codecs)
			b.ReportAllocs()
			for b.Loop() {
				e, err := cs.encode(v)
				if err != nil {
					b.Fatal(err)
				}
				if err := cs.decode(e, to); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/stream", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e, err := encodeStream(v)
				if err != nil {
					b.Fatal(err)
				}
				if err := decode(e[1:], to); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
