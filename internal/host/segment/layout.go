// SPDX-License-Identifier: Apache-2.0

// Package segment makes and maps the one memfd that each process of a host
// owns: its head page, its roll call and the space from which the shm
// transport gives out rings. The agent creates it, the owner and its peers
// map it; it is sealed against shrinking, and memory in it is reserved before
// anyone touches it.
//
//	offset   bytes   what
//	0        4096    head page: magic, version, size, owner, then words of the
//	                 shm transport (HeadShm)
//	4096     16384   roll call (package rollcall)
//	20480    ...     shm transport: directory and rings
package segment

import "gompi/internal/base/wire"

// The layout. wire.Protocol changes with any of these.
const (
	Version = wire.Protocol
	Magic   = 0x69706d6f672e7631 // "1v.gompi" little endian

	OffMagic   = 0  // uint64
	OffVersion = 8  // uint64
	OffSize    = 16 // uint64: bytes of address space in the file
	OffJob     = 24 // uint64: of the owner
	OffSerial  = 32 // uint32: of the owner

	// HeadShm..RollCall belongs to the shm transport.
	HeadShm = 64

	CallRegistry      = 4096
	CallRegistryBytes = 16384

	Rings = CallRegistry + CallRegistryBytes

	// InitialBytes are reserved when the segment is made: at most 128 KiB
	// before a process's first message.
	InitialBytes = 64 << 10

	// SpanBytes is the address space of the file; pages are reserved as they
	// are given out. It holds the windows of remote memory, too. Under a limit
	// on the size of files (ulimit -f) it is that limit, if not less than
	// leastSpan.
	SpanBytes = 1 << 42
	leastSpan = 16 << 20
)
