// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type kind uint8

type inner1 struct {
	K kind
	M map[string]*inner1
}

// leaf and node are behind an interface and first seen deep in a value: their
// definitions come in the middle of it.
type leaf struct {
	S  string
	At time.Time
}
type other struct {
	C complex64
	A [3]int16
	M map[kind][]any
}
type node struct {
	Name string
	L, R any
	Sub  map[string]any
}
type forest []forest

type Base struct{ ID int64 }

type everything struct {
	Base
	*Extra
	B       bool
	F       float64
	F32     []float32
	C       complex128
	Str     string
	Raw     []byte
	Kinds   []kind
	Arr     [2][3]uint16
	Maps    map[string]map[int][]string
	Structs map[[2]int]inner1
	Slices  []map[string]bool
	Any     any
	Anys    []any
	At      time.Time
	Big     *big.Int
	PP      **int
	Next    *everything
	Trees   forest
	hidden  int
}
type Extra struct{ Note string }

// other names for some fields of everything and node: the rest is ignored.
type some struct {
	Maps map[string]map[int][]string
	Next *some
	F    float64
	Str  string
}

func register() {
	for _, v := range []any{leaf{}, other{}, node{}, &inner1{}, []any{}, map[string]any{}, forest{}, [2]any{}, []leaf{}, time.Time{}, &big.Int{}, [2]other{}} {
		gob.Register(v)
	}
}

var (
	drawString = rapid.StringN(0, 6, -1)
	drawInt    = rapid.Int()
	drawTime   = rapid.Custom(func(t *rapid.T) time.Time { return time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "s"), 0).UTC() })
	drawBig    = rapid.Custom(func(t *rapid.T) *big.Int {
		b := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "big")
		b[0] |= 1
		return new(big.Int).SetBytes(b)
	})
)

func few[T any](t *rapid.T, draw func() T) []T {
	n := rapid.IntRange(0, 3).Draw(t, "n")
	if n == 0 {
		return nil
	}
	s := make([]T, n)
	for i := range s {
		s[i] = draw()
	}
	return s
}

func anyMap(t *rapid.T, depth int) map[string]any {
	m := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "n") {
		m[drawString.Draw(t, "key")] = drawAny(t, depth)
	}
	return m
}

// drawAny returns a value that gob returns equal (no empty slices in structs).
func drawAny(t *rapid.T, depth int) any {
	choice := rapid.IntRange(0, 14).Draw(t, "choice")
	if depth == 0 {
		choice %= 6
	}
	down := func() any { return drawAny(t, depth-1) }
	switch choice {
	case 0:
		return nil
	case 1:
		return drawInt.Draw(t, "int")
	case 2:
		return drawString.Draw(t, "string")
	case 3:
		return leaf{drawString.Draw(t, "s"), drawTime.Draw(t, "at")}
	case 4:
		return complex(rapid.Float64().Draw(t, "re"), 1)
	case 5:
		return drawBig.Draw(t, "big")
	case 6:
		return node{Name: drawString.Draw(t, "name"), L: down(), R: down()}
	case 7:
		return node{L: down(), Sub: anyMap(t, depth-1)}
	case 8:
		return few(t, down)
	case 9:
		return anyMap(t, depth-1)
	case 10:
		return [2]any{down(), down()}
	case 11:
		return []leaf{{S: "x"}, {}}
	case 12:
		return other{C: 2i, M: map[kind][]any{3: few(t, down)}}
	case 13:
		return &inner1{7, map[string]*inner1{"a": {}, "b": {1, map[string]*inner1{}}}}
	}
	return [2]other{{}, {A: [3]int16{1, -2}, M: map[kind][]any{1: {down()}}}}
}

