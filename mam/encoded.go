// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"gompi/mpi"
)

// Codec is a value that says itself how it travels: mostly a pointer to a variable whose
// type has pointers, strings, slices or maps in it.
type Codec interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// mostValue is how long the encoding of a value may be.
const mostValue = 1 << 30 // bytes

// Encoded registers a value of which all ranks have the same, and that is encoded to
// travel: a newcomer gets it from one of the others. Sources keep the value untouched.
//
// If it is Variable, MarshalBinary is called in the Checkpoint that ends a change which
// newcomers come by, on ranks that have one to give it to; the length may be another one
// each time. Of its error, which that Checkpoint returns, the change is rolled back, and all
// ranks may go on. If the value is Constant, MarshalBinary is called here, and the module
// keeps the encoding, whose length has to be the same on all ranks. Marked there is none.
// An encoding has 1 GiB at most.
//
// On a newcomer, UnmarshalBinary is called here, and the error, of the class mpi.ErrType,
// is its; the data can then be registered again, with another decoder of that Go type.
// Otherwise it is like Distributed. Local.
func Encoded(m *Module, name string, x Codec, mode ...Mode) error {
	const op = "Register"
	a := &array{entry: entry{Name: name, Type: fmt.Sprintf("%T", x), Bytes: 1, Replicated: true, Encoded: true}, value: x}
	if v := reflect.ValueOf(x); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return m.refuse(op, mpi.ErrArg, fmt.Errorf("%q: no variable", name))
	}
	if err := a.setMode(mode); err != nil {
		return m.refuse(op, mpi.ErrArg, err)
	}
	var constant []byte
	a.load = func() []byte { return constant }
	a.store = func(b []byte) {
		if a.Mode == Constant {
			constant = b
		}
	}
	if a.Mode == Constant && !m.over && m.named(name) == nil {
		b, err := a.encode()
		if err != nil {
			return m.refuse(op, mpi.ErrType, err)
		}
		constant, a.Rule.N = b, int64(len(b))
	}
	return m.register(op, a)
}

// travels reports whether the data is encoded anew for each change.
func (e *entry) travels() bool { return e.Encoded && e.Mode == Variable }

// encode is the value as it travels: as it has come, as long as the program has not asked
// for it.
func (a *array) encode() ([]byte, error) {
	if a.load == nil {
		return a.came, nil
	}
	b, err := a.value.MarshalBinary()
	if err == nil && len(b) > mostValue {
		err = fmt.Errorf("%d bytes, at most %d allowed", len(b), mostValue)
	}
	if err != nil {
		return nil, fmt.Errorf("%q, a value of type %s, cannot be encoded: %w", a.Name, a.Type, err)
	}
	return b, nil
}

// decode makes what has come the value of the program.
func (a *array) decode(value Codec) error {
	if err := value.UnmarshalBinary(a.came); err != nil {
		return fmt.Errorf("%q, a value of type %s, cannot be decoded from %d bytes: %w", a.Name, a.Type, len(a.came), err)
	}
	return nil
}

// errUncoded is that of a change which is rolled back as a source cannot encode a value.
var errUncoded = errors.New("the value of a source cannot be encoded")

// uncoded is an error of encoding, on its source.
type uncoded struct{ error }

func (e uncoded) Unwrap() []error { return []error{errUncoded, e.error} }

// The head of an encoding, from a source to each of its newcomers: how many bytes follow
// in further messages, of a step each, which are not there if that is 0 or noValue.
const (
	valueHead = 8
	noValue   = ^uint64(0) // it could not be encoded
)

// moveEncoded gives newcomers the encoded values that change. A source that cannot encode one
// tells its newcomers so, which decline; it gives no more.
func (a *adoption) moveEncoded() error {
	var reqs requests
	var bad error
	for i, x := range a.moves {
		if x.moved || !x.travels() {
			continue
		}
		if x.moved = true; a.old < 0 {
			if err := a.receive(x, i); err != nil {
				a.both.Revoke() // others may wait for this process
				return moveError(x, a, err)
			}
			continue
		}
		if err := a.give(x, i, &reqs); err != nil {
			bad = uncoded{a.m.refuse("Checkpoint", mpi.ErrType, err)}
			break
		}
	}
	if err := a.wait(reqs); bad == nil && err != nil {
		return fmt.Errorf("mam: encoded values, from %d to %d ranks: %w", a.times.NS, a.times.ND, err)
	}
	return bad
}

// give begins to send a value to the newcomers of this source, if it has any. The error is
// that of encoding.
func (a *adoption) give(x *move, tag int, reqs *requests) (err error) {
	var b, head []byte
	for d, source := range a.forNewcomers() {
		if source != a.both.Rank() {
			continue
		}
		if head == nil {
			n := noValue
			if b, err = x.encode(); err == nil {
				n = uint64(len(b))
			}
			head = binary.LittleEndian.AppendUint64(nil, n)
		}
		reqs.add(mpi.Isend(a.both, head, a.to[d], tag), int64(len(head)))
		_ = steps(int64(len(b)), func(lo, hi int64) error { // it cannot fail
			reqs.add(mpi.Isend(a.both, b[lo:hi], a.to[d], tag), hi-lo)
			return nil
		})
	}
	return err
}

// receive is the part of a newcomer.
func (a *adoption) receive(x *move, tag int) error {
	for d, source := range a.forNewcomers() {
		if d != a.new {
			continue
		}
		head := make([]byte, valueHead)
		st, err := mpi.Recv(a.both, head, source, tag)
		if err != nil {
			return err
		}
		n, err := parseHead(head[:st.Count])
		if err != nil {
			return fmt.Errorf("rank %d of %d: %w", source, a.both.Size(), err)
		}
		if x.fresh, x.block = a.m.fresh(n); n == 0 {
			return nil
		}
		err = steps(n, func(lo, hi int64) error {
			st, err := mpi.Recv(a.both, x.fresh[lo:hi], source, tag)
			if err == nil && int64(st.Count) != hi-lo {
				err = fmt.Errorf("rank %d of %d: an encoding of %d bytes, %d were told", source, a.both.Size(), lo+int64(st.Count), n)
			}
			a.told(int(hi - lo))
			return err
		})
		if err != nil {
			return err
		}
		x.from += n
	}
	return nil
}

// parseHead is how long the encoding is of which another process has sent the head.
func parseHead(head []byte) (int64, error) {
	if len(head) != valueHead {
		return 0, fmt.Errorf("a head of %d bytes, not %d", len(head), valueHead)
	}
	switch n := binary.LittleEndian.Uint64(head); {
	case n == noValue:
		return 0, errUncoded
	case n > mostValue:
		return 0, fmt.Errorf("an encoding of %d bytes, at most %d allowed", n, mostValue)
	default:
		return int64(n), nil
	}
}
