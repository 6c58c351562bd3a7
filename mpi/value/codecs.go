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
	// formPrimed: {length of the primer (uvarint), the primer, the value}. The
	// primer defines types. A decoder that has read it once reads values only,
	// which takes a tenth of the time.
	formPrimed
	// formNumbers: {kind of number, 6 bytes of nothing, the numbers}.
	formNumbers
	// formPlain: {shape, the value}, see plain.go.
	formPlain
)

// Bounds of what a process keeps: types that it sends, primers that others have
// sent it, and coders of each. One that has seen a long value holds as much
// memory, and is not kept.
const (
	maxTypes      = 64
	maxPrimer     = 4 << 10 // bytes
	maxSamples    = 512     // bytes, of a primer with samples
	maxOperations = 1 << 10 // that gob makes of a primer
	maxCoders     = 2
	maxKept       = 64 << 10 // bytes of a value
)

// codecs are what a process has learned about the types of values.
type codecs struct {
	once   sync.Once // makes the shapes
	shapes *shapes

	mu       sync.Mutex // guards the rest
	encoders map[reflect.Type]*encoders
	decoders map[decoderKey][]*decoder // that nobody uses
}

// codecsKey is that of the codecs of a process.
type codecsKey struct{}

// codecsOf is what the process of a communicator keeps.
func codecsOf(c *mpi.Comm) *codecs {
	if c == nil {
		return new(codecs) // the call ends with an error
	}
	return c.Process().Core().Process().Keep(codecsKey{}, func() any { return new(codecs) }).(*codecs)
}

// plain is the list of plain types.
func (cs *codecs) plain() *shapes {
	cs.once.Do(func() { cs.shapes = newShapes() })
	return cs.shapes
}

// encoders are those of one type.
type encoders struct {
	number  byte  // kind of the elements of a slice of numbers, else 0
	shape   shape // of a type whose values may be plain
	samples bool  // values may have others behind interfaces, which define types
	free    []*encoder
}

// encoder is a gob encoder, and what it has written that decoders have to read:
// the definitions, or if those may be in values, all that defined something.
type encoder struct {
	enc    *gob.Encoder
	primer []byte
	w      walker // what a decoder of samples knows
	out    []byte
	last   int // where the last message began
	writes int // messages
}

func (e *encoder) Write(b []byte) (int, error) {
	e.writes, e.last = e.writes+1, len(e.out)
	e.out = append(e.out, b...)
	return len(b), nil
}

// decoderKey: what is decoded, after which primer.
type decoderKey struct {
	into   reflect.Type
	primer string
}

// decoder is a gob decoder that has read a primer, and the walker that has.
type decoder struct {
	dec *gob.Decoder
	w   walker
	in  bytes.Reader
}

// encode encodes what v points to.
func (cs *codecs) encode(v any) (b []byte, err error) {
	defer catch(&err)
	t := reflect.TypeOf(v).Elem()
	es := cs.of(t)
	switch {
	case es.number != 0:
		b = appendNumbers([]byte{formNumbers, es.number, 7: 0}, v)
	case es.shape != nil:
		var plain bool
		if b, plain, err = cs.plain().encodePlain(es.shape, v); !plain && err == nil {
			b, err = cs.encodeGob(es, v, t)
		}
	default:
		b, err = cs.encodeGob(es, v, t)
	}
	if err == nil && len(b) > MaxBytes {
		return nil, fmt.Errorf("the encoding has %d bytes, at most %d can be sent", len(b), MaxBytes)
	}
	return b, err
}

// encodeGob encodes what gob has to.
func (cs *codecs) encodeGob(es *encoders, v any, t reflect.Type) (b []byte, err error) {
	e := cs.encoder(es)
	if e == nil {
		b, e, err = es.first(v, t)
		cs.putEncoder(es, e, b)
		return b, err
	}
	b, keep, err := es.encode(e, v, t)
	if keep {
		cs.putEncoder(es, e, b)
	}
	return b, err
}

// of finds the encoders of a type.
func (cs *codecs) of(t reflect.Type) *encoders {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	es := cs.encoders[t]
	if es == nil {
		if len(cs.encoders) >= maxTypes || cs.encoders == nil {
			cs.encoders = map[reflect.Type]*encoders{}
		}
		es = &encoders{number: numbersOf(t), shape: cs.plain().of(t), samples: holdsInterface(t, map[reflect.Type]bool{})}
		cs.encoders[t] = es
	}
	return es
}

// encoder finds one that nobody uses, nil if there is none.
func (cs *codecs) encoder(es *encoders) *encoder {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	n := len(es.free)
	if n == 0 {
		return nil
	}
	e := es.free[n-1]
	es.free = es.free[:n-1]
	return e
}

// putEncoder keeps an encoder that has written b.
func (cs *codecs) putEncoder(es *encoders, e *encoder, b []byte) {
	if e == nil || len(b) > maxKept {
		return
	}
	e.out = nil
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(es.free) < maxCoders {
		es.free = append(es.free, e)
	}
}

