// SPDX-License-Identifier: Apache-2.0

package dtype

// Run is a part of a signature: N numbers of Width bytes, or N copies of Sub.
type Run struct {
	Width int64 // 0: bytes of padding without a meaning
	N     int64
	Sub   []Run // if not nil, Width is 0
	Kind  Kind  // of the numbers; Opaque if they are bytes, or if it is unknown
}

// widths are the sizes of the numbers in an element of each kind. Pairs are bytes, unless they
// are records, which know their parts.
var widths = [NumKinds]int64{
	Opaque:      1,
	Bool:        1,
	Int8:        1,
	Int16:       2,
	Int32:       4,
	Int64:       8,
	Uint8:       1,
	Uint16:      2,
	Uint32:      4,
	Uint64:      8,
	Float32:     4,
	Float64:     8,
	Complex64:   4,
	Complex128:  8,
	PairInt8:    1,
	PairInt16:   1,
	PairInt32:   1,
	PairInt64:   1,
	PairUint8:   1,
	PairUint16:  1,
	PairUint32:  1,
	PairUint64:  1,
	PairFloat32: 1,
	PairFloat64: 1,
}

// NewRecord returns a basic type whose Size bytes have parts: a struct or an array of Go. The
// signature covers all bytes. align is the alignment of the Go type.
func NewRecord(name string, size, align int64, kind Kind, signature []Run) *Type {
	t := &Type{Name: name, Size: size, Kind: kind}
	t.derived = &derived{
		contents:  Contents{Combiner: Named},
		base:      t,
		bounds:    bounds{known: true, ub: size},
		align:     align,
		signature: AppendRun(nil, 1, signature),
		basics:    1,
		external:  externalSize(signature),
	}
	return t
}

// Signature returns the numbers in the packed bytes of an element, in their order. The caller
// must not change it.
func (t *Type) Signature() []Run {
	if t.derived != nil {
		return t.derived.signature
	}
	w := max(widths[t.Kind], 1)
	r := Run{Width: w, N: t.Size / w}
	if w > 1 {
		r.Kind = t.Kind
	}
	return []Run{r}
}

// fewRuns is the number of runs up to which a signature is copied into the one around it.
// Longer signatures are shared. Otherwise the signatures of nested structs would double with
// each level.
const fewRuns = 16

// AppendRun appends n copies of sub to a signature.
func AppendRun(s []Run, n int64, sub []Run) []Run {
	switch {
	case n == 0 || len(sub) == 0:
		return s
	case len(sub) > 1 && n > 1 || len(sub) > fewRuns:
		return append(s, Run{N: n, Sub: sub})
	}
	for _, r := range sub {
		r.N *= n
		if last := len(s) - 1; last >= 0 && r.Sub == nil && s[last].Sub == nil && s[last].Width == r.Width && s[last].Kind == r.Kind {
			s[last].N += r.N
		} else {
			s = append(s, r)
		}
	}
	return s
}

// signature returns the signature of a type of size bytes; size is not 0.
func (m Contents) signature(size int64) []Run {
	if m.Combiner == Struct {
		var s []Run
		for i, t := range m.Types {
			s = AppendRun(s, m.Ints[i], t.Signature())
		}
		return s
	}
	old := m.Types[0]
	return AppendRun(nil, size/old.Size, old.Signature())
}

// align returns the alignment of memory for elements of all types, or 1 if it is unknown.
func align(ts []*Type) int64 {
	a := int64(1)
	for _, t := range ts {
		if t.derived != nil {
			a = max(a, t.derived.align)
		} else {
			a = max(a, widths[t.Kind])
		}
	}
	return a
}
