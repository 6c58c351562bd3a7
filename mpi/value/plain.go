// SPDX-License-Identifier: Apache-2.0

package value

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// Plain values have no structs in them: numbers, text, slices and maps of
// those, and such behind interfaces. They travel in an encoding of our own,
// {formPlain, shape, value}:
//
//	bool              a byte, 0 or 1
//	integers          a varint, of signed ones with zigzag
//	floating, complex 4, 8 or 16 bytes
//	string            {length (uvarint), bytes}
//	[]T               {length (uvarint), elements}; of numbers their memory
//	map[K]T           {length (uvarint), keys and elements in turn, unsorted}
//	any               {shape, value} of what it holds; shape 0 is nil
//
// A shape is a type of a list that is the same in all processes.

// shape is one of these types.
type shape interface {
	typ() reflect.Type
	number() byte              // its code
	put(w *writer, v any)      // what v, a pointer, points to
	putBoxed(w *writer, v any) // v itself, behind its code
	get(r *reader, v any)      // to where v points
	boxed(r *reader) any
	fresh(r *reader) any // a pointer to a new one
}

// codec of a T. least is how many bytes an encoding has at least.
type codec[T any] struct {
	code  byte
	least int
	to    func(w *writer, x T)
	from  func(r *reader) T
}

func (c *codec[T]) typ() reflect.Type    { return reflect.TypeFor[T]() }
func (c *codec[T]) number() byte         { return c.code }
func (c *codec[T]) put(w *writer, v any) { c.to(w, *v.(*T)) }
func (c *codec[T]) get(r *reader, v any) { *v.(*T) = c.from(r) }
func (c *codec[T]) boxed(r *reader) any  { return c.from(r) }

func (c *codec[T]) putBoxed(w *writer, v any) {
	w.b = append(w.b, c.code)
	c.to(w, v.(T))
}

func (c *codec[T]) fresh(r *reader) any {
	x := new(T)
	*x = c.from(r)
	return x
}

// shapes is the list of types. Immutable once made.
type shapes struct {
	byCode []shape // the first is nil
	byType map[reflect.Type]shape
}

// anyCode is the shape of any, which an interface never holds.
const anyCode = 1

func newShapes() *shapes {
	s := &shapes{byCode: make([]shape, 1, 128), byType: make(map[reflect.Type]shape, 128)}
	anything := add(s, &codec[any]{least: 1, to: putAny, from: getAny})
	text := add(s, &codec[string]{least: 1, to: putString, from: getString})
	truth := add(s, &codec[bool]{least: 1, to: putBool, from: getBool})
	integer := add(s, &codec[int]{least: 1, to: putInt[int], from: getInt[int]})
	float := add(s, &codec[float64]{least: 8, to: putFloat64, from: getFloat64})

	anys := add(s, sliceOf(anything))
	mapAny := add(s, mapOf(text, anything))
	add(s, mapOf(integer, anything))
	add(s, sliceOf(anys))
	add(s, sliceOf(mapAny))

	texts := add(s, sliceOf(text))
	mapsTo(s, text, integer, text)
	mapsTo(s, text, integer, texts)
	add(s, sliceOf(texts))
	add(s, sliceOf(truth))
	mapsTo(s, text, integer, truth)

	add(s, sliceOf(numbers(s, text, integer, integer)))
	add(s, sliceOf(numbers(s, text, integer, float)))
	numbers(s, text, integer, add(s, &codec[int8]{least: 1, to: putInt[int8], from: getInt[int8]}))
	numbers(s, text, integer, add(s, &codec[int16]{least: 1, to: putInt[int16], from: getInt[int16]}))
	numbers(s, text, integer, add(s, &codec[int32]{least: 1, to: putInt[int32], from: getInt[int32]}))
	numbers(s, text, integer, add(s, &codec[int64]{least: 1, to: putInt[int64], from: getInt[int64]}))
	numbers(s, text, integer, add(s, &codec[uint]{least: 1, to: putUint[uint], from: getUint[uint]}))
	add(s, sliceOf(numbers(s, text, integer, add(s, &codec[uint8]{least: 1, to: putUint[uint8], from: getUint[uint8]}))))
	numbers(s, text, integer, add(s, &codec[uint16]{least: 1, to: putUint[uint16], from: getUint[uint16]}))
	numbers(s, text, integer, add(s, &codec[uint32]{least: 1, to: putUint[uint32], from: getUint[uint32]}))
	numbers(s, text, integer, add(s, &codec[uint64]{least: 1, to: putUint[uint64], from: getUint[uint64]}))
	numbers(s, text, integer, add(s, &codec[float32]{least: 4, to: putFloat32, from: getFloat32}))
	numbers(s, text, integer, add(s, &codec[complex64]{least: 8, to: putComplex64, from: getComplex64}))
	numbers(s, text, integer, add(s, &codec[complex128]{least: 16, to: putComplex128, from: getComplex128}))
	return s
}