// first encodes by a new encoder, which is nil if it cannot be kept.
func (es *encoders) first(v any, t reflect.Type) ([]byte, *encoder, error) {
	e := new(encoder)
	e.enc = gob.NewEncoder(e)
	if err := e.enc.Encode(v); err != nil {
		return nil, nil, err
	}
	if !es.samples {
		e.primer = bytes.Clone(e.out[:e.last])
		return primed(e.primer, e.out[e.last:]), e, nil
	}
	b := append([]byte{formStream}, e.out...)
	e.w.types = map[int32]*wireType{}
	e.primer = b[1:len(b):len(b)]
	if len(e.primer) > maxSamples || e.w.prime(e.primer, t) != 1 || e.w.err != nil || e.w.ops > maxOperations {
		return b, nil, nil
	}
	return b, e, nil
}

// encode encodes by an encoder that was used before, and tells whether to keep
// it. One that has failed, or panicked, is not used again.
func (es *encoders) encode(e *encoder, v any, t reflect.Type) (b []byte, keep bool, err error) {
	b = primed(e.primer, nil)
	n := len(b)
	e.out, e.writes = b, 0
	if err := e.enc.Encode(v); err != nil {
		return nil, false, err
	}
	b = e.out
	if !es.samples {
		return b, e.writes == 1, nil // it has defined nothing more
	}
	known, err := e.w.next(b[n:], t)
	if err != nil {
		return b, false, nil
	}
	if !known {
		e.primer = append(e.primer[:len(e.primer):len(e.primer)], b[n:]...)
	}
	return b, e.w.pos == len(b)-n && len(e.primer) <= maxSamples && e.w.ops <= maxOperations, nil
}

// primed is a message but for what of the value is missing.
func primed(primer, value []byte) []byte {
	b := make([]byte, 1, 1+binary.MaxVarintLen32+len(primer)+len(value)+64)
	b[0] = formPrimed
	b = binary.AppendUvarint(b, uint64(len(primer)))
	return append(append(b, primer...), value...)
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
			return fmt.Errorf("%d bytes: %d of them are said to be the primer", len(b), n)
		}
		return cs.decodePrimed(b[k:], int(n), v)
	case formNumbers:
		if len(b) < 7 {
			return fmt.Errorf("%d bytes are no numbers", len(b))
		}
		return setNumbers(b[7:], b[0], v)
	case formPlain:
		return cs.decodePlain(b, v)
	default:
		return fmt.Errorf("form %d of an encoding", form)
	}
}

// decodePlain decodes a plain value.
func (cs *codecs) decodePlain(b []byte, v any) error {
	s, t := cs.plain(), reflect.TypeOf(v).Elem()
	own := s.byType[t]
	if own == nil && t.Name() != "" {
		own = cs.of(t).shape
	}
	if err := s.decodePlain(b, own, v); err != nil {
		return fmt.Errorf("%d bytes: %w", len(b), err)
	}
	return nil
}

// decodePrimed decodes a value behind a primer of n bytes.
func (cs *codecs) decodePrimed(b []byte, n int, v any) error {
	t := reflect.TypeOf(v).Elem()
	primer, value := b[:n], b[n:]
	d, samples := cs.decoder(t, primer), 0
	if d != nil {
		d.in.Reset(value)
	} else {
		d = new(decoder)
		d.dec = gob.NewDecoder(&d.in)
		d.w.types = map[int32]*wireType{}
		if samples = d.w.prime(bytes.Clone(primer), t); d.w.err != nil {
			return fmt.Errorf("a primer of %d bytes: %w", n, d.w.err)
		}
		d.in.Reset(b) // with the value, as gob reads definitions only before one
	}
	known, err := d.w.next(value, t)
	if err != nil {
		return fmt.Errorf("%d bytes: %w", len(value), err)
	}
	for range samples {
		if err := d.dec.Decode(reflect.New(t).Interface()); err != nil {
			return fmt.Errorf("a primer of %d bytes: %w", n, err)
		}
	}
	if err := d.dec.Decode(v); err != nil {
		return fmt.Errorf("%d bytes: %w", len(value), err)
	}
	if d.in.Len() > 0 {
		return fmt.Errorf("%d of %d bytes follow the value", d.in.Len(), len(value))
	}
	if known && n <= maxPrimer && len(value) <= maxKept && d.w.ops <= maxOperations {
		cs.putDecoder(d, t, primer)
	}
	return nil
}

// decoder finds one for a type and a primer that nobody uses, nil if there is
// none.
func (cs *codecs) decoder(t reflect.Type, primer []byte) *decoder {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	key := decoderKey{t, string(primer)}
	free := cs.decoders[key]
	n := len(free)
	if n == 0 {
		return nil
	}
	d := free[n-1]
	cs.decoders[key] = free[:n-1]
	return d
}

// putDecoder keeps a decoder.
func (cs *codecs) putDecoder(d *decoder, t reflect.Type, primer []byte) {
	d.in.Reset(nil)
	d.w.b = nil
	cs.mu.Lock()
	defer cs.mu.Unlock()
	free, found := cs.decoders[decoderKey{t, string(primer)}]
	if len(free) >= maxCoders {
		return
	}
	if !found && len(cs.decoders) >= maxTypes || cs.decoders == nil {
		cs.decoders = map[decoderKey][]*decoder{}
	}
	cs.decoders[decoderKey{t, string(primer)}] = append(free, d)
}
