// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"fmt"

	"gompi/internal/base/wire"
	"gompi/transport"
)

var _ transport.Sharer = (*Transport)(nil)

// Bell implements transport.Sharer.
func (t *Transport) Bell(c wire.Contact) (transport.Bell, error) {
	dropDescriptors(c)
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	other := t.hub.procs[c.Proc]
	if other == nil {
		return nil, fmt.Errorf("inproc: process %v: %w", c.Proc, transport.ErrUnreachable)
	}
	return bell{other.env.Wake}, nil
}

// BellName implements transport.Sharer.
func (t *Transport) BellName() (name [2]uint64) { return name }

// NamedBell implements transport.Sharer.
func (t *Transport) NamedBell(p wire.ProcID, _ [2]uint64) (transport.Bell, error) {
	return nil, fmt.Errorf("inproc: the bell of process %v has no name: %w", p, transport.ErrUnavailable)
}

type bell struct{ wake func() }

func (b bell) Ring()  { b.wake() }
func (b bell) Close() {}

// shareKey names memory of Share. The memory may outlive its process.
type shareKey struct {
	owner wire.ProcID
	place uint64
}

// maxShare is far below the size at which make panics.
const maxShare = 1 << 44

// Share implements transport.Sharer.
func (t *Transport) Share(n int) (mem []byte, place uint64, err error) {
	if n <= 0 || n > maxShare {
		return nil, 0, fmt.Errorf("inproc: %d bytes cannot be shared", n)
	}
	mem = alignedBytes(n)
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	t.hub.lastKey++
	t.hub.shared[shareKey{t.env.Self, t.hub.lastKey}] = mem
	return mem, t.hub.lastKey, nil
}

// Unshare implements transport.Sharer.
func (t *Transport) Unshare(_ []byte, place uint64) {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	delete(t.hub.shared, shareKey{t.env.Self, place})
}

// Join implements transport.Sharer.
func (t *Transport) Join(c wire.Contact, place uint64, n int) (mem []byte, err error) {
	dropDescriptors(c)
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	mem = t.hub.shared[shareKey{c.Proc, place}]
	if mem == nil || n != len(mem) {
		return nil, fmt.Errorf("inproc: join of %d bytes at %d of process %v: the memory there has %d: %w", n, place, c.Proc, len(mem), transport.ErrProtocol)
	}
	return mem, nil
}

// sharedBlock is memory of Attach. The hub forgets it when its last holder leaves.
type sharedBlock struct {
	mem     []byte
	holders int
}

// sharedKey names a sharedBlock.
type sharedKey struct {
	transport.SharedKey
	bytes int
}

// Preallocated implements transport.Sharer.
func (t *Transport) Preallocated() bool { return false }

// HeldArenas implements transport.Sharer.
func (t *Transport) HeldArenas() uint64 { return 0 }

// Attach implements transport.Sharer.
func (t *Transport) Attach(k transport.SharedKey, n int, _ wire.ArenaRange) (mem []byte, err error) {
	if n <= 0 || n > maxShare {
		return nil, fmt.Errorf("inproc: %d bytes cannot be shared", n)
	}
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	key := sharedKey{k, n}
	c := t.hub.blocks[key]
	if c == nil {
		c = &sharedBlock{mem: alignedBytes(n)}
		t.hub.blocks[key] = c
	}
	c.holders++
	return c.mem, nil
}

// Populate implements transport.Sharer.
func (t *Transport) Populate([]byte) error { return nil }

// Leave implements transport.Sharer.
func (t *Transport) Leave(mem []byte) {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	for key, c := range t.hub.blocks {
		if key.bytes == len(mem) && &c.mem[0] == &mem[0] {
			if c.holders--; c.holders == 0 {
				delete(t.hub.blocks, key)
			}
			return
		}
	}
}
