// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/binary"
	"fmt"
)

// A frame, all numbers little endian:
//
//	offset  bytes  what
//	0       4      length of the body in bytes, at most the limit of the kind
//	4       1      version
//	5       1      kind
//	6       1      file descriptors that come with the frame: 0 or 2
//	7       1      0
//	8       4      request: a number of the client's choice, not in use; its
//	               reply: the same; anything else: 0
//	12      ...    body
//
// The two descriptors (segment, bell; twice that of common memory) travel as one
// SCM_RIGHTS message on the frame's first byte.
const (
	frameVersion = 2
	frameHead    = 12

	offLength  = 0
	offVersion = 4
	offKind    = 5
	offFDs     = 6
	offZero    = 7
	offID      = 8
)

// frameFDs is the only number of descriptors a frame has, if it has any.
const frameFDs = 2

// kind is the type of a frame.
type kind uint8

// From a process.
const (
	kHello    kind = iota + 1 // first frame of a process; answer: kWelcome or kBye
	kTool                     // first frame of a tool; answer: kReply or kBye
	kContact                  // request
	kAnnounce                 // one way
	kWatch                    // one way
	kLookup                   // request
	kDefine                   // request
	kPut                      // request
	kGet                      // request
	kFence                    // request
	kSpawn                    // request
	kAbort                    // request
	kFinalize                 // request
	kDead                     // one way
	kStacks                   // one way
	kCancel                   // one way: withdraws a request, which may still be answered
	kList                     // request of a tool; answers: kPart, ..., kReply
	kCollect                  // request of a tool; answers: kPart, ..., kReply
	kCut                      // one way
	kPing                     // one way; EvPing, or its answer from the head
	kPong                     // one way; EvPong
	kRelease                  // one way
	kDelete                   // request
	kCommon                   // request
	kUncommon                 // one way
)

// From the agent.
const (
	kWelcome kind = iota + 64
	kReply        // ends the request with the same id
	kPart         // one piece of a tool's answer
	kEvent
	kBye // last frame: the agent closes the connection; text
)

// Between the head and an agent.
const (
	kOrder kind = iota + 128
	kReport
)

// maxBody is the longest body that any frame may have.
const maxBody = 4 << 20

// bodyLimit is the longest body of a frame of this kind, in bytes; 0 for kinds
// that do not exist.
func (k kind) bodyLimit() int {
	switch k {
	case kHello, kTool:
		return 64
	case kContact, kFinalize, kDead, kCancel, kList, kCollect, kPing, kPong, kRelease:
		return 32
	case kAnnounce, kLookup, kDelete, kAbort, kBye, kCut:
		return 16 << 10
	case kWatch, kDefine, kFence:
		return 4 + 24*maxRanges
	case kCommon, kUncommon:
		return 64 + 4 + 24*maxRanges
	case kPut, kGet:
		return MaxKey + MaxValue + 64
	case kSpawn:
		return 2 * MaxArgs
	case kStacks:
		return 2*MaxReport + 64
	case kWelcome, kReply, kPart, kEvent:
		return maxBody
	case kOrder, kReport:
		return maxBody + 64
	}
	return 0
}

// frame is one decoded frame head with its body.
type frame struct {
	kind kind
	fds  int
	id   uint32
	body []byte
}

// checkNumber refuses a frame of a process that has joined if it is of a kind
// that only others send, or has no request number, or one too many.
func (f *frame) checkNumber() error {
	switch f.kind {
	case kAnnounce, kWatch, kDead, kStacks, kCancel, kCut, kPing, kPong, kRelease, kUncommon:
		if f.id != 0 {
			return fmt.Errorf("one-way frame of kind %d has the request number %d", f.kind, f.id)
		}
		return nil
	case kContact, kLookup, kDefine, kPut, kGet, kDelete, kFence, kSpawn, kAbort, kFinalize, kCommon:
		if f.id == 0 {
			return fmt.Errorf("request of kind %d has no number", f.kind)
		}
		return nil
	}
	return fmt.Errorf("frame of kind %d does not belong here", f.kind)
}

// parseHead reads a frame head of frameHead bytes and returns the frame
// without its body, and the body's length.
func parseHead(b []byte) (f frame, body int, err error) {
	le := binary.LittleEndian
	if v := b[offVersion]; v != frameVersion {
		return f, 0, fmt.Errorf("frame has version %d, not %d", v, frameVersion)
	}
	f = frame{kind: kind(b[offKind]), fds: int(b[offFDs]), id: le.Uint32(b[offID:])}
	n, limit := le.Uint32(b[offLength:]), f.kind.bodyLimit()
	switch {
	case limit == 0:
		return f, 0, fmt.Errorf("frame has unknown kind %d", f.kind)
	case uint64(n) > uint64(limit):
		return f, 0, fmt.Errorf("frame of kind %d has %d bytes, at most %d allowed", f.kind, n, limit)
	case f.fds != 0 && f.fds != frameFDs:
		return f, 0, fmt.Errorf("frame of kind %d has %d descriptors", f.kind, f.fds)
	case b[offZero] != 0:
		return f, 0, fmt.Errorf("frame of kind %d has byte 7 = %d", f.kind, b[offZero])
	}
	return f, int(n), nil
}

// appendFrame encodes m with its head.
func appendFrame(b []byte, id uint32, fds int, m message) []byte {
	start := len(b)
	b = append(b, make([]byte, frameHead)...)
	e := enc{b}
	m.put(&e)
	b = e.b
	n := len(b) - start - frameHead
	if limit := m.kind().bodyLimit(); n > limit {
		panic(fmt.Sprintf("gompi: BUG: frame of kind %d has %d bytes, at most %d allowed", m.kind(), n, limit))
	}
	h := b[start:]
	binary.LittleEndian.PutUint32(h[offLength:], uint32(n))
	h[offVersion] = frameVersion
	h[offKind] = byte(m.kind())
	h[offFDs] = byte(fds)
	binary.LittleEndian.PutUint32(h[offID:], id)
	return b
}
