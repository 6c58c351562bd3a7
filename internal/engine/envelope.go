// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"

	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
)

// kind is the lowest byte of the engine's word in a frame header. The header is
// the match key and that word:
//
//	        63           60                32 31                            0
//	word 0  | job of the process that made the context                      |
//	word 1  | serial of that process         | serial of the context        |
//	word 2  | class      | source rank       | tag                          |
//	word 3  | aux                            | elements 16 | flags 8 | kind 8 |
//
// Words 0 to 2 are match.Key, with source and tag exact. aux is the sender's
// request (flagSync, kindRTS and the answers to them), or the number of credit
// units that are returned. elements describes a message (elements.go) and is 0 in
// all other frames. The payload of each kind:
//
//	eager       the message
//	RTS         8 bytes of length, then the transport's bulk descriptor
//	pull        8 bytes: the number of bytes wanted
//	piece       a part of the message; the tag is its offset (low 31 bits)
//	credit      none; tag: envelope credit; flags: whether there is more
//	revoke      none
//	collFail    none; aux: 1 + the rank whose end is the reason, 0: another reason
//	frame       for the server of remote memory (internal/engine/remote)
//	the others  none
type kind uint8

const (
	kindEager    kind = iota + 1 // payload is the message
	kindRTS                      // payload: length, descriptor of a bulk offer
	kindAck                      // the synchronous message aux was matched
	kindRefuse                   // the offer aux was matched, its data is not wanted
	kindCancel                   // withdraw message aux if it is unmatched
	kindCancelOK                 // message aux was unmatched and is forgotten
	kindCancelNo                 // message aux was matched or has been delivered
	kindCredit                   // aux units of eager credit, tag units of envelope credit; flags in credit.go
	kindRevoke                   // the context is revoked; aux: the change that is the reason, 0: none
	kindCollFail                 // the source has given up the collective with this tag
	kindPull                     // send message aux as a stream; payload: how many bytes
	kindPiece                    // a piece of stream aux, at byte tag (its low 31 bits)
	kindFrame                    // for the server of remote memory
	kindAbsent                   // the source does not get the shared memory of the communicator
	numKinds
)

const (
	flagSync   = 1 << iota // an Ack is wanted; aux is the sender's request
	flagValue              // an encoded Go value, not elements
	flagReady              // the sender promises that the receive is posted
	flagStream             // of an RTS: no offer, the message can only be pulled
	flagMore               // of a frame: its next part follows
)

func word3(k kind, flags uint8, aux uint32) uint64 {
	return uint64(k) | uint64(flags)<<8 | uint64(aux)<<32
}

func header(key match.Key, k kind, flags uint8, aux uint32) wire.Header {
	return wire.Header{key.W0, key.W1, key.W2, word3(k, flags, aux)}
}

type envelope struct {
	key      match.Key
	kind     kind
	flags    uint8
	elements elements
	aux      uint32
}

// open decodes and checks a header that came from another process.
func open(h *wire.Header) (envelope, bool) {
	env := envelope{
		key:      match.Key{W0: h[0], W1: h[1], W2: h[2]},
		kind:     kind(h[3]),
		flags:    uint8(h[3] >> 8),
		elements: elements(h[3] >> 16),
		aux:      uint32(h[3] >> 32),
	}
	ok := env.kind != 0 && env.kind < numKinds && env.key.Exact() &&
		(env.elements == 0 || env.kind == kindEager || env.kind == kindRTS)
	return env, ok
}

// rtsLen is the length of a message's length: the payload of a pull, and of an RTS before
// the transport's descriptor.
const rtsLen = 8

func putLength(b []byte, n int64) { binary.LittleEndian.PutUint64(b, uint64(n)) }

func openRTS(p []byte) (length int64, desc []byte, ok bool) {
	if len(p) < rtsLen {
		return 0, nil, false
	}
	length = int64(binary.LittleEndian.Uint64(p))
	return length, p[rtsLen:], length >= 0 && length <= MaxBytes
}

// MaxBytes is the largest message. It is larger than an address space, because a datatype
// may name the same memory many times.
const MaxBytes = 1 << 47
