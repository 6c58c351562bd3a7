// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bytes"
	"encoding/gob"
	"reflect"
	"unicode"
	"unicode/utf8"
)

// The types that gob does not define on the wire. Others below firstID are
// gob's own, which no value has.
const (
	idBool      = 1
	idInt       = 2
	idUint      = 3
	idFloat     = 4
	idBytes     = 5
	idString    = 6
	idComplex   = 7
	idInterface = 8
	firstID     = 64
)

// The kinds in the order of the fields of gob's wireType; the last three, of
// types that encode themselves, are kindOpaque.
const (
	kindArray = iota
	kindSlice
	kindStruct
	kindMap
	kindOpaque
	kinds = kindOpaque + 3
)

// wireType is a type that the stream defined.
type wireType struct {
	kind      int
	key, elem int32
	len       int         // of an array
	fields    []wireField // of a struct
	counted   bool        // by compile
	seen      int         // in the field that compile counted last
}

type wireField struct {
	name []byte // in the stream
	id   int32
}

type layoutKey struct {
	id int32
	t  reflect.Type
}

// define reads the definition of type -id; its first byte was at start.
func (w *walker) define(id int32, start int) {
	id = -id
	if id < firstID || w.types[id] != nil {
		w.fail("type %d is defined again", id)
		return
	}
	wt := &wireType{kind: -1}
	w.each(kinds, func(kind int) {
		if wt.kind >= 0 {
			w.fail("type %d has two kinds", id)
		}
		wt.kind = min(kind, kindOpaque)
		w.each(3, func(f int) { w.part(wt, f) })
	})
	if wt.kind < 0 {
		w.fail("type %d has no kind", id)
	}
	w.types[id] = wt
	w.defs = append(w.defs, w.b[start:w.pos])
}

// part reads field f of gob's arrayType, sliceType, structType, mapType or
// gobEncoderType.
func (w *walker) part(wt *wireType, f int) {
	switch {
	case f == 0: // CommonType
		w.each(2, func(f int) {
			if f == 0 {
				w.bytes()
			} else {
				w.id()
			}
		})
	case wt.kind == kindStruct && f == 1:
		for n := w.count("struct", 1); n > 0 && w.err == nil; n-- {
			var field wireField
			if w.left() == 0 {
				w.fail("the message ends before a field")
			}
			w.each(2, func(f int) {
				if f == 0 {
					field.name = w.bytes()
				} else {
					field.id = w.id()
				}
			})
			wt.fields = append(wt.fields, field)
		}
	case wt.kind == kindMap && f == 1:
		wt.key = w.id()
	case wt.kind == kindMap, (wt.kind == kindArray || wt.kind == kindSlice) && f == 1:
		wt.elem = w.id()
	case wt.kind == kindArray:
		wt.len = int(w.uint() >> 1)
	default:
		w.fail("field %d in a type of kind %d", f, wt.kind)
	}
}

// each calls read for the fields that a struct of n has.
func (w *walker) each(n int, read func(f int)) {
	for f := -1; w.left() > 0; {
		delta := w.uint()
		if delta == 0 {
			return
		}
		if delta > uint64(n-1-f) {
			w.fail("field %d+%d of %d", f, delta, n)
			return
		}
		f += int(delta)
		read(f)
	}
}

// compile counts what gob makes before it decodes the first id: an operation
// for every array, slice and map in the type of a field, anew for each field
// that it ignores. Many fields of one deep type would take any memory, so the
// count is bounded, far above what real types have.
func (w *walker) compile(id int32) {
	if wt := w.types[id]; wt == nil || wt.counted {
		return
	}
	structs := w.compileField(nil, id)
	w.types[id].counted = true
	for len(structs) > 0 && w.err == nil {
		wt := structs[len(structs)-1]
		structs = structs[:len(structs)-1]
		for i := 0; i < len(wt.fields) && w.err == nil; i++ {
			structs = w.compileField(structs, wt.fields[i].id)
		}
	}
}

// compileField counts a field and appends the structs in it that are new.
func (w *walker) compileField(structs []*wireType, id int32) []*wireType {
	w.field++
	w.todo = append(w.todo[:0], id)
	for len(w.todo) > 0 && w.err == nil {
		wt := w.types[w.todo[len(w.todo)-1]]
		w.todo = w.todo[:len(w.todo)-1]
		if wt == nil || wt.seen == w.field {
			continue
		}
		wt.seen = w.field
		switch wt.kind {
		case kindStruct:
			if !wt.counted {
				wt.counted = true
				structs = append(structs, wt)
			}
			continue
		case kindMap:
			w.todo = append(w.todo, wt.key, wt.elem)
		case kindArray, kindSlice:
			w.todo = append(w.todo, wt.elem)
		}
		if w.ops++; w.ops > 1<<16+4*len(w.b) {
			w.fail("types too deep: %d operations to decode %d bytes", w.ops, len(w.b))
		}
	}
	return structs
}