func drawEverything(t *rapid.T, depth int) *everything {
	n := drawInt.Draw(t, "int") | 1 // a pointer to zero comes back nil
	p := &n
	e := &everything{
		Base: Base{rapid.Int64().Draw(t, "id")}, B: rapid.Bool().Draw(t, "b"), F: rapid.Float64().Draw(t, "f"), C: complex(1, float64(n)),
		F32: few(t, func() float32 { return rapid.Float32().Draw(t, "f32") }), Str: drawString.Draw(t, "str"),
		Raw: few(t, func() byte { return 'x' }), Kinds: few(t, func() kind { return 9 }), Arr: [2][3]uint16{{1}, {0, 2}},
		Any: drawAny(t, 3), Anys: few(t, func() any { return drawAny(t, 2) }), At: drawTime.Draw(t, "at"), Big: drawBig.Draw(t, "big"), PP: &p,
		Slices: few(t, func() map[string]bool { return map[string]bool{drawString.Draw(t, "k"): true} }),
	}
	if rapid.Bool().Draw(t, "more") {
		e.Extra = &Extra{"note"}
		e.Maps = map[string]map[int][]string{"": {}, "a": {1: {"x", ""}, n: nil}}
		e.Structs = map[[2]int]inner1{{1, 2}: {K: 1}, {}: {M: map[string]*inner1{"i": {}}}}
		e.Trees = forest{nil, {nil, {nil}}}
	}
	if depth > 0 {
		e.Next = drawEverything(t, depth-1)
	}
	return e
}

// What gob encodes and decodes passes the walk too, and is the same.
func TestWalkAccepts(t *testing.T) {
	register()
	rapid.Check(t, func(t *rapid.T) {
		e := drawEverything(t, rapid.IntRange(0, 2).Draw(t, "depth"))
		agree[everything](t, encoded(e), e)
		agree[some](t, encoded(e), nil)
		for range 3 {
			v := drawAny(t, 4)
			agree[any](t, encoded(&v), &v)
			if v != nil {
				agree[node](t, encoded(v), nil)
			}
		}
	})
}

// agree decodes b into a T with and without the walk. Gob itself cannot read
// some of what it wrote where a T lacks fields; what it can is equal to want.
func agree[T any](t *rapid.T, b []byte, want *T) {
	t.Helper()
	var got, plain T
	r := bytes.NewReader(b)
	gobErr := gob.NewDecoder(r).Decode(&plain)
	if gobErr == nil && r.Len() > 0 {
		gobErr = errors.New("bytes left") // refused by decode
	}
	err := decode(b, &got)
	if (err == nil) != (gobErr == nil) || err == nil && !reflect.DeepEqual(got, plain) {
		t.Fatalf("%x:\n%v %+v\ngob: %v %+v", b, err, got, gobErr, plain)
	}
	if want != nil && (err != nil || !reflect.DeepEqual(&got, want)) {
		t.Fatalf("%v:\n%+v\nis not\n%+v", err, got, *want)
	}
}

func TestWalkAcceptsKinds(t *testing.T) {
	register()
	rt := func(v any) {
		t.Helper()
		in, got, plain := reflect.New(reflect.TypeOf(v)), reflect.New(reflect.TypeOf(v)), reflect.New(reflect.TypeOf(v))
		in.Elem().Set(reflect.ValueOf(v))
		b := encoded(in.Interface())
		if err := gob.NewDecoder(bytes.NewReader(b)).DecodeValue(plain); err != nil {
			t.Fatalf("%T: gob: %v", v, err)
		}
		if err := decode(b, got.Interface()); err != nil || !reflect.DeepEqual(got.Interface(), plain.Interface()) {
			t.Errorf("%T: %v, got %v", v, err, got.Elem())
		}
	}
	for _, v := range []any{true, 1, uint8(200), -1.5, 2i, "", "s", []byte{}, []byte("b"), []int{}, map[string]int{}, map[int]any{},
		[0]int{}, [4]byte{1}, []struct{ A int }{{}, {1}}, map[leaf]leaf{{}: {}}, time.Unix(5, 0).UTC(), *big.NewInt(77), []*big.Int{big.NewInt(1)},
		plan{}, []any{nil, 1, nil, []any{nil, node{L: leaf{}}}}, map[string]any{"n": nil}, [2]any{}, []map[string][]map[int]string{{"": {{}, {1: ""}}}, {}}, forest{{}, {{}}}} {
		rt(v)
	}
	var none *plan
	if err := decode(encoded(&none), new(*plan)); err != nil {
		t.Error(err) // a message without a byte of value
	}
}

// stream is a message for each list of bytes.
func stream(messages ...[]byte) []byte {
	var s []byte
	for _, m := range messages {
		s = append(appendUint(s, len(m)), m...)
	}
	return s
}

