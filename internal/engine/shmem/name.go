// SPDX-License-Identifier: Apache-2.0

package shmem

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Sharing is what heap and cache need from an engine. Its methods are called without a
// lock.
type Sharing interface {
	Self() wire.ProcID
	Share(n int) (mem []byte, place uint64, err error)
	Unshare(mem []byte, place uint64)
	Join(p wire.ProcID, place uint64, n int) ([]byte, error)
	Leave(mem []byte)
}

// Name says where a block is, for processes that map it. A name from another process is not
// trusted.
type Name struct {
	Owner wire.ProcID
	// Place is the arena in the owner's transport, Total its length in bytes.
	Place uint64
	Total int64
	// Off and Bytes say where in the arena the block is.
	Off, Bytes int64
	// Generation differs from that of every other block at this offset; it is never 0.
	Generation uint32
	// Kept: the arena stays as long as its owner, and so does a mapping of it. Otherwise it
	// goes with the block.
	Kept bool
}

// privatePlace marks an arena that other processes cannot map.
const privatePlace = 1 << 63

// ErrPrivate is the error of mapping memory that is not shared.
var ErrPrivate = errors.New("memory is not shared")

// NameBytes is the length of an encoded name. It does not contain the owner.
const NameBytes = 36

// keptBit encodes Kept in the word of Total.
const keptBit = 1 << 63

// Put encodes a name without its owner.
func (n *Name) Put(b []byte) {
	total := uint64(n.Total)
	if n.Kept {
		total |= keptBit
	}
	le := binary.LittleEndian
	le.PutUint64(b, n.Place)
	le.PutUint64(b[8:], total)
	le.PutUint64(b[16:], uint64(n.Off))
	le.PutUint64(b[24:], uint64(n.Bytes))
	le.PutUint32(b[32:], n.Generation)
}

// GetName decodes a name of a block of owner.
func GetName(b []byte, owner wire.ProcID) Name {
	le := binary.LittleEndian
	total := le.Uint64(b[8:])
	return Name{
		Owner: owner, Place: le.Uint64(b), Total: int64(total &^ keptBit), Kept: total&keptBit != 0,
		Off: int64(le.Uint64(b[16:])), Bytes: int64(le.Uint64(b[24:])), Generation: le.Uint32(b[32:]),
	}
}

// Check refuses impossible names.
func (n *Name) Check() error {
	if n.Total <= 0 || n.Total != int64(int(n.Total)) || n.Off < 0 || n.Bytes < 0 || n.Bytes > n.Total || n.Off > n.Total-n.Bytes || n.Generation == 0 {
		return fmt.Errorf("process %v: %w: %d bytes at %d of shared memory of %d, generation %d", n.Owner, transport.ErrProtocol, n.Bytes, n.Off, n.Total, n.Generation)
	}
	return nil
}