// layout returns the types into which gob decodes the fields of wt when it
// decodes a t, by its rule: exported fields of the same name.
func (w *walker) layout(id int32, wt *wireType, t reflect.Type) []reflect.Type {
	key := layoutKey{id, t}
	l, ok := w.layouts[key]
	if ok {
		return l
	}
	l = make([]reflect.Type, len(wt.fields))
	if t != nil && t.Kind() == reflect.Struct {
		for i, f := range wt.fields {
			if r, _ := utf8.DecodeRune(f.name); !unicode.IsUpper(r) {
				continue
			}
			if local, ok := t.FieldByName(string(f.name)); ok {
				l[i] = local.Type
			}
		}
	}
	if w.layouts == nil {
		w.layouts = map[layoutKey][]reflect.Type{}
	}
	w.layouts[key] = l
	return l
}

// local returns the type registered as name, nil where it does not matter.
// Gob keeps its registry to itself, but decodes an interface: one that holds
// a zero of the type. If that fails the real one would.
func (w *walker) local(name string, id int32) reflect.Type {
	if t := w.locals[name]; t != nil {
		return t
	}
	wt := w.types[id]
	if wt == nil && id != idInterface || wt != nil && wt.kind == kindOpaque {
		return nil // has no fields, or gob will refuse it
	}
	zero, ok := w.zero(nil, id)
	if !ok || w.err != nil {
		return nil
	}
	if wt == nil || wt.kind != kindStruct {
		zero = append([]byte{0}, zero...)
	}
	msg := append(appendID(nil, idInterface), 0)
	msg = append(appendUint(msg, len(name)), name...)
	msg = appendUint(appendID(msg, id), len(zero))
	msg = append(msg, zero...)
	var s []byte
	for _, d := range w.defs {
		s = append(appendUint(s, len(d)), d...)
	}
	s = append(appendUint(s, len(msg)), msg...)
	var v any
	if err := gob.NewDecoder(bytes.NewReader(s)).Decode(&v); err != nil {
		w.fail("%w", err)
		return nil
	}
	if w.locals == nil {
		w.locals = map[string]reflect.Type{}
	}
	w.locals[name] = reflect.TypeOf(v)
	return w.locals[name]
}

// zero appends a value of type id without content to b. False if it holds one
// that encodes itself: there are no structs in it then.
func (w *walker) zero(b []byte, id int32) ([]byte, bool) {
	wt := w.types[id]
	switch {
	case wt == nil && id == idComplex:
		return append(b, 0, 0), true
	case wt == nil || wt.kind != kindArray:
		return append(b, 0), wt == nil || wt.kind != kindOpaque
	}
	b = appendUint(b, wt.len)
	ok := true
	for i := 0; i < wt.len && ok && w.err == nil; i++ {
		if len(b) > len(w.b) {
			w.fail("an array of %d with %d bytes left", wt.len, len(w.b)-w.pos)
		} else if w.depth++; w.depth > maxDepth {
			w.fail("arrays lie in each other more than %d deep", maxDepth)
		} else {
			b, ok = w.zero(b, wt.elem)
		}
		w.depth--
	}
	return b, ok
}

// appendUint appends n as gob writes it, if in more bytes than it needs to.
func appendUint(b []byte, n int) []byte {
	if n <= 0x7f {
		return append(b, byte(n))
	}
	u := uint64(n)
	return append(b, 0xf8, byte(u>>56), byte(u>>48), byte(u>>40), byte(u>>32), byte(u>>24), byte(u>>16), byte(u>>8), byte(u))
}

func appendID(b []byte, id int32) []byte { return appendUint(b, int(id)<<1) }

// base follows pointers. It ends at a type that points to itself, which gob
// refuses.
func base(t reflect.Type) reflect.Type {
	for range 100 {
		if t == nil || t.Kind() != reflect.Pointer {
			return t
		}
		t = t.Elem()
	}
	return nil
}

// inner returns the types in t if it is of one of the kinds, else nil.
func inner(t reflect.Type, kinds ...reflect.Kind) (key, elem reflect.Type) {
	for _, k := range kinds {
		if t == nil || t.Kind() != k {
			continue
		}
		if k == reflect.Map {
			key = t.Key()
		}
		return key, t.Elem()
	}
	return nil, nil
}
