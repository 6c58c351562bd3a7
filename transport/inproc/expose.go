// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/wire"
	"gompi/transport"
)

var _ transport.SingleCopy = (*Transport)(nil)

// Register implements transport.SingleCopy.
func (t *Transport) Register(buf []byte) (key uint64) {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	t.hub.lastKey++
	t.hub.exposed[t.hub.lastKey] = buf
	return t.hub.lastKey
}

// Unregister implements transport.SingleCopy.
func (t *Transport) Unregister(key uint64) {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	delete(t.hub.exposed, key)
}

// Proof implements transport.SingleCopy.
func (t *Transport) Proof() (key, value uint64) {
	if t.proof == 0 {
		t.proof = t.Register(binary.NativeEndian.AppendUint64(nil, uint64(t.env.Self.Serial)))
	}
	return t.proof, uint64(t.env.Self.Serial)
}

// Reach implements transport.SingleCopy.
func (t *Transport) Reach(c wire.Contact, key, value uint64) (transport.Memory, error) {
	dropDescriptors(c)
	var word [8]byte
	m := memory{t.hub, c.Proc}
	if err := m.Read(word[:], key, 0); err != nil || binary.NativeEndian.Uint64(word[:]) != value {
		return nil, fmt.Errorf("inproc: memory of process %v: %w", c.Proc, transport.ErrUnreachable)
	}
	return m, nil
}

// memory is the exposed memory of a process of a hub.
type memory struct {
	hub   *Hub
	owner wire.ProcID
}

var _ transport.Direct = memory{}

// Bytes implements transport.Direct.
func (m memory) Bytes(key uint64) []byte {
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	return m.hub.exposed[key]
}

// slice returns n bytes of b, which is exposed under key. b is nil if the owner has withdrawn it,
// also while a killed process winds down.
func (m memory) slice(b []byte, key uint64, off int64, n int) ([]byte, error) {
	switch {
	case b == nil && n > 0 && !m.hub.Has(m.owner):
		return nil, fmt.Errorf("inproc: memory of process %v: %w", m.owner, transport.ErrPeerGone)
	case b == nil && n > 0:
		return nil, fmt.Errorf("inproc: memory of process %v: %w", m.owner, transport.ErrHidden)
	case off < 0 || off > int64(len(b)) || n > len(b)-int(off):
		return nil, fmt.Errorf("inproc: access to %d bytes at %d + %d of %d exposed ones: %w", n, key, off, len(b), transport.ErrProtocol)
	}
	return b[off:][:n], nil
}

// Writable implements transport.Memory.
func (m memory) Writable() bool { return true }

// Read implements transport.Memory.
func (m memory) Read(dst []byte, key uint64, off int64) error {
	src, err := m.slice(m.Bytes(key), key, off, len(dst))
	copy(dst, src)
	return err
}

// Write implements transport.Memory.
func (m memory) Write(src []byte, key uint64, off int64) error {
	dst, err := m.slice(m.Bytes(key), key, off, len(src))
	copy(dst, src)
	return err
}

// ReadRuns implements transport.Memory.
func (m memory) ReadRuns(runs []transport.Run, key uint64) error {
	all := m.Bytes(key)
	for _, r := range runs {
		src, err := m.slice(all, key, r.Off, len(r.Mem))
		if err != nil {
			return err
		}
		copy(r.Mem, src)
	}
	return nil
}

// WriteRuns implements transport.Memory.
func (m memory) WriteRuns(runs []transport.Run, key uint64) error {
	all := m.Bytes(key)
	for _, r := range runs {
		dst, err := m.slice(all, key, r.Off, len(r.Mem))
		if err != nil {
			return err
		}
		copy(dst, r.Mem)
	}
	return nil
}
