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

// Kind is the type of a frame.
type Kind uint8

// From a process.
const (
	KindHello       Kind = iota + 1 // first frame of a process; answer: KindWelcome or KindBye
	KindTool                        // first frame of a tool; answer: KindReply or KindBye
	KindContact                     // request
	KindAnnounce                    // one way
	KindWatch                       // one way
	KindLookup                      // request
	KindDefine                      // request
	KindPut                         // request
	KindGet                         // request
	KindFence                       // request
	KindSpawn                       // request
	KindAbort                       // request
	KindFinalize                    // request, or one way
	KindDead                        // one way
	KindStacks                      // one way
	KindCancel                      // one way: withdraws a request, which may still be answered
	KindList                        // request of a tool; answers: KindPart, ..., KindReply
	KindCollect                     // request of a tool; answers: KindPart, ..., KindReply
	KindCut                         // one way
	KindPing                        // one way; EvPing, or its answer from the head
	KindPong                        // one way; EvPong
	KindRelease                     // one way
	KindDelete                      // request
	KindCommon                      // request
	KindUncommon                    // one way
	KindSubmit                      // request
	KindAwait                       // request
	KindWithdraw                    // request
	KindUpdate                      // request
	KindFollow                      // request
	KindHanded                      // request
	KindDescribe                    // request
	KindNews                        // request
	KindAlgebra                     // request
	KindSetPut                      // request
	KindSetGet                      // request
	KindUnfollow                    // one way
	KindMain                        // request: this set is to be the main one
	KindReleased                    // one way: the layer holds the change back no longer
	KindReadied                     // one way: a newcomer is ready
	KindVoted                       // one way: for who has no page to vote on
	KindCompleted                   // one way: a vote for all
	KindForget                      // one way: of the operation nothing is wanted any more
	KindWord                        // one way
	KindResize                      // request of a tool; answers: KindPart, ..., KindReply
	KindOps                         // request of a tool; answers: KindPart, ..., KindReply
	KindSets                        // request of a tool; answers: KindPart, ..., KindReply
	KindIdle                        // one way: the end of the process, from here on, is in order
	KindBusy                        // one way: it takes part again
	KindHappen                      // request
	KindUndecided                   // one way; EvCommitted or EvUndone
	KindProvide                     // request
	KindPort                        // request
	KindMeet                        // request
	KindService                     // request
	KindSignal                      // request
	KindGiveBack                    // one way
	KindEnd                         // request: how a process ends that the sender has started
	KindAttach                      // request
	KindKin                         // request: whom the sender is attached to
	KindUsed                        // request of a tool; answers: KindPart, ..., KindReply
	KindAbroad                      // request
	KindReachable                   // one way
	KindForsake                     // one way: no communicator comes of this set, which was given to the sender and others together
	KindMemory                      // request
	KindLeaveMemory                 // one way
	KindProgress                    // one way: a newcomer comes nearer to its part of a change
	KindBreak                       // request of a tool: KindWithdraw, also of a change that was accepted; answers: KindPart, ..., KindReply
)

// From the agent.
const (
	KindWelcome Kind = iota + 96
	KindReply        // ends the request with the same id
	KindPart         // one piece of a tool's answer
	KindEvent
	KindBye // last frame: the agent closes the connection; text
)

// Between the head and an agent.
const (
	KindOrder Kind = iota + 128
	KindReport
	KindErrand // of the launcher's head
	KindSeen   // by the launcher's agent
)

// Between the heads of two jobs.
const (
	KindGreet Kind = iota + 192 // first frame of each; the answer to who has called may be KindBye
	KindNeighbor
)

// MaxBody is the longest body that any frame may have.
const MaxBody = 4 << 20

