// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"gompi/mpi"
)

// The forms of an encoding, by its first byte.
const (
	// formStream: a stream of gob that stands for itself.
	formStream = iota
	// formPrimed: {length of the definitions of types (uvarint), those, the
	// value}. A decoder that has read the definitions once reads values only,
	// which takes a tenth of the time.
	formPrimed
	// formNumbers: {kind of number, 6 bytes of nothing, the numbers}.
	formNumbers
)

// Bounds of what a process keeps: types that it sends, definitions that others
// have sent it, and coders of each. One that has seen a long value holds as much
// memory, and is not kept.
const (
	maxTypes       = 64
	maxDefinitions = 4 << 10 // bytes, of one type
	maxOperations  = 1 << 10 // that gob makes of them
	maxCoders      = 2
	maxKept        = 64 << 10 // bytes of a value
)

// codecs are what a process has learned about the types of values.
type codecs struct {
	mu       sync.Mutex // guards the rest
	encoders map[reflect.Type]*encoders
	decoders map[decoderKey]*decoders
}

// codecsKey is that of the codecs of a process.
type codecsKey struct{}

// codecsOf is what the process of a communicator keeps.
func codecsOf(c *mpi.Comm) *codecs {
	if c == nil {
		return new(codecs) // the call ends with an error
	}
	return c.Process().Keep(codecsKey{}, func() any { return new(codecs) }).(*codecs)
}

// encoders are those of one type.
type encoders struct {
	stream bool // definitions may come in the middle of values, with what is in an interface
	number byte // kind of the elements of a slice of numbers, else 0
	free   []*encoder
}

// encoder is a gob encoder that has written its type.
type encoder struct {
	enc         *gob.Encoder
	definitions []byte
	out         []byte
	writes      int // a message each
	last        int // where the last one began
}

func (e *encoder) Write(b []byte) (int, error) {
	e.writes, e.last = e.writes+1, len(e.out)
	e.out = append(e.out, b...)
	return len(b), nil
}

// decoderKey: what is decoded, by which definitions.
type decoderKey struct {
	into        reflect.Type
	definitions string
}

// decoders are those of one key.
type decoders struct {
	stream bool // not to be kept
	free   []*decoder
}

// decoder is a gob decoder that has read definitions, and the walker that has.
type decoder struct {
	dec *gob.Decoder
	w   walker
	in  bytes.Reader
}

// encode encodes what v points to.
func (cs *codecs) encode(v any) (b []byte, err error) {
	defer catch(&err)
	t := reflect.TypeOf(v).Elem()
	es, e := cs.encoder(t)
	switch {
	case es.number != 0:
		b, err = appendNumbers([]byte{formNumbers, es.number, 7: 0}, v), nil
	case es.stream:
		b, err = encodeStream(v)
	default:
		b, err = es.encode(cs, e, v)
	}
	if err == nil && len(b) > MaxBytes {
		return nil, fmt.Errorf("the encoding has %d bytes, at most %d can be sent", len(b), MaxBytes)
	}
	return b, err
}

func encodeStream(v any) ([]byte, error) {
	var w bytes.Buffer
	w.WriteByte(formStream)
	if err := gob.NewEncoder(&w).Encode(v); err != nil {
		return nil, err
	}
	return w.Bytes(), nil
}

// encoder finds those of a type, and one that nobody uses, nil if there is none.
func (cs *codecs) encoder(t reflect.Type) (*encoders, *encoder) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	es := cs.encoders[t]
	if es == nil {
		if len(cs.encoders) >= maxTypes || cs.encoders == nil {
			cs.encoders = map[reflect.Type]*encoders{}
		}
		es = &encoders{number: numbersOf(t), stream: holdsInterface(t, map[reflect.Type]bool{})}
		cs.encoders[t] = es
	}
	if n := len(es.free); n > 0 {
		e := es.free[n-1]
		es.free = es.free[:n-1]
		return es, e
	}
	return es, nil
}

