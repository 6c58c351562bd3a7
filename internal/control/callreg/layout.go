// SPDX-License-Identifier: Apache-2.0

package callreg

import "gompi/internal/base/wire"

// The layout; the package comment has a drawing. A change of any of these changes wire.Protocol.
const (
	version = wire.Protocol
	magic   = 0x6c6c6f6376706d67 // "gmpvcoll" little endian

	headBytes   = 256
	offCounters = 128 // Counters, alone on their cache lines
	slotBytes   = 256
	slotWords   = slotBytes / 8

	// Slots is the number of calls that a Registry can hold: one word of bits.
	Slots = 63

	// Bytes is the size of the memory; it equals segment.CallRegistryBytes.
	Bytes = headBytes + Slots*slotBytes
)

// Words of a slot.
const (
	wSeq     = 0
	wState   = 1
	wCtxJob  = 2
	wCtx     = 3
	wRank    = 4
	wPeerJob = 5
	wPeer    = 6
	wTag     = 7
	wBytes   = 8
	wSince   = 9
	wOp      = 10
	wCaller  = 13
	wHoldJob = 28
	wHold    = 29
	wUnused  = 30
)

const inUse = 1