// BodyLimit is the longest body of a frame of this kind, in bytes; 0 for kinds
// that do not exist.
func (k Kind) BodyLimit() int {
	switch k {
	case KindHello, KindTool:
		return 64 + MaxVersion
	case KindContact, KindFinalize, KindDead, KindCancel, KindList, KindCollect, KindPing, KindPong, KindRelease, KindUncommon,
		KindAwait, KindWithdraw, KindHanded, KindDescribe, KindNews, KindUnfollow, KindMain, KindReleased, KindReadied, KindVoted, KindCompleted, KindForget, KindWord,
		KindEnd, KindKin, KindOps, KindSets, KindUsed, KindIdle, KindBusy, KindUndecided, KindProvide, KindAbroad, KindReachable, KindForsake, KindProgress, KindBreak:
		return 32
	case KindAnnounce, KindLookup, KindDelete, KindAbort, KindBye, KindCut:
		return 16 << 10
	case KindWatch, KindDefine, KindFence:
		return 4 + 24*MaxRanges
	case KindSignal, KindGiveBack:
		return 8 + 24*MaxRanges
	case KindAttach:
		return 8 + 48*MaxRanges
	case KindPort, KindGreet:
		return MaxName + MaxVersion + 64
	case KindMeet:
		return MaxName + 64 + 24*MaxRanges
	case KindService:
		return 2*MaxName + 64
	case KindCommon:
		return 64 + 4 + 24*MaxRanges
	case KindFollow:
		return 64
	case KindMemory, KindLeaveMemory:
		return MaxMemoryName + 64
	case KindResize:
		return MaxName + 64
	case KindUpdate:
		return MaxCOL + 64
	case KindSubmit:
		return MaxBody
	case KindAlgebra, KindSetGet, KindHappen:
		return MaxNames*(MaxName+16) + 64
	case KindPut, KindGet, KindSetPut:
		return MaxKey + MaxValue + 64
	case KindSpawn:
		return 2*MaxArgs + 48*MaxRanges
	case KindStacks:
		return 2*MaxReport + maxCalls*maxCall + 64
	case KindWelcome, KindReply, KindPart, KindEvent:
		return MaxBody
	case KindOrder, KindReport:
		return MaxBody + 64
	case KindErrand:
		return MaxBody
	case KindNeighbor:
		return MaxName + MaxText + MaxAddrs*(MaxAddr+4) + 24*MaxRanges + 128
	case KindSeen:
		return MaxChunk + MaxText + 64
	}
	return 0
}

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

// CheckNumber refuses a frame of a process that has joined if it is of a kind
// that only others send, or has no request number, or one too many.
func (f *Frame) CheckNumber() error {
	switch f.Kind {
	case KindAnnounce, KindWatch, KindDead, KindStacks, KindCancel, KindCut, KindPing, KindPong, KindRelease, KindUncommon,
		KindUnfollow, KindReleased, KindReadied, KindVoted, KindCompleted, KindForget, KindWord, KindIdle, KindBusy, KindUndecided, KindGiveBack, KindReachable, KindForsake, KindLeaveMemory, KindProgress:
		if f.ID != 0 {
			return fmt.Errorf("one-way frame of kind %d has the request number %d", f.Kind, f.ID)
		}
		return nil
	case KindFinalize:
		return nil
	case KindContact, KindLookup, KindDefine, KindPut, KindGet, KindDelete, KindFence, KindSpawn, KindAbort, KindCommon,
		KindSubmit, KindAwait, KindWithdraw, KindUpdate, KindFollow, KindHanded, KindDescribe, KindMain, KindNews, KindAlgebra, KindSetPut, KindSetGet, KindHappen, KindProvide, KindPort, KindMeet, KindService, KindSignal, KindEnd, KindAttach, KindKin, KindAbroad, KindMemory:
		if f.ID == 0 {
			return fmt.Errorf("request of kind %d has no number", f.Kind)
		}
		return nil
	}
	return fmt.Errorf("frame of kind %d does not belong here", f.Kind)
}

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
		return f, 0, fmt.Errorf("frame has unknown kind %d", f.Kind)
	case uint64(n) > uint64(limit):
		return f, 0, fmt.Errorf("frame of kind %d has %d bytes, at most %d allowed", f.Kind, n, limit)
	case f.FDs != 0 && f.FDs != FrameFDs && (f.FDs != MostFDs || f.Kind != KindWelcome):
		return f, 0, fmt.Errorf("frame of kind %d has %d descriptors", f.Kind, f.FDs)
	case b[offZero] != 0:
		return f, 0, fmt.Errorf("frame of kind %d has byte 7 = %d", f.Kind, b[offZero])
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
		return b, TooMany("a frame of kind %d would have %d bytes, at most %d allowed", m.kind(), n, limit)
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
