// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"reflect"
	"strings"

	"gompi/internal/data/dtype"
)

// TypeFields is the fields of the struct T that are named, in that order, or
// all of them if none is named: numbers, arrays, and structs with all their
// fields, without padding. A field of a field is named "Inner.Y". The extent is
// that of T, so that a slice of T can be sent and received with the other
// fields left alone. It fails with ErrArg for a name that T does not have or
// that is named twice, also as part of another, and with ErrType if T is no
// struct or a named field holds a pointer; other fields may, if the Datatype
// itself, not one made of it, describes a slice of T.
func TypeFields[T any](names ...string) (Datatype, error) {
	rt := reflect.TypeFor[T]()
	if rt.Kind() != reflect.Struct {
		return made("TypeFields")(nil, fmt.Errorf("%v is no struct", rt))
	}
	var p picked
	var err error
	for i, name := range names {
		if err == nil {
			err = p.named(rt, i, name)
		}
	}
	if len(names) == 0 {
		err = p.all(rt, 0)
	}
	if err != nil {
		return made("TypeFields")(nil, err)
	}
	t, err := p.structOf(rt)
	if err != nil {
		return made("TypeFields")(nil, err)
	}
	return made("TypeFields")(t.WithName(fmt.Sprintf("fields of %v", rt)).FieldsOf(rt), nil)
}

// picked is fields of a struct.
type picked struct {
	ones, displs []int64
	types        []*dtype.Type
}

func (p *picked) structOf(rt reflect.Type) (*dtype.Type, error) {
	t, err := dtype.NewStruct(p.ones, p.displs, p.types)
	if err != nil {
		return nil, err
	}
	return dtype.NewResized(t, 0, int64(rt.Size()))
}

// add picks a field of type rt at a displacement.
func (p *picked) add(rt reflect.Type, at int64) error {
	t, err := fieldType(rt)
	if err != nil {
		return err
	}
	p.ones, p.displs, p.types = append(p.ones, 1), append(p.displs, at), append(p.types, t)
	return nil
}

// named picks the field of rt that argument i names.
func (p *picked) named(rt reflect.Type, i int, name string) error {
	at, ft := uintptr(0), rt
	for part := range strings.SplitSeq(name, ".") {
		if ft.Kind() != reflect.Struct {
			return &dtype.ArgError{Arg: "names", Index: i, Got: int64(i), Why: fmt.Sprintf("is %q, but %v has no fields", name, ft)}
		}
		f, ok := ft.FieldByName(part)
		if !ok {
			return &dtype.ArgError{Arg: "names", Index: i, Got: int64(i), Why: fmt.Sprintf("is %q, but %v has no field %q", name, ft, part)}
		}
		for _, k := range f.Index { // a promoted field is behind embedded ones
			if ft.Kind() != reflect.Struct {
				return fmt.Errorf("field %s is behind a pointer (%v)", name, ft)
			}
			at, ft = at+ft.Field(k).Offset, ft.Field(k).Type
		}
	}
	if where, why := pointerIn(ft, name); why != "" {
		return fmt.Errorf("field %s of %v cannot be sent: %s is %s", name, rt, where, why)
	}
	for k, d := range p.displs {
		if int64(at) < d+p.types[k].Extent() && d < int64(at+ft.Size()) {
			return &dtype.ArgError{Arg: "names", Index: i, Got: int64(i), Why: fmt.Sprintf("is %q, which is named already", name)}
		}
	}
	return p.add(ft, int64(at))
}

// all picks all fields of rt, which is at a displacement.
func (p *picked) all(rt reflect.Type, at int64) error {
	for i := range rt.NumField() {
		f := rt.Field(i)
		if f.Name == "_" {
			continue
		}
		if err := p.add(f.Type, at+int64(f.Offset)); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return nil
}

// fieldType describes a field by its numbers, whatever their nesting.
func fieldType(rt reflect.Type) (*dtype.Type, error) {
	switch rt.Kind() {
	case reflect.Array:
		if rt.Len() == 0 {
			return dtype.NewContiguous(0, dtype.Byte)
		}
		elem, err := fieldType(rt.Elem())
		if err != nil {
			return nil, err
		}
		return dtype.NewContiguous(int64(rt.Len()), elem)
	case reflect.Struct:
		var p picked
		if err := p.all(rt, 0); err != nil {
			return nil, err
		}
		return p.structOf(rt)
	}
	t := goType(rt)
	return t, t.Err
}