// add enters a type.
func add[T any](s *shapes, c *codec[T]) *codec[T] {
	c.code = byte(len(s.byCode))
	s.byCode = append(s.byCode, c)
	s.byType[c.typ()] = c
	return c
}

// mapsTo enters maps to a type.
func mapsTo[T any](s *shapes, text *codec[string], integer *codec[int], c *codec[T]) {
	add(s, mapOf(text, c))
	add(s, mapOf(integer, c))
}

// numbers enters the slice of a type of numbers, and maps to both.
func numbers[T number](s *shapes, text *codec[string], integer *codec[int], c *codec[T]) *codec[[]T] {
	mapsTo(s, text, integer, c)
	slice := add(s, &codec[[]T]{least: 1, to: putNumbers[T], from: getNumbers[T]})
	mapsTo(s, text, integer, slice)
	return slice
}

// of finds the shape of a type that one may declare, nil if it has none.
func (s *shapes) of(t reflect.Type) shape {
	if t.Name() == "" {
		return s.byType[t]
	}
	switch k := t.Kind(); {
	case encodesItself(t):
	case k == reflect.Map:
		return s.byType[reflect.MapOf(t.Key(), t.Elem())]
	case k == reflect.Slice:
		return s.byType[reflect.SliceOf(t.Elem())]
	case k == reflect.Interface && t.NumMethod() == 0:
		return s.byCode[anyCode]
	case k == reflect.Bool:
		return s.byType[reflect.TypeFor[bool]()]
	case k == reflect.String:
		return s.byType[reflect.TypeFor[string]()]
	case k == reflect.Int:
		return s.byType[reflect.TypeFor[int]()]
	case k == reflect.Uint:
		return s.byType[reflect.TypeFor[uint]()]
	case typeOfKind(k) != nil:
		return s.byType[typeOfKind(k)]
	}
	return nil
}

// pointer turns a pointer to a declared type of a shape into one to the shape's
// own type.
func pointer(v any, s shape) any {
	if p := reflect.PointerTo(s.typ()); reflect.TypeOf(v) != p {
		return reflect.ValueOf(v).Convert(p).Interface()
	}
	return v
}

// encodePlain encodes what v points to. plain is false if there is something
// else behind an interface.
func (s *shapes) encodePlain(own shape, v any) (b []byte, plain bool, err error) {
	w := writer{shapes: s, b: append(make([]byte, 0, 64), formPlain, own.number())}
	own.put(&w, pointer(v, own))
	return w.b, !w.foreign, w.err
}

// writer is one encoding under way.
type writer struct {
	shapes  *shapes
	b       []byte
	depth   int
	foreign bool // it holds what has no shape
	err     error
}

func (w *writer) length(n int) { w.b = binary.AppendUvarint(w.b, uint64(n)) }

// ended: nothing more need be written.
func (w *writer) ended() bool { return w.foreign || w.err != nil }

// reader reads the bytes of another process.
type reader struct {
	shapes *shapes
	b      []byte // that are left
	all    int
	depth  int
	err    error // the first; nothing is read after it
}

// decodePlain decodes b to where v points; own is the shape of that, if any.
func (s *shapes) decodePlain(b []byte, own shape, v any) error {
	if len(b) == 0 || b[0] == 0 || int(b[0]) >= len(s.byCode) {
		return fmt.Errorf("%d bytes of no known type", len(b))
	}
	from, to := s.byCode[b[0]], reflect.ValueOf(v).Elem()
	if from != own && !compatible(from.typ(), to.Type()) {
		return fmt.Errorf("%v cannot be received as %v", from.typ(), to.Type())
	}
	r := reader{shapes: s, b: b[1:], all: len(b)}
	var x any
	if from == own {
		own.get(&r, pointer(v, own))
	} else {
		x = from.fresh(&r)
	}
	switch {
	case r.err != nil:
		return r.err
	case len(r.b) > 0:
		return fmt.Errorf("%d of %d bytes follow the value", len(r.b), len(b))
	case from != own:
		return convert(reflect.ValueOf(x).Elem(), to)
	}
	return nil
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: "+format, append([]any{r.all - len(r.b)}, args...)...)
	}
	r.b = nil
}

