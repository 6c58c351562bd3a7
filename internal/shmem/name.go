// SPDX-License-Identifier: Apache-2.0

package shmem

import (
	"errors"
	"fmt"

	"gompi/internal/wire"
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

// check refuses what cannot be.
func (n *Name) check() error {
	if n.Total <= 0 || n.Total != int64(int(n.Total)) || n.Off < 0 || n.Bytes < 0 || n.Bytes > n.Total || n.Off > n.Total-n.Bytes {
		return fmt.Errorf("process %v: %w: %d bytes at %d of shared memory of %d", n.Owner, transport.ErrProtocol, n.Bytes, n.Off, n.Total)
	}
	if n.Place >= privatePlace {
		return fmt.Errorf("process %v: %w", n.Owner, ErrPrivate)
	}
	return nil
}
