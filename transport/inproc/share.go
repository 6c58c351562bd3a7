// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"fmt"

	"gompi/internal/wire"
	"gompi/transport"
)

var _ transport.Sharer = (*Transport)(nil)

// shared names memory of Share. It may outlive its process.
type shared struct {
	owner wire.ProcID
	place uint64
}

// maxShare is far below what makes a slice panic.
const maxShare = 1 << 44

// Share implements transport.Sharer.
func (t *Transport) Share(n int) (mem []byte, place uint64, err error) {
	if n <= 0 || n > maxShare {
		return nil, 0, fmt.Errorf("inproc: %d bytes cannot be shared", n)
	}
	mem = alignedBytes(n)
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	t.hub.places++
	t.hub.shared[shared{t.env.Self, t.hub.places}] = mem
	return mem, t.hub.places, nil
}

// Unshare implements transport.Sharer.
func (t *Transport) Unshare(_ []byte, place uint64) {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	delete(t.hub.shared, shared{t.env.Self, place})
}

// Join implements transport.Sharer.
func (t *Transport) Join(c wire.Contact, place uint64, n int) (mem []byte, err error) {
	dropDescriptors(c)
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	mem = t.hub.shared[shared{c.Proc, place}]
	if mem == nil || n != len(mem) {
		return nil, fmt.Errorf("inproc: %d bytes at %d of process %v, which has %d there: %w", n, place, c.Proc, len(mem), transport.ErrProtocol)
	}
	return mem, nil
}

// Leave implements transport.Sharer.
func (t *Transport) Leave([]byte) {}