func (r *reader) uint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		x := r.b[0]
		r.b = r.b[1:]
		return uint64(x)
	}
	x, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("no integer in the %d bytes left", len(r.b))
		return 0
	}
	r.b = r.b[n:]
	return x
}

// count reads how many there are of something of least bytes each.
func (r *reader) count(least int) int {
	n := r.uint()
	if n > uint64(len(r.b)/least) {
		r.fail("%d elements of %d bytes or more, and %d bytes left", n, least, len(r.b))
		return 0
	}
	return int(n)
}

// bytes reads n bytes, nil if there are not as many.
func (r *reader) bytes(n int) []byte {
	if n > len(r.b) {
		r.fail("%d bytes of a value, and %d left", n, len(r.b))
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func putAny(w *writer, v any) {
	if v == nil {
		w.b = append(w.b, 0)
		return
	}
	s := w.shapes.byType[reflect.TypeOf(v)]
	if s == nil {
		w.foreign = true
		return
	}
	if w.depth == maxDepth {
		w.err = fmt.Errorf("values lie in each other more than %d deep", maxDepth)
		return
	}
	w.depth++
	s.putBoxed(w, v)
	w.depth--
}

func getAny(r *reader) any {
	code := 0
	if b := r.bytes(1); b != nil {
		code = int(b[0])
	}
	if code == 0 {
		return nil
	}
	if code == anyCode || code >= len(r.shapes.byCode) {
		r.fail("type %d behind an interface", code)
		return nil
	}
	if r.depth == maxDepth {
		r.fail("values lie in each other more than %d deep", maxDepth)
		return nil
	}
	r.depth++
	v := r.shapes.byCode[code].boxed(r)
	r.depth--
	return v
}

func putString(w *writer, x string) {
	w.length(len(x))
	w.b = append(w.b, x...)
}

func getString(r *reader) string { return string(r.bytes(r.count(1))) }

func putBool(w *writer, x bool) {
	if x {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

func getBool(r *reader) bool {
	x := r.uint()
	if x > 1 {
		r.fail("%d is no bool", x)
	}
	return x == 1
}

type (
	signedInt interface {
		int | int8 | int16 | int32 | int64
	}
	unsignedInt interface {
		uint | uint8 | uint16 | uint32 | uint64
	}
	number interface {
		signedInt | unsignedInt | float32 | float64 | complex64 | complex128
	}
)

func putInt[T signedInt](w *writer, x T) { w.b = binary.AppendVarint(w.b, int64(x)) }

func getInt[T signedInt](r *reader) T {
	u := r.uint()
	i := int64(u>>1) ^ -int64(u&1)
	if int64(T(i)) != i {
		r.fail("%d does not fit into %T", i, T(0))
	}
	return T(i)
}

func putUint[T unsignedInt](w *writer, x T) { w.b = binary.AppendUvarint(w.b, uint64(x)) }

func getUint[T unsignedInt](r *reader) T {
	u := r.uint()
	if uint64(T(u)) != u {
		r.fail("%d does not fit into %T", u, T(0))
	}
	return T(u)
}

func putFloat32(w *writer, x float32) {
	w.b = binary.LittleEndian.AppendUint32(w.b, math.Float32bits(x))
}

func getFloat32(r *reader) float32 {
	if b := r.bytes(4); b != nil {
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func putFloat64(w *writer, x float64) {
	w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(x))
}

func getFloat64(r *reader) float64 {
	if b := r.bytes(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func putComplex64(w *writer, x complex64) {
	putFloat32(w, real(x))
	putFloat32(w, imag(x))
}

func getComplex64(r *reader) complex64 {
	re := getFloat32(r)
	return complex(re, getFloat32(r))
}

func putComplex128(w *writer, x complex128) {
	putFloat64(w, real(x))
	putFloat64(w, imag(x))
}

func getComplex128(r *reader) complex128 {
	re := getFloat64(r)
	return complex(re, getFloat64(r))
}
