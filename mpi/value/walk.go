// SPDX-License-Identifier: Apache-2.0

package value

import (
	"fmt"
	"reflect"
)

// maxDepth is how deep values may lie in each other (a list of n nodes is n
// deep). Gob decodes by recursion, and Go ends a process whose stack has to
// grow past 512 MB: not before 500,000 levels of the costliest kind, an
// interface in an interface.
const maxDepth = 200_000

// walker reads a gob stream as a gob.Decoder would, byte for byte, but keeps
// the types only. gob.Decoder takes memory for any number of elements that a
// map claims to have, and 10 MB for a slice in a slice in a slice, before it
// has read them; after a walk without error every element is known to be
// there, with a byte at least.
//
// What is in a struct field that the receiver's struct lacks is ignored by
// gob, and it reads some ignored values otherwise than kept ones (see
// ignoredInterface). So the walk follows the receiver's types too: t in the
// methods below, nil for what is ignored. Where t cannot hold the value gob
// refuses the whole of it, and it does not matter how the walk goes on.
type walker struct {
	b        []byte
	pos, end int // end of the message that pos is in
	types    map[int32]*wireType
	defs     [][]byte                // the definitions of types, as they came
	locals   map[string]reflect.Type // registered types, by name
	layouts  map[layoutKey][]reflect.Type
	depth    int
	field    int     // how many compile has counted
	ops      int     // what it counted
	todo     []int32 // its work, kept for reuse
	err      error   // the first; nothing is read after it
}

// walk says whether gob may decode b, one encoded value, into a t.
func walk(b []byte, t reflect.Type) error {
	w := &walker{b: b, types: map[int32]*wireType{}}
	id := w.typeSequence(false)
	w.whole(id, t)
	return w.err
}

// prime walks what a decoder reads before the values that it is kept for:
// definitions of types and samples, whole values in which others are defined. It
// counts the samples.
func (w *walker) prime(b []byte, t reflect.Type) (samples int) {
	w.b, w.pos, w.end = b, 0, 0
	for w.err == nil && w.pos < len(b) {
		w.message()
		start := w.pos
		if id := w.id(); id < 0 {
			w.define(id, start)
		} else {
			w.whole(id, t)
			samples++
		}
		if w.left() > 0 {
			w.fail("%d bytes follow the definition of a type, or a sample", w.left())
		}
	}
	return samples
}

// next says whether a decoder that has read the same as w may decode b, the next
// value, into a t. known: it has no definitions, and ends with b.
func (w *walker) next(b []byte, t reflect.Type) (known bool, err error) {
	types := len(w.types)
	w.b, w.pos, w.end, w.depth = b, 0, 0, 0
	id := w.typeSequence(false)
	w.whole(id, t)
	return len(w.types) == types && w.pos == len(b), w.err
}

func (w *walker) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("at byte %d: "+format, append([]any{w.pos}, args...)...)
	}
	w.pos = w.end
}

func (w *walker) left() int { return w.end - w.pos }

func (w *walker) uint() uint64 {
	if w.pos >= w.end {
		w.fail("the message ends too early")
		return 0
	}
	c := w.b[w.pos]
	w.pos++
	if c <= 0x7f {
		return uint64(c)
	}
	n := -int(int8(c))
	if n > 8 || n > w.left() {
		w.fail("an integer of %d bytes with %d left", n, w.left())
		return 0
	}
	var x uint64
	for _, c := range w.b[w.pos : w.pos+n] {
		x = x<<8 | uint64(c)
	}
	w.pos += n
	return x
}

// id reads a signed integer that numbers a type.
func (w *walker) id() int32 {
	u := w.uint()
	i := int64(u >> 1)
	if u&1 != 0 {
		i = ^i
	}
	if int64(int32(i)) != i {
		w.fail("type %d", i)
		return 0
	}
	return int32(i)
}

// bytes reads a length and as many bytes.
func (w *walker) bytes() []byte {
	n := w.uint()
	if n > uint64(w.left()) {
		w.fail("a length of %d with %d bytes left", n, w.left())
		return nil
	}
	b := w.b[w.pos : w.pos+int(n)]
	w.pos += int(n)
	return b
}

// message goes on to the next message of the stream.
func (w *walker) message() {
	w.end = len(w.b)
	n := w.uint()
	if n > uint64(w.left()) {
		w.fail("a message of %d bytes with %d left", n, w.left())
		return
	}
	w.end = w.pos + int(n)
}

