// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/wire"
	"gompi/transport"
)

var _ transport.Exposer = (*Transport)(nil)

// Expose implements transport.Exposer.
func (t *Transport) Expose(buf []byte) (key uint64) {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	t.hub.places++
	t.hub.exposed[t.hub.places] = buf
	return t.hub.places
}

// Hide implements transport.Exposer.
func (t *Transport) Hide(key uint64) {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	delete(t.hub.exposed, key)
}

// Proof implements transport.Exposer.
func (t *Transport) Proof() (key, value uint64) {
	if t.proof == 0 {
		t.proof = t.Expose(binary.NativeEndian.AppendUint64(nil, uint64(t.env.Self.Serial)))
	}
	return t.proof, uint64(t.env.Self.Serial)
}

// Reach implements transport.Exposer.
func (t *Transport) Reach(c wire.Contact, key, value uint64) (transport.Memory, error) {
	dropDescriptors(c)
	var word [8]byte
	if err := (memory{t.hub}).Read(word[:], key, 0); err != nil || binary.NativeEndian.Uint64(word[:]) != value {
		return nil, fmt.Errorf("inproc: memory of process %v: %w", c.Proc, transport.ErrUnreachable)
	}
	return memory{t.hub}, nil
}

// memory is what all processes of a hub have exposed.
type memory struct{ hub *Hub }

// Read implements transport.Memory.
func (m memory) Read(dst []byte, key uint64, off int64) error {
	m.hub.mu.Lock()
	src := m.hub.exposed[key]
	m.hub.mu.Unlock()
	if off < 0 || off > int64(len(src)) || len(dst) > len(src)-int(off) {
		return fmt.Errorf("inproc: %d bytes at %d + %d, %d are exposed: %w", len(dst), key, off, len(src), transport.ErrProtocol)
	}
	copy(dst, src[off:])
	return nil
}
