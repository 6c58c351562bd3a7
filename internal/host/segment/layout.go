// SPDX-License-Identifier: Apache-2.0

// Package segment creates and maps memory that the processes of a host share. Each process
// owns one segment: a memfd with its head page, its registry of blocking calls, and space
// for the rings of the shm transport. The agent creates it; the owner and its peers map it.
// It is sealed against a change of size, and memory in it is reserved before any process
// touches it. An arena is a memfd whose ranges the agent gives out. A Memory reserves the
// pages of both.
//
//	offset   bytes   what
//	0        4096    head page: magic, version, size, owner, then words of the
//	                 shm transport (HeadShm)
//	4096     16384   registry of blocking calls (package callreg)
//	20480    ...     shm transport: directory and rings
package segment

import "gompi/internal/base/wire"

// Offsets of the layout. A change of any of these changes wire.Protocol.
const (
	Version = wire.Protocol
	Magic   = 0x69706d6f672e7631 // "1v.gompi" little endian

	OffMagic   = 0  // uint64
	OffVersion = 8  // uint64
	OffSize    = 16 // uint64: bytes of address space in the file
	OffJob     = 24 // uint64: of the owner
	OffSerial  = 32 // uint32: of the owner

	// The bytes from HeadShm to CallRegistry belong to the shm transport.
	HeadShm = 64

	CallRegistry      = 4096
	CallRegistryBytes = 16384

	Rings = CallRegistry + CallRegistryBytes

	// InitialBytes are reserved when the segment is created. A process has at most 128 KiB
	// before its first message.
	InitialBytes = 64 << 10

	// SpanBytes is the address space of the file, which also holds the windows of remote
	// memory. Pages are reserved when they are given out. Under a limit on the size of
	// files (ulimit -f) the address space is that limit, which must be at least leastSpan.
	SpanBytes = 1 << 42
	leastSpan = 16 << 20
)