// typeSequence reads the definitions of types before a value, then the
// value's type. They may be in several messages: gob's encoder ends one after
// each definition, also in the middle of the value that an interface is in.
func (w *walker) typeSequence(inInterface bool) int32 {
	for w.err == nil {
		if w.left() == 0 {
			w.message()
		}
		start := w.pos
		id := w.id()
		if id >= 0 {
			return id
		}
		w.define(id, start)
		if w.left() > 0 {
			if !inInterface {
				w.fail("%d bytes follow the definition of a type", w.left())
			}
			w.uint() // the length of an inner message, which gob ignores
		}
	}
	return 0
}

// whole walks a value that is in nothing else, or in an interface: one that
// is no struct has a zero before it.
func (w *walker) whole(id int32, t reflect.Type) {
	w.compile(id)
	if wt := w.types[id]; wt != nil && wt.kind == kindStruct {
		w.structure(id, wt, base(t))
		return
	}
	if w.uint() != 0 {
		w.fail("no zero before a single value")
	}
	w.value(id, t)
}

func (w *walker) value(id int32, t reflect.Type) {
	if w.left() == 0 {
		w.fail("the message ends before a value") // else a struct could have no bytes
	}
	if w.err != nil {
		return
	}
	switch id {
	case idBool, idInt, idUint, idFloat:
		w.uint()
		return
	case idComplex:
		w.uint()
		w.uint()
		return
	case idBytes, idString:
		w.bytes()
		return
	}
	if w.depth == maxDepth {
		w.fail("values lie in each other more than %d deep", maxDepth)
		return
	}
	w.depth++
	w.composite(id, base(t))
	w.depth--
}

func (w *walker) composite(id int32, t reflect.Type) {
	if id == idInterface {
		if t != nil && t.Kind() == reflect.Interface {
			w.keptInterface()
		} else {
			w.ignoredInterface()
		}
		return
	}
	wt := w.types[id]
	if wt == nil {
		w.fail("type %d is not defined", id)
		return
	}
	switch wt.kind {
	case kindOpaque:
		w.bytes()
	case kindStruct:
		w.structure(id, wt, t)
	case kindMap:
		n := w.count("map", 2)
		key, elem := inner(t, reflect.Map)
		for ; n > 0 && w.err == nil; n-- {
			w.value(wt.key, key)
			w.value(wt.elem, elem)
		}
	case kindArray, kindSlice:
		n := w.count("slice or array", 1)
		if wt.kind == kindArray && n != wt.len {
			w.fail("%d elements in an array of %d", n, wt.len)
		}
		_, elem := inner(t, reflect.Slice, reflect.Array)
		for ; n > 0 && w.err == nil; n-- {
			w.value(wt.elem, elem)
		}
	}
}

// count reads how many elements there are, of size bytes at least each. They
// may go on in later messages.
func (w *walker) count(what string, size int) int {
	n, left := w.uint(), len(w.b)-w.pos
	if n > uint64(left/size) {
		w.fail("a %s of %d elements with %d bytes left", what, n, left)
		return 0
	}
	return int(n)
}

// structure walks pairs of a distance to the next field and its value, to a
// distance of 0. At the end of a message that may be missing.
func (w *walker) structure(id int32, wt *wireType, t reflect.Type) {
	fields := w.layout(id, wt, t)
	for f := -1; w.left() > 0; {
		delta := w.uint()
		if delta == 0 {
			return
		}
		if delta > uint64(len(wt.fields)-1-f) {
			w.fail("field %d+%d of a struct of %d", f, delta, len(wt.fields))
			return
		}
		f += int(delta)
		w.value(wt.fields[f].id, fields[f])
	}
}

// keptInterface walks a type's name, definitions, the type, a length that gob
// does not look at (it is wrong where the value defines types), and the value.
func (w *walker) keptInterface() {
	name := w.bytes()
	if len(name) == 0 {
		return
	}
	id := w.typeSequence(true)
	w.uint()
	if w.err == nil {
		w.whole(id, w.local(string(name), id))
	}
}

// ignoredInterface goes over an interface as gob does when it ignores it: by
// the length, and as if nil had a value too.
func (w *walker) ignoredInterface() {
	w.bytes()
	w.typeSequence(true)
	w.bytes()
}
