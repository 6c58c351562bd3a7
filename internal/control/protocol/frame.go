// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/wire"
)

// A frame, with all numbers little endian:
//
//	offset  bytes  field
//	0       4      length of the body in bytes, at most the limit of the kind
//	4       1      version: wire.Protocol
//	5       1      kind
//	6       1      file descriptors that come with the frame: 0, 2 or 3
//	7       1      0
//	8       4      number of the request: one that the client chooses and does not use for
//	               another request; a reply has the same; other frames have 0
//	12      ...    body
//
// The descriptors are those of a segment and a bell, or twice that of an arena. A welcome may have
// the file of an arena as a third. They travel as one SCM_RIGHTS message on the frame's first
// byte.
const (
	FrameHead = 12 // bytes

	OffLength  = 0
	offVersion = 4
	offKind    = 5
	offFDs     = 6
	offZero    = 7
	offID      = 8
)

// FrameFDs is the number of descriptors of a frame that has some, and MostFDs that of a welcome
// with an arena.
const (
	FrameFDs = 2
	MostFDs  = 3
)

// Frame is a frame with a decoded head.
type Frame struct {
	Kind Kind
	FDs  int
	ID   uint32 // number of the request
	Body []byte
}

// leastWeight is the weight of a frame without a body.
const leastWeight = 16 << 10

// Weight returns what a frame counts among the frames of a process that are on their way to the
// head, in bytes.
func (f *Frame) Weight() int { return max(leastWeight, FrameHead+len(f.Body)) }

// ParseHead reads a frame head of FrameHead bytes. It returns the frame without its body, and the
// length of the body. A frame of another protocol is a *VersionError.
func ParseHead(b []byte) (f Frame, body int, err error) {
	le := binary.LittleEndian
	if v := b[offVersion]; v != wire.Protocol {
		return f, 0, &VersionError{
			Protocol: int(v),
			Kind:     Kind(b[offKind]),
			Bytes:    int(le.Uint32(b[OffLength:])),
		}
	}
	f = Frame{Kind: Kind(b[offKind]), FDs: int(b[offFDs]), ID: le.Uint32(b[offID:])}
	n, limit := le.Uint32(b[OffLength:]), f.Kind.BodyLimit()
	switch {
	case limit == 0:
		return f, 0, fmt.Errorf("frame has unknown kind %d", uint8(f.Kind))
	case uint64(n) > uint64(limit):
		return f, 0, fmt.Errorf("%v frame has %d bytes, at most %d allowed", f.Kind, n, limit)
	case f.FDs != 0 && f.FDs != FrameFDs && (f.FDs != MostFDs || f.Kind != KindWelcome):
		return f, 0, fmt.Errorf("%v frame has %d descriptors", f.Kind, f.FDs)
	case b[offZero] != 0:
		return f, 0, fmt.Errorf("%v frame has byte 7 = %d", f.Kind, b[offZero])
	}
	return f, int(n), nil
}

// AppendFrame appends the frame of m to b. It returns b unchanged and an ErrTooMany if m, or one
// of its fields, is longer than the receiver takes.
func AppendFrame(b []byte, id uint32, fds int, m Message) ([]byte, error) {
	start := len(b)
	e := enc{b: append(b, make([]byte, FrameHead)...)}
	m.put(&e)
	k := m.kind()
	n, limit := len(e.b)-start-FrameHead, k.BodyLimit()
	switch {
	case e.long != "":
		return b, TooMany("%v: %s", k, e.long)
	case n > limit:
		return b, TooMany("%v frame would have %d bytes, at most %d allowed", k, n, limit)
	}
	h := e.b[start:]
	binary.LittleEndian.PutUint32(h[OffLength:], uint32(n))
	h[offVersion] = wire.Protocol
	h[offKind] = byte(k)
	h[offFDs] = byte(fds)
	binary.LittleEndian.PutUint32(h[offID:], id)
	return e.b, nil
}

// ReplyFrame returns the frame that answers a request with a body, which may be nil. On an error,
// that of AppendFrame, the caller refuses the request.
func ReplyFrame(id uint32, fds int, body Message) ([]byte, error) {
	var e enc
	if body != nil {
		body.put(&e)
	}
	if e.long != "" {
		return nil, TooMany("answer: %s", e.long)
	}
	return AppendFrame(nil, id, fds, &Reply{Body: e.b})
}

// ShortFrame returns the frame of a message whose length no other process chooses: all its fields
// have a fixed length, are clipped, or came with the same limit.
func ShortFrame(id uint32, fds int, m Message) []byte {
	b, err := AppendFrame(nil, id, fds, m)
	if err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return b
}