// encode encodes with e, or if that is nil with a new one. An encoder that has
// failed, or panicked, is not used again.
func (es *encoders) encode(cs *codecs, e *encoder, v any) ([]byte, error) {
	if e == nil {
		e = new(encoder)
		e.enc = gob.NewEncoder(e)
		if err := e.enc.Encode(v); err != nil {
			return nil, err
		}
		value := e.out[e.last:]
		e.definitions = binary.AppendUvarint([]byte{formPrimed}, uint64(e.last))
		e.definitions = append(e.definitions, e.out[:e.last]...)
		e.out = append(e.definitions[:len(e.definitions):len(e.definitions)], value...)
	} else {
		e.out, e.writes = append(make([]byte, 0, len(e.definitions)+64), e.definitions...), 0
		if err := e.enc.Encode(v); err != nil {
			return nil, err
		}
		if e.writes != 1 {
			return encodeStream(v)
		}
	}
	b := e.out
	e.out = nil
	if len(b) <= maxKept {
		cs.mu.Lock()
		if len(es.free) < maxCoders {
			es.free = append(es.free, e)
		}
		cs.mu.Unlock()
	}
	return b, nil
}

// decode decodes b, which another process has encoded, to where v points.
func (cs *codecs) decode(b []byte, v any) (err error) {
	defer catch(&err)
	if len(b) == 0 {
		return errors.New("no bytes")
	}
	switch form, b := b[0], b[1:]; form {
	case formStream:
		return decode(b, v)
	case formPrimed:
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return fmt.Errorf("%d bytes: %d of them are said to define types", len(b), n)
		}
		return cs.decodePrimed(b[k:], int(n), v)
	case formNumbers:
		if len(b) < 7 {
			return fmt.Errorf("%d bytes are no numbers", len(b))
		}
		return setNumbers(b[7:], b[0], v)
	default:
		return fmt.Errorf("form %d of an encoding", form)
	}
}

// decodePrimed decodes a value behind n bytes of definitions.
func (cs *codecs) decodePrimed(b []byte, n int, v any) error {
	t := reflect.TypeOf(v).Elem()
	ds, d, stream := cs.decoder(t, b[:n])
	if stream {
		return decode(b, v)
	}
	value := b[n:]
	if d == nil {
		d = new(decoder)
		definitions := bytes.Clone(b[:n])
		d.w.types = map[int32]*wireType{}
		if d.w.definitions(definitions); d.w.err != nil {
			return fmt.Errorf("%d bytes of definitions: %w", n, d.w.err)
		}
		for id := range d.w.types {
			d.w.compile(id)
		}
		if d.w.err != nil || d.w.ops > maxOperations || d.w.interfaces {
			cs.mu.Lock()
			ds.stream = true
			cs.mu.Unlock()
			return decode(b, v)
		}
		d.dec = gob.NewDecoder(&d.in)
		d.in.Reset(b)
	} else {
		d.in.Reset(value)
	}
	if err := d.w.one(value, t); err != nil {
		return fmt.Errorf("%d bytes: %w", len(value), err)
	}
	if err := d.dec.Decode(v); err != nil {
		return fmt.Errorf("%d bytes: %w", len(value), err)
	}
	if d.in.Len() > 0 {
		return fmt.Errorf("%d of %d bytes follow the value", d.in.Len(), len(value))
	}
	d.in.Reset(nil)
	d.w.b = nil
	if len(value) <= maxKept {
		cs.mu.Lock()
		if len(ds.free) < maxCoders {
			ds.free = append(ds.free, d)
		}
		cs.mu.Unlock()
	}
	return nil
}

// decoder finds those for a type and definitions, and one that nobody uses, nil
// if there is none. stream: they are not kept.
func (cs *codecs) decoder(t reflect.Type, definitions []byte) (ds *decoders, d *decoder, stream bool) {
	if len(definitions) > maxDefinitions {
		return nil, nil, true
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	ds = cs.decoders[decoderKey{t, string(definitions)}]
	if ds == nil {
		if len(cs.decoders) >= maxTypes || cs.decoders == nil {
			cs.decoders = map[decoderKey]*decoders{}
		}
		ds = new(decoders)
		cs.decoders[decoderKey{t, string(definitions)}] = ds
	}
	if n := len(ds.free); n > 0 {
		d = ds.free[n-1]
		ds.free = ds.free[:n-1]
		return ds, d, false
	}
	return ds, nil, ds.stream
}
