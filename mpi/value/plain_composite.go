// SPDX-License-Identifier: Apache-2.0

package value

import (
	"fmt"
	"reflect"
)

// sliceOf is the codec of a slice. An empty one arrives as nil.
func sliceOf[T any](c *codec[T]) *codec[[]T] {
	return &codec[[]T]{
		least: 1,
		to: func(w *writer, xs []T) {
			w.length(len(xs))
			for i := range xs {
				if c.to(w, xs[i]); w.ended() {
					return
				}
			}
		},
		from: func(r *reader) []T {
			n := r.count(c.least)
			if n == 0 {
				return nil
			}
			xs := make([]T, n)
			for i := range xs {
				if xs[i] = c.from(r); r.err != nil {
					return nil
				}
			}
			return xs
		},
	}
}

// mapOf is the codec of a map. A nil one arrives empty.
func mapOf[K comparable, T any](key *codec[K], elem *codec[T]) *codec[map[K]T] {
	return &codec[map[K]T]{
		least: 1,
		to: func(w *writer, m map[K]T) {
			w.length(len(m))
			for k, x := range m {
				key.to(w, k)
				if elem.to(w, x); w.ended() {
					return
				}
			}
		},
		from: func(r *reader) map[K]T {
			n := r.count(key.least + elem.least)
			m := make(map[K]T, n)
			for range n {
				k := key.from(r)
				x := elem.from(r)
				if r.err != nil {
					return nil
				}
				m[k] = x
			}
			return m
		},
	}
}

func putNumbers[T number](w *writer, xs []T) {
	w.length(len(xs))
	w.b = append(w.b, memoryOf(xs)...)
}

func getNumbers[T number](r *reader) []T {
	var x T
	n := r.count(int(reflect.TypeOf(x).Size()))
	if n == 0 {
		return nil
	}
	xs := make([]T, n)
	m := memoryOf(xs)
	copy(m, r.bytes(len(m)))
	return xs
}

// compatible reports whether gob considers a plain type and another compatible:
// the sizes of numbers, declared types and pointers may differ.
func compatible(from, to reflect.Type) bool {
	for range maxPointers {
		if to.Kind() != reflect.Pointer {
			break
		}
		to = to.Elem()
	}
	k := to.Kind()
	switch from.Kind() {
	case reflect.Interface:
		return k == reflect.Interface
	case reflect.Bool, reflect.String:
		return k == from.Kind() && !encodesItself(to)
	case reflect.Slice:
		return k == reflect.Slice && !encodesItself(to) && compatible(from.Elem(), to.Elem())
	case reflect.Map:
		return k == reflect.Map && !encodesItself(to) && compatible(from.Key(), to.Key()) && compatible(from.Elem(), to.Elem())
	}
	return isNumber(k) && classOf(k) == classOf(from.Kind()) && !encodesItself(to)
}

// convert stores a plain value in one of a compatible type.
func convert(from, to reflect.Value) error {
	to = pointee(to)
	switch from.Kind() {
	case reflect.Interface:
		if from.IsNil() {
			break
		}
		if from = from.Elem(); !from.Type().AssignableTo(to.Type()) {
			return fmt.Errorf("%v cannot be received as %v", from.Type(), to.Type())
		}
		to.Set(from)
	case reflect.Bool:
		to.SetBool(from.Bool())
	case reflect.String:
		to.SetString(from.String())
	case reflect.Slice:
		if from.Len() > 0 {
			return convertSlice(from, to)
		}
	case reflect.Map:
		return convertMap(from, to)
	default:
		if !fits(from, to) {
			return fmt.Errorf("%v does not fit into %v", from, to.Type())
		}
	}
	return nil
}

func convertSlice(from, to reflect.Value) error {
	s := reflect.MakeSlice(to.Type(), from.Len(), from.Len())
	for i := range from.Len() {
		if err := convert(from.Index(i), s.Index(i)); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	to.Set(s)
	return nil
}

func convertMap(from, to reflect.Value) error {
	m := reflect.MakeMapWithSize(to.Type(), from.Len())
	for all := from.MapRange(); all.Next(); {
		key, elem := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
		if err := convert(all.Key(), key); err != nil {
			return fmt.Errorf("a key: %w", err)
		}
		if err := convert(all.Value(), elem); err != nil {
			return fmt.Errorf("the element of %v: %w", all.Key(), err)
		}
		m.SetMapIndex(key, elem)
	}
	to.Set(m)
	return nil
}

// maxPointers bounds how many pointers lead to a value: a type may point to
// itself.
const maxPointers = 100

// pointee goes along pointers, which it makes, to what is no pointer.
func pointee(to reflect.Value) reflect.Value {
	for range maxPointers {
		if to.Kind() != reflect.Pointer {
			break
		}
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	return to
}
