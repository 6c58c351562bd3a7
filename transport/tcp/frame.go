// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"encoding/binary"
	"fmt"
	"math"

	"gompi/internal/base/settings"
	"gompi/internal/base/wire"
	"gompi/transport"
)

// Every frame starts with this head. Numbers are little-endian:
//
//	offset  bytes  what
//	0       4      body: bytes that follow the head
//	4       1      kind
//	5       3      zero
//	8       8      seq: number of this frame in its direction, from 1
//	16      8      ack: seq of the last frame taken from the other direction
//	24      body
//
//	message   24  32  header words      56  body-32  payload
//	accept    24   8  offer id          32   8  receive id     40  8  bytes
//	data      24   8  receive id        32   8  offset         40  chunk
//	refuse    24   8  receive id
//	cut       24
const (
	offBody = 0
	offKind = 4
	offZero = 5
	offSeq  = 8
	offAck  = 16

	frameHead  = 24
	msgHead    = frameHead + wire.HeaderBytes
	dataHead   = frameHead + 16
	acceptSize = frameHead + 24
	refuseSize = frameHead + 8
	cutSize    = frameHead
)

// Limits on what a peer may send. They belong to the version of the protocol.
const (
	eagerLimit = settings.MaxTCPEager // payload of a message
	chunkLimit = settings.MaxTCPChunk // bytes in a data frame
)

type kind uint8

const (
	kindMsg    kind = iota + 1 // a message
	kindAccept                 // receiver to sender: start an offered transfer
	kindData                   // sender to receiver: a chunk of a transfer
	kindRefuse                 // sender to receiver: there is no such offer
	kindCut                    // the sender of the frame has cut the connection; no frame follows
)

// head is a decoded frame head.
type head struct {
	kind kind
	body int
	seq  uint64
	ack  uint64
}

// decodeHead reads the head at the front of b, which holds at least frameHead bytes. It checks
// everything that does not depend on the state of the connection: afterwards body is within the
// limits of its kind.
func decodeHead(b []byte) (head, error) {
	h := head{
		kind: kind(b[offKind]),
		seq:  binary.LittleEndian.Uint64(b[offSeq:]),
		ack:  binary.LittleEndian.Uint64(b[offAck:]),
	}
	body := binary.LittleEndian.Uint32(b[offBody:])
	if b[offZero]|b[offZero+1]|b[offZero+2] != 0 {
		return h, fmt.Errorf("%w: frame %d: reserved bytes are set", transport.ErrProtocol, h.seq)
	}
	var least, most uint32
	switch h.kind {
	case kindMsg:
		least, most = wire.HeaderBytes, wire.HeaderBytes+eagerLimit
	case kindAccept:
		least, most = acceptSize-frameHead, acceptSize-frameHead
	case kindData:
		least, most = dataHead-frameHead, dataHead-frameHead+chunkLimit
	case kindRefuse:
		least, most = refuseSize-frameHead, refuseSize-frameHead
	case kindCut:
	default:
		return h, fmt.Errorf("%w: frame %d: unknown kind %d", transport.ErrProtocol, h.seq, h.kind)
	}
	if body < least || body > most {
		return h, fmt.Errorf("%w: frame %d: %d bytes in a frame of kind %d, allowed are %d to %d",
			transport.ErrProtocol, h.seq, body, h.kind, least, most)
	}
	h.body = int(body)
	return h, nil
}

// putHead writes a frame head to the front of b.
func putHead(b []byte, h head) {
	_ = b[frameHead-1]
	binary.LittleEndian.PutUint32(b[offBody:], uint32(h.body))
	binary.LittleEndian.PutUint32(b[offKind:], uint32(h.kind)) // kind and the zero bytes
	binary.LittleEndian.PutUint64(b[offSeq:], h.seq)
	binary.LittleEndian.PutUint64(b[offAck:], h.ack)
}

func putHeader(b []byte, h *wire.Header) {
	_ = b[wire.HeaderBytes-1]
	binary.LittleEndian.PutUint64(b[0:], h[0])
	binary.LittleEndian.PutUint64(b[8:], h[1])
	binary.LittleEndian.PutUint64(b[16:], h[2])
	binary.LittleEndian.PutUint64(b[24:], h[3])
}

func getHeader(b []byte) wire.Header {
	_ = b[wire.HeaderBytes-1]
	return wire.Header{
		binary.LittleEndian.Uint64(b[0:]),
		binary.LittleEndian.Uint64(b[8:]),
		binary.LittleEndian.Uint64(b[16:]),
		binary.LittleEndian.Uint64(b[24:]),
	}
}

// Layout of the descriptor of a bulk offer, which the engine carries:
//
//	offset  bytes  what
//	0       4      magic
//	4       4      serial of the offering process
//	8       8      offer id
//	16      8      bytes offered
const (
	descBytes = 24
	descMagic = 0x31626367 // "gcb1"
)

type desc struct {
	serial uint32
	id     uint64
	bytes  int64
}

func putDesc(b []byte, d desc) {
	binary.LittleEndian.PutUint32(b[0:], descMagic)
	binary.LittleEndian.PutUint32(b[4:], d.serial)
	binary.LittleEndian.PutUint64(b[8:], d.id)
	binary.LittleEndian.PutUint64(b[16:], uint64(d.bytes))
}

func decodeDesc(b []byte) (desc, error) {
	if len(b) != descBytes {
		return desc{}, fmt.Errorf("%w: offer of %d bytes, expected %d", transport.ErrProtocol, len(b), descBytes)
	}
	if m := binary.LittleEndian.Uint32(b[0:]); m != descMagic {
		return desc{}, fmt.Errorf("%w: offer with magic %#x", transport.ErrProtocol, m)
	}
	n := binary.LittleEndian.Uint64(b[16:])
	if n > math.MaxInt64 {
		return desc{}, fmt.Errorf("%w: offer of %d bytes", transport.ErrProtocol, n)
	}
	return desc{binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:]), int64(n)}, nil
}
