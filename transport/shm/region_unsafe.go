// SPDX-License-Identifier: Apache-2.0

package shm

// unsafe: a registered buffer is named by its address, which another process reads.

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/transport"
)

var _ transport.SingleCopy = (*Transport)(nil)

// Register names a buffer by its address. The address gives its holder no more rights than
// the peers of this process have.
func (t *Transport) Register(buf []byte) (key uint64) {
	t.pages.Use(buf)
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf))))
}

// Unregister implements transport.SingleCopy. It has nothing to undo.
func (t *Transport) Unregister(uint64) {}

// Proof returns the address and value of the nonce. Peers read it to find out whether they
// can copy.
func (t *Transport) Proof() (key, value uint64) { return addrOfWord(&t.nonce), t.nonce }

// Reach checks the proof in the contact's process.
func (t *Transport) Reach(c wire.Contact, key, value uint64) (transport.Memory, error) {
	closeFD(c.Segment)
	closeFD(c.Bell)
	if !c.SameHost {
		return nil, fmt.Errorf("shm: memory of process %v: %w", c.Proc, transport.ErrUnavailable)
	}
	if err := t.readable(c.PID, key, value); err != nil {
		return nil, fmt.Errorf("shm: memory of process %v: %w", c.Proc, err)
	}
	return memory{c.PID, writable(c.PID, key, value) == nil}, nil
}

// memory is the memory of the process with this pid.
type memory struct {
	pid    int
	writes bool
}

// Writable implements transport.Memory.
func (m memory) Writable() bool { return m.writes }

// address returns the address of n bytes at off behind key.
func address(key uint64, off int64, n int) (uint64, error) {
	if key >= maxAddr || off < 0 || off >= maxAddr || key+uint64(off)+uint64(n) > maxAddr {
		return 0, fmt.Errorf("shm: %d bytes at %#x + %d: %w", n, key, off, transport.ErrProtocol)
	}
	return key + uint64(off), nil
}

// ended marks the error of a copy that found no process.
func ended(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%w: %w", transport.ErrPeerGone, err)
	}
	return err
}

// Read copies by process_vm_readv.
func (m memory) Read(dst []byte, key uint64, off int64) error {
	at, err := address(key, off, len(dst))
	if err == nil && len(dst) > 0 {
		_, err = cmaRead(m.pid, dst, at, 0)
	}
	return ended(err)
}

// Write copies by process_vm_writev.
func (m memory) Write(src []byte, key uint64, off int64) error {
	at, err := address(key, off, len(src))
	if err == nil {
		err = cmaWrite(m.pid, at, src)
	}
	return ended(err)
}

// ReadRuns implements transport.Memory.
func (m memory) ReadRuns(runs []transport.Run, key uint64) error {
	return ended(m.copyRuns(unix.SYS_PROCESS_VM_READV, runs, key))
}

// WriteRuns implements transport.Memory.
func (m memory) WriteRuns(runs []transport.Run, key uint64) error {
	return ended(m.copyRuns(unix.SYS_PROCESS_VM_WRITEV, runs, key))
}

// copyRuns copies all runs in one call. If that ends early, it copies the rest one run at a
// time: the kernel does not say which run failed.
func (m memory) copyRuns(call uintptr, runs []transport.Run, key uint64) error {
	var local [transport.MaxRuns]unix.Iovec
	var remote [transport.MaxRuns]unix.RemoteIovec
	if len(runs) > len(local) {
		panic(fmt.Sprintf("gompi: BUG: %d runs, at most %d allowed", len(runs), len(local)))
	}
	n, want := 0, 0
	for _, r := range runs {
		at, err := address(key, r.Off, len(r.Mem))
		if err != nil {
			return err
		}
		if len(r.Mem) == 0 {
			continue
		}
		local[n] = unix.Iovec{Base: &r.Mem[0], Len: uint64(len(r.Mem))}
		remote[n] = unix.RemoteIovec{Base: uintptr(at), Len: len(r.Mem)}
		want += len(r.Mem)
		n++
	}
	if n == 0 {
		return nil
	}
	did, _, errno := unix.RawSyscall6(call, uintptr(m.pid), uintptr(unsafe.Pointer(&local[0])), uintptr(n), uintptr(unsafe.Pointer(&remote[0])), uintptr(n), 0)
	if errno == 0 && int(did) == want {
		return nil
	}
	if errno != 0 && errno != unix.EFAULT {
		return cmaError("process_vm_readv or _writev", m.pid, want, errno)
	}
	for _, r := range runs {
		var err error
		if call == unix.SYS_PROCESS_VM_READV {
			err = m.Read(r.Mem, key, r.Off)
		} else {
			err = m.Write(r.Mem, key, r.Off)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
