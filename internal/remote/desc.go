// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/wire"
	"gompi/transport"
)

// DescBytes is the size of a Desc.
const DescBytes = 128

// Desc is what another process needs to know of a region: it may travel and be
// kept like any other bytes. Numbers are little-endian:
//
//	  0 version  1 domain  2 flags  3 phase  4..7 zero
//	  8 owner's job, 16 serial (uint32), 20 handle (uint32), 24 nonce
//	 32 bytes
//	 40 key, 48 and 56 proof                       if exposed
//	 64 place, 72 bytes there, 80 offset in them,
//	 88 holder's job, 96 serial (uint32)           if shared
//	100..103 zero
//	104 place of the control block
type Desc [DescBytes]byte

const descVersion = 1

const _ = uint(DescBytes - 104 - placeBytes)

const (
	flagExposed = 1 << iota
	flagShared
	flagKept // what is shared stays mapped
	allFlags = flagExposed | flagShared | flagKept
)

// description is a Desc taken apart.
type description struct {
	domain domain
	phase  uint8 // the address of the first byte, modulo phases
	flags  uint8
	proc   wire.ProcID
	handle uint32
	nonce  uint64
	bytes  int64

	key   uint64
	proof [2]uint64

	// The whole that the region is part of, as its process has shared it.
	holder wire.ProcID
	place  uint64
	total  int64
	off    int64

	control place
}

func (d *description) encode() (b Desc) {
	le := binary.LittleEndian
	b[0], b[1], b[2], b[3] = descVersion, byte(d.domain), d.flags, d.phase
	le.PutUint64(b[8:], uint64(d.proc.Job))
	le.PutUint32(b[16:], d.proc.Serial)
	le.PutUint32(b[20:], d.handle)
	le.PutUint64(b[24:], d.nonce)
	le.PutUint64(b[32:], uint64(d.bytes))
	le.PutUint64(b[40:], d.key)
	le.PutUint64(b[48:], d.proof[0])
	le.PutUint64(b[56:], d.proof[1])
	le.PutUint64(b[64:], d.place)
	le.PutUint64(b[72:], uint64(d.total))
	le.PutUint64(b[80:], uint64(d.off))
	le.PutUint64(b[88:], uint64(d.holder.Job))
	le.PutUint32(b[96:], d.holder.Serial)
	d.control.put(b[104:])
	return b
}

// decode checks all that can be known without the owner.
func (b *Desc) decode() (d description, err error) {
	if b[0] != descVersion {
		return d, fmt.Errorf("%w: description of version %d, want %d", transport.ErrProtocol, b[0], descVersion)
	}
	le := binary.LittleEndian
	d = description{
		domain: domain(b[1]), flags: b[2], phase: b[3],
		proc:    wire.ProcID{Job: wire.JobID(le.Uint64(b[8:])), Serial: le.Uint32(b[16:])},
		handle:  le.Uint32(b[20:]),
		nonce:   le.Uint64(b[24:]),
		bytes:   int64(le.Uint64(b[32:])),
		key:     le.Uint64(b[40:]),
		proof:   [2]uint64{le.Uint64(b[48:]), le.Uint64(b[56:])},
		place:   le.Uint64(b[64:]),
		total:   int64(le.Uint64(b[72:])),
		off:     int64(le.Uint64(b[80:])),
		holder:  wire.ProcID{Job: wire.JobID(le.Uint64(b[88:])), Serial: le.Uint32(b[96:])},
		control: getPlace(b[104:]),
	}
	switch {
	case d.domain != domainCPU && d.domain != domainGuard, d.flags&^allFlags != 0, d.phase >= phases, d.bytes < 0:
		err = fmt.Errorf("%w: description of domain %d, flags %#x, phase %d, %d bytes", transport.ErrProtocol,
			d.domain, d.flags, d.phase, d.bytes)
	case d.flags&flagShared != 0 && (d.total <= 0 || d.off < 0 || d.off > d.total-d.bytes):
		err = fmt.Errorf("%w: %d bytes at %d of shared memory of %d", transport.ErrProtocol, d.bytes, d.off, d.total)
	}
	return d, err
}