func join(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

const (
	many = "\xfb\x3f\xff\xff\xff\xff" // 2^38-1
	id65 = "\xff\x82"
	id66 = "\xff\x84"
	// The definitions of type 65: map[string]int, []int, [3]int, []any, a
	// struct of one field X of type 66, a slice of itself; then type 66.
	defMap    = "\xff\x81\x04\x01\x02\x01\x00\x01\x0c\x01\x04\x00\x00"
	defSlice  = "\xff\x81\x02\x01\x02\x01\x00\x01\x04\x00\x00"
	defArray  = "\xff\x81\x01\x01\x02\x01\x00\x01\x04\x01\x06\x00\x00"
	defAnys   = "\xff\x81\x02\x01\x02\x01\x00\x01\x10\x00\x00"
	defStruct = "\xff\x81\x03\x01\x02\x01\x00\x01\x01\x01\x01X\x01\xff\x84\x00\x00\x00"
	defSelf   = "\xff\x81\x02\x01\x02\x01\x00\x01\xff\x82\x00\x00"
	defMap66  = "\xff\x83\x04\x01\x02\x01\x00\x01\x0c\x01\x04\x00\x00"
)

func TestWalkRefuses(t *testing.T) {
	register()
	gob.Register(map[string]int{})
	deep := func(n int) []byte {
		return stream([]byte(defSelf), join(id65, 0, strings.Repeat("\x01", n), 0))
	}
	for _, c := range []struct {
		name, want string
		into       any
		b          []byte
	}{
		{"a map", "a map of", new(map[string]int), stream([]byte(defMap), join(id65, 0, many, 1, "k", 2))},
		{"a map, one too many", "a map of 2", new(map[string]int), stream([]byte(defMap), join(id65, 0, 2, 1, "k", 2))},
		{"a map, entries without bytes", "before a value", new(map[struct{ X int }]struct{ X int }),
			stream([]byte("\xff\x81\x04\x01\x02\x01\x00\x01\xff\x84\x01\xff\x84\x00\x00"),
				[]byte("\xff\x83\x03\x01\x02\x01\x00\x01\x01\x01\x01X\x01\x04\x00\x00\x00"), join(id65, 0, 2, 1, 2, 0, 0))},
		{"a slice", "a slice or array of", new([]int), stream([]byte(defSlice), join(id65, 0, many, 2))},
		{"an array", "2 elements in an array of 3", new([3]int), stream([]byte(defArray), join(id65, 0, 2, 2, 2))},
		{"a map in a field", "a map of", new(struct{ X map[string]int }), stream([]byte(defStruct), []byte(defMap66), join(id65, 1, many, 0))},
		{"a map in an ignored field", "a map of", new(struct{ Y int }), stream([]byte(defStruct), []byte(defMap66), join(id65, 1, many, 0))},
		{"a map in an interface", "a map of", new([]any), stream([]byte(defAnys),
			join(id65, 0, 1, 14, "map[string]int", defMap66), join(id66, 9, 0, many, 0))},
		{"a string", "a length of", new(string), stream(join(0x0c, 0, many, "s"))},
		{"a message", "a message of", new(string), join(many, "s")},
		{"an integer", "an integer of 8", new(int), stream(join(0x04, 0, "\xf8\x01"))},
		{"a long integer", "an integer of 9", new(int), stream(join(0x04, 0, "\xf7\x01\x01\x01\x01\x01\x01\x01\x01\x01"))},
		{"a field", "of a struct of 1", new(struct{ X int }), stream([]byte(defStruct), join(id65, 2, 0))},
		{"undefined", "type 66 is not defined", new(struct{ X int }), stream([]byte(defStruct), join(id65, 1, 0))},
		{"gob's own type", "type 16", new(struct{ X int }), stream(join(0x20, 0, 0))},
		{"defined twice", "type 65 is defined again", new([]int), stream([]byte(defSlice), []byte(defSlice), join(id65, 0, 0))},
		{"two kinds", "two kinds", new([]int), stream(join(defSlice[:len(defSlice)-1], 2, 1, 0, 0), join(id65, 0, 0))},
		{"no kind", "no kind", new([]int), stream(join("\xff\x81", 0), join(id65, 0, 0))},
		{"unregistered", "not registered", new([]any), stream([]byte(defAnys), join(id65, 0, 1, 3, "foo", 4, 2, 0, 2))},
		{"deep", "more than", new(forest), deep(maxDepth + 1)},
		{"nothing", "ends too early", new(int), nil},
		{"fields of a deep type", "types too deep", new(plan), deepFields(2000, 1000)},
	} {
		var err error
		n := allocated(func() { err = decode(c.b, c.into) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if n > 1<<20 {
			t.Errorf("%s takes %d bytes", c.name, n)
		}
	}
	if err := decode(deep(maxDepth-1), new(forest)); err != nil {
		t.Error(err)
	}
}

// An interface that is nil, or gives a length that is not its value's, is read
// otherwise when it is ignored: what is a text for one is a map for the other.
func TestWalkFollowsIgnored(t *testing.T) {
	register()
	type full struct {
		X []any
		A int
		Y map[string]int
	}
	type lacking struct{ Y map[string]int }
	def := "\xff\x81\x03\x01\x02\x01\x00\x01\x03\x01\x01X\x01\xff\x84\x00\x01\x01A\x01\x04\x00\x01\x01Y\x01\xff\x86\x00\x00\x00"
	anys := "\xff\x83\x02\x01\x02\x01\x00\x01\x10\x00\x00"
	maps := "\xff\x85\x04\x01\x02\x01\x00\x01\x0c\x01\x04\x00\x00"
	key := "\x02" + many // or field Y, a map
	for _, x := range []string{
		"\x00" + "\x02\x01\x07",                     // nil, then Y; or type 1, 1 byte
		"\x04bool\x02\x05\x00\x01" + "\x02\x01\x07", // true, then Y; or 5 bytes
	} {
		b := stream([]byte(def), []byte(anys), []byte(maps), join(id65, 1, 1, x, key, 0, 0))
		var f full
		if err := decode(b, &f); err != nil || len(f.X) != 1 || len(f.Y) != 1 {
			t.Errorf("%v, %+v", err, f)
		}
		var err error
		n := allocated(func() { err = decode(b, new(lacking)) })
		if n > 1<<20 || err == nil || !strings.Contains(err.Error(), "a map of") {
			t.Errorf("%d bytes, %v", n, err)
		}
		// The same behind an interface, where only gob knows the type.
		gob.RegisterName("lacking", lacking{})
		b = stream([]byte(def), []byte(anys), []byte(maps), join(0x10, 0, 7, "lacking", id65, 0, 1, 1, x, key, 0, 0))
		n = allocated(func() { err = decode(b, new(any)) })
		if n > 1<<20 || err == nil || !strings.Contains(err.Error(), "a map of") {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}

// deepFields is a struct of fields fields, each of one type: slices in slices
// to a depth.
func deepFields(depth, fields int) []byte {
	id := func(n int) []byte { return append([]byte{0xfe}, byte(n>>8), byte(n)) }
	first := 1000
	def := join(id(2*64+1), 3, 1, 2, 1, 0, 1, appendUint(nil, fields))
	for range fields {
		def = join(def, 1, 1, "x", 1, id(2*first), 0)
	}
	messages := [][]byte{join(def, 0, 0)}
	for i := first; i < first+depth; i++ {
		elem := id(2 * (i + 1))
		if i == first+depth-1 {
			elem = []byte{4}
		}
		messages = append(messages, join(id(2*i-1), 2, 1, 2, 1, 0, 1, elem, 0, 0))
	}
	return stream(append(messages, join(id(2*65), 0))...)
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func BenchmarkDecode(b *testing.B) {
	ints, m := make([]int, 1<<18), map[string][]int{}
	for i := range ints {
		ints[i] = i % 2000
	}
	plans := make([]plan, 1<<16)
	for i := range plans {
		plans[i].Name = fmt.Sprint("plan ", i)
		m[plans[i].Name] = ints[:1]
	}
	for name, v := range map[string]any{"ints": ints, "structs": plans, "map": m} {
		e := encoded(v)
		for _, s := range []string{"decode", "walk"} {
			b.Run(fmt.Sprintf("%s/%s", name, s), func(b *testing.B) {
				b.SetBytes(int64(len(e)))
				for range b.N {
					p := reflect.New(reflect.TypeOf(v))
					err := error(nil)
					if s == "walk" {
						err = walk(e, p.Type().Elem())
					} else {
						err = decode(e, p.Interface())
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
