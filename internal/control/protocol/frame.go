// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/wire"
)

// A frame, all numbers little endian:
//
//	offset  bytes  what
//	0       4      length of the body in bytes, at most the limit of the kind
//	4       1      version: wire.Protocol
//	5       1      kind
//	6       1      file descriptors that come with the frame: 0, 2 or 3
//	7       1      0
//	8       4      request: a number of the client's choice, not in use; its
//	               reply: the same; anything else: 0
//	12      ...    body
//
// The descriptors (segment, bell; twice an arena's) travel as one SCM_RIGHTS message
// on the frame's first byte. A welcome may have the file of an arena as a third.
const (
	FrameHead = 12

	OffLength  = 0
	offVersion = 4
	offKind    = 5
	offFDs     = 6
	offZero    = 7
	offID      = 8
)

// FrameFDs is how many descriptors a frame has, if it has any, and MostFDs a welcome.
const (
	FrameFDs = 2
	MostFDs  = 3
)

// Frame is one decoded frame head with its body.
type Frame struct {
	Kind Kind
	FDs  int
	ID   uint32
	Body []byte
}

// leastWeight is what a frame costs, however short it is.
const leastWeight = 16 << 10

// Weight is what a frame counts among those of a process that are on their way to
// the head, in bytes.
func (f *Frame) Weight() int { return max(leastWeight, FrameHead+len(f.Body)) }

// ParseHead reads a frame head of FrameHead bytes and returns the frame
// without its body, and the body's length. Of another protocol it is a VersionError.
func ParseHead(b []byte) (f Frame, body int, err error) {
	le := binary.LittleEndian
	if v := b[offVersion]; v != wire.Protocol {
		return f, 0, &VersionError{Protocol: int(v), Kind: Kind(b[offKind]), Bytes: int(le.Uint32(b[OffLength:]))}
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

// AppendFrame encodes m with its head. On an error, which is that m is longer than a frame
// of its kind may be, b is as it was.
func AppendFrame(b []byte, id uint32, fds int, m Message) ([]byte, error) {
	start := len(b)
	e := enc{append(b, make([]byte, FrameHead)...)}
	m.put(&e)
	n, limit := len(e.b)-start-FrameHead, m.kind().BodyLimit()
	if n > limit {
		return b, TooMany("%v frame would have %d bytes, at most %d allowed", m.kind(), n, limit)
	}
	h := e.b[start:]
	binary.LittleEndian.PutUint32(h[OffLength:], uint32(n))
	h[offVersion] = wire.Protocol
	h[offKind] = byte(m.kind())
	h[offFDs] = byte(fds)
	binary.LittleEndian.PutUint32(h[offID:], id)
	return e.b, nil
}

// ReplyFrame is the answer to a request. On an error that is too long, and the request is to
// be refused.
func ReplyFrame(id uint32, fds int, body Message) ([]byte, error) {
	return AppendFrame(nil, id, fds, &Reply{Body: Encode(body)})
}

// ShortFrame is a frame whose length nobody else has a say in: all of it is of a fixed length,
// or clipped.
func ShortFrame(id uint32, fds int, m Message) []byte {
	b, err := AppendFrame(nil, id, fds, m)
	if err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return b
}
