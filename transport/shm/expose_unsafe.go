// SPDX-License-Identifier: Apache-2.0

package shm

// unsafe: what is exposed is named by its address, which another process reads.

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/wire"
	"gompi/transport"
)

var _ transport.Exposer = (*Transport)(nil)

// Expose names a buffer by its address. Whoever has it can do no more than the
// peers of this process can anyway.
func (t *Transport) Expose(buf []byte) (key uint64) {
	t.pages.Use(buf)
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf))))
}

// Hide implements transport.Exposer: what is not looked for is hidden.
func (t *Transport) Hide(uint64) {}

// Proof is the nonce that peers find out with whether they can copy.
func (t *Transport) Proof() (key, value uint64) { return addrOfWord(&t.nonce), t.nonce }

// Reach looks for the proof in the contact's process.
func (t *Transport) Reach(c wire.Contact, key, value uint64) (transport.Memory, error) {
	closeFD(c.Segment)
	closeFD(c.Bell)
	if !c.SameHost {
		return nil, fmt.Errorf("shm: memory of process %v: %w", c.Proc, transport.ErrUnavailable)
	}
	if err := t.readable(c.PID, key, value); err != nil {
		return nil, fmt.Errorf("shm: memory of process %v: %w", c.Proc, err)
	}
	return memory(c.PID), nil
}

// memory is that of the process with this pid.
type memory int

// Read copies by process_vm_readv.
func (m memory) Read(dst []byte, key uint64, off int64) error {
	if key >= maxAddr || off < 0 || off >= maxAddr || key+uint64(off)+uint64(len(dst)) > maxAddr {
		return fmt.Errorf("shm: %d bytes at %#x + %d: %w", len(dst), key, off, transport.ErrProtocol)
	}
	_, err := cmaRead(int(m), dst, key+uint64(off), 0)
	if errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%w: %w", transport.ErrPeerGone, err)
	}
	return err
}
