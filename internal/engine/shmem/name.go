// SPDX-License-Identifier: Apache-2.0

package shmem

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Sharing is what heap and cache need of an engine; no method is called with a
// lock held.
type Sharing interface {
	Self() wire.ProcID
	Share(n int) (mem []byte, place uint64, err error)
	Unshare(mem []byte, place uint64)
	Join(p wire.ProcID, place uint64, n int) ([]byte, error)
	Leave(mem []byte)
}

// Name says where a block is, to those who map it. One that came from another
// process is not believed.
type Name struct {
	Owner wire.ProcID
	// Place is what the owner's transport calls the arena, Total its bytes.
	Place uint64
	Total int64
	// Off and Bytes are where in the arena the block is.
	Off, Bytes int64
	// Generation is a number that no other block at this offset has, never 0.
	Generation uint32
	// Kept: the arena stays as long as its owner does, and so does a mapping of
	// it; else it goes with the block.
	Kept bool
}

// privatePlace marks the number of an arena that nobody else can map.
const privatePlace = 1 << 63

// ErrPrivate is the error of mapping what is not shared.
var ErrPrivate = errors.New("memory is not shared")

// NameBytes is the length of a name among other bytes, which say who the owner is.
const NameBytes = 36

// keptBit is set in what is written of Total.
const keptBit = 1 << 63

// Put writes a name, but for its owner.
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

// GetName reads a name of a process's block.
func GetName(b []byte, owner wire.ProcID) Name {
	le := binary.LittleEndian
	total := le.Uint64(b[8:])
	return Name{
		Owner: owner, Place: le.Uint64(b), Total: int64(total &^ keptBit), Kept: total&keptBit != 0,
		Off: int64(le.Uint64(b[16:])), Bytes: int64(le.Uint64(b[24:])), Generation: le.Uint32(b[32:]),
	}
}

// Check refuses what cannot be, whoever has the memory.
func (n *Name) Check() error {
	if n.Total <= 0 || n.Total != int64(int(n.Total)) || n.Off < 0 || n.Bytes < 0 || n.Bytes > n.Total || n.Off > n.Total-n.Bytes || n.Generation == 0 {
		return fmt.Errorf("process %v: %w: %d bytes at %d of shared memory of %d, generation %d", n.Owner, transport.ErrProtocol, n.Bytes, n.Off, n.Total, n.Generation)
	}
	return nil
}
