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

// Codec is a value with its own encoding: mostly a pointer to a variable whose type has pointers,
// strings, slices or maps in it.
type Codec interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// maxValue is the longest encoding of a value.
const maxValue = 1 << 30 // bytes

// Encoded registers a value that is the same on all ranks, and travels in its own encoding: a
// newcomer gets it from one of the others. The module does not change the value of a source. All
// ranks register it.
//
// If the value is Variable, MarshalBinary is called in the Checkpoint that ends a change, on
// ranks that give it to a newcomer. The length may differ each time. If it fails, that Checkpoint
// returns the error, the change is rolled back, and all ranks may go on. If the value is
// Constant, MarshalBinary is called here, and the module keeps the encoding. Its length must be
// the same on all ranks. Marked is not allowed. An encoding has at most 1 GiB.
//
// On a newcomer UnmarshalBinary is called here. If it fails the error has the class mpi.ErrType,
// and the data can be registered again, with another decoder for that Go type. Everything else is
// as with Distributed. Local.
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
	if a.Mode == Constant && !m.finalized && m.named(name) == nil {
		b, err := a.encode()
		if err != nil {
			return m.refuse(op, mpi.ErrType, err)
		}
		constant, a.Rule.N = b, int64(len(b))
	}
	return m.register(op, a)
}

// encodedEachChange reports whether the data is encoded anew for each change.
func (e *entry) encodedEachChange() bool { return e.Encoded && e.Mode == Variable }

// encode returns the encoding of the value. As long as the program has not asked for a value that
// has come, it is the one that came.
func (a *array) encode() ([]byte, error) {
	if a.load == nil {
		return a.arrived, nil
	}
	b, err := a.value.MarshalBinary()
	if err == nil && len(b) > maxValue {
		err = fmt.Errorf("%d bytes, at most %d allowed", len(b), maxValue)
	}
	if err != nil {
		return nil, fmt.Errorf("%q, a value of type %s, cannot be encoded: %w", a.Name, a.Type, err)
	}
	return b, nil
}

// decode decodes what has come into the value of the program.
func (a *array) decode(value Codec) error {
	if err := value.UnmarshalBinary(a.arrived); err != nil {
		return fmt.Errorf("%q, a value of type %s, cannot be decoded from %d bytes: %w", a.Name, a.Type, len(a.arrived), err)
	}
	return nil
}

// errNotEncoded is the error of a change that is rolled back because a source cannot encode a
// value.
var errNotEncoded = errors.New("the value of a source cannot be encoded")

// encodeError is an error of encoding, on the source.
type encodeError struct{ error }

func (e encodeError) Unwrap() []error { return []error{errNotEncoded, e.error} }

// The header of an encoding, from a source to each of its newcomers, has the number of bytes that
// follow in further messages of a step each. With 0 and with noValue no message follows.
const (
	valueHeader = 8
	noValue     = ^uint64(0) // the value could not be encoded
)

// transferEncoded gives newcomers the encoded values of a list, under any method. A source that
// cannot encode a value tells its newcomers so, which decline the change; it sends no more.
func (rc *reconfiguration) transferEncoded(list []*transfer) error {
	var reqs requests
	var bad error
	for _, x := range list {
		if !x.encodedEachChange() {
			continue
		}
		if x.done = true; rc.old < 0 {
			if err := rc.receiveEncoded(x); err != nil {
				rc.merged.Revoke() // others may wait for this process
				return transferError(x, rc, err)
			}
			continue
		}
		if err := rc.sendEncoded(x, &reqs); err != nil {
			bad = encodeError{rc.m.refuse("Checkpoint", mpi.ErrType, err)}
			break
		}
	}
	if err := rc.wait(reqs); bad == nil && err != nil {
		return fmt.Errorf("mam: encoded values, from %d to %d ranks: %w", rc.times.NS, rc.times.ND, err)
	}
	return bad
}

// sendEncoded begins to send a value to the newcomers of this source, if it has any. Its error is
// that of encoding.
func (rc *reconfiguration) sendEncoded(x *transfer, reqs *requests) (err error) {
	var b, header []byte
	for d, source := range rc.newcomerSources() {
		if source != rc.merged.Rank() {
			continue
		}
		if header == nil {
			n := noValue
			if b, err = x.encode(); err == nil {
				n = uint64(len(b))
			}
			header = binary.LittleEndian.AppendUint64(nil, n)
		}
		reqs.add(mpi.Isend(rc.merged, header, rc.to[d], x.tag), int64(len(header)))
		_ = steps(int64(len(b)), func(lo, hi int64) error { // it cannot fail
			reqs.add(mpi.Isend(rc.merged, b[lo:hi], rc.to[d], x.tag), hi-lo)
			return nil
		})
	}
	return err
}

// receiveEncoded receives a value on a newcomer.
func (rc *reconfiguration) receiveEncoded(x *transfer) error {
	for d, source := range rc.newcomerSources() {
		if d != rc.new {
			continue
		}
		header := make([]byte, valueHeader)
		st, err := mpi.Recv(rc.merged, header, source, x.tag)
		if err != nil {
			return err
		}
		n, err := parseHeader(header[:st.Count])
		if err != nil {
			return fmt.Errorf("rank %d of %d: %w", source, rc.merged.Size(), err)
		}
		if x.target, x.block = rc.m.newMemory(n); n == 0 {
			return nil
		}
		err = steps(n, func(lo, hi int64) error {
			st, err := mpi.Recv(rc.merged, x.target[lo:hi], source, x.tag)
			if err == nil && int64(st.Count) != hi-lo {
				err = fmt.Errorf("rank %d of %d: an encoding of %d bytes, its header says %d", source, rc.merged.Size(), lo+int64(st.Count), n)
			}
			rc.report(int(hi - lo))
			return err
		})
		if err != nil {
			return err
		}
		x.received += n
	}
	return nil
}

// parseHeader returns the length of an encoding by the header that another process has sent.
func parseHeader(header []byte) (int64, error) {
	if len(header) != valueHeader {
		return 0, fmt.Errorf("a header of %d bytes, not %d", len(header), valueHeader)
	}
	switch n := binary.LittleEndian.Uint64(header); {
	case n == noValue:
		return 0, errNotEncoded
	case n > maxValue:
		return 0, fmt.Errorf("an encoding of %d bytes, at most %d allowed", n, maxValue)
	default:
		return int64(n), nil
	}
}
