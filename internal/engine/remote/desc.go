// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/engine/shmem"
	"gompi/transport"
)

// DescBytes is the size of a Desc. Keys of paths may use keysBytes of it.
const DescBytes = 128

// Desc is what another process needs to know of a region: it may travel and be
// kept like any other bytes. Numbers are little-endian:
//
//	 0 version  1 domain  2 phase  3 length of the keys
//	 4 handle (uint32)
//	 8 owner's job, 16 serial (uint32), 20 1 if it is live, 21..23 zero, 24 nonce
//	32 bytes
//	40 name of the control block, a block of the owner
//	76 keys of the paths, zero behind them
type Desc [DescBytes]byte

const (
	descVersion = 2

	descControl = 40
	descKeys    = descControl + shmem.NameBytes
)

// description is a decoded Desc.
type description struct {
	domain domain
	phase  uint8 // the address of the first byte, modulo phases
	proc   wire.ProcID
	handle uint32
	nonce  uint64
	bytes  int64
	live   bool // see PublishLive

	control shmem.Name
	keys    keys
}

func (d *description) encode() (b Desc) {
	le := binary.LittleEndian
	b[0], b[1], b[2], b[3] = descVersion, byte(d.domain), d.phase, d.keys.n
	le.PutUint32(b[4:], d.handle)
	le.PutUint64(b[8:], uint64(d.proc.Job))
	le.PutUint32(b[16:], d.proc.Serial)
	if d.live {
		b[20] = 1
	}
	le.PutUint64(b[24:], d.nonce)
	le.PutUint64(b[32:], uint64(d.bytes))
	d.control.Put(b[descControl:])
	copy(b[descKeys:], d.keys.all())
	return b
}

// decode checks everything that can be checked without the owner.
func (b *Desc) decode() (d description, err error) {
	if b[0] != descVersion {
		return d, fmt.Errorf("%w: description of version %d, want %d", transport.ErrProtocol, b[0], descVersion)
	}
	le := binary.LittleEndian
	d = description{
		domain: domain(b[1]), phase: b[2],
		handle: le.Uint32(b[4:]),
		proc:   wire.ProcID{Job: wire.JobID(le.Uint64(b[8:])), Serial: le.Uint32(b[16:])},
		nonce:  le.Uint64(b[24:]),
		bytes:  int64(le.Uint64(b[32:])),
		live:   b[20] == 1,
	}
	d.control = shmem.GetName(b[descControl:], d.proc)
	if d.domain != domainCPU && d.domain != domainGuard || d.phase >= phases || d.bytes < 0 {
		return d, fmt.Errorf("%w: description of domain %d, phase %d, %d bytes", transport.ErrProtocol, d.domain, d.phase, d.bytes)
	}
	if err = d.keys.set(b[3], b[descKeys:]); err != nil {
		return d, err
	}
	_, err = d.sharedName()
	return d, err
}
