// SPDX-License-Identifier: Apache-2.0

package protocol

import "fmt"

// Message is the body of a frame. All messages are in this package. get accepts exactly what put
// writes.
type Message interface {
	kind() Kind
	put(e *enc)
	get(d *dec)
}

// Limits of fields that many messages share, in bytes where nothing else is said.
const (
	MaxName  = 1<<10 - 1 // the name of a set, with its scheme
	MaxText  = 4 << 10   // a text for people
	MaxArgs  = 1 << 20   // one argument of a command line
	MaxWords = 1 << 15   // arguments of a command line
	MaxSpawn = 1 << 16   // processes in one Spawn or AddJob
)

// KindOf returns the kind of frame that carries m.
func KindOf(m Message) Kind { return m.kind() }

// Encode returns the body of m; nil for nil, and for a message without a body. AppendFrame
// refuses a message with a field beyond its limit, Encode does not.
func Encode(m Message) []byte {
	if m == nil {
		return nil
	}
	var e enc
	m.put(&e)
	return e.b
}

// Decode reads a whole body into m, which may keep parts of it.
func Decode(m Message, body []byte) error {
	d := dec{b: body}
	m.get(&d)
	if err := d.end(); err != nil {
		return fmt.Errorf("%v: %w", m.kind(), err)
	}
	return nil
}

// Encoded is the body of a reply that was encoded before.
type Encoded []byte

func (Encoded) kind() Kind   { return KindReply }
func (m Encoded) put(e *enc) { e.b = append(e.b, m...) }
func (Encoded) get(d *dec)   { d.fail("an encoded body is not decoded into itself") }

// Empty is the message of kinds that have no body.
type Empty struct{ Kind Kind }

func (m *Empty) kind() Kind { return m.Kind }
func (*Empty) put(*enc)     {}
func (*Empty) get(*dec)     {}

// Clip returns the first n bytes of a text whose length others choose.
func Clip(s string, n int) string { return s[:min(len(s), n)] }

// Reuse empties a list so that it can be filled again. It gives up a long one, so that the list
// keeps no more memory than many steps need.
func Reuse[T any](list []T) []T {
	if cap(list) > 1<<10 {
		return nil
	}
	clear(list)
	return list[:0]
}
