// SPDX-License-Identifier: Apache-2.0

//go:build linux

package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
)

// seals fix the size of a segment for ever. So no process can shrink it and thereby kill a
// peer by SIGBUS, and no process can add another seal.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// Create creates a segment and its bell, a non-blocking eventfd. It writes the head page,
// reserves InitialBytes and seals the size. Both descriptors are close-on-exec and belong to
// the caller. The error is a *NoMemoryError if there is no memory for InitialBytes.
func Create() (segFD, bellFD int, err error) {
	var m Memory
	defer m.Close()
	segFD, bellFD = -1, -1
	err = m.Take(InitialBytes, func(int64) error {
		segFD, bellFD, err = CreateTaken()
		return err
	})
	return segFD, bellFD, err
}

// CreateTaken is Create without the check, for a caller that makes many segments and Takes
// memory for all of them.
func CreateTaken() (segFD, bellFD int, err error) {
	segFD, err = memfd()
	if err != nil {
		return -1, -1, fmt.Errorf("create shared segment: %w", err)
	}
	if err = initialise(segFD); err != nil {
		unix.Close(segFD)
		return -1, -1, err
	}
	bellFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(segFD)
		return -1, -1, fmt.Errorf("create bell: %w", err)
	}
	return segFD, bellFD, nil
}

// memfd creates a file that can never be executed. Some systems demand that flag, and kernels
// before 6.3 do not know it.
func memfd() (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("gompi", flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate("gompi", flags)
	}
	return fd, err
}

func initialise(fd int) error {
	span, err := spanAllowed()
	if err != nil {
		return err
	}
	if err := unix.Ftruncate(fd, span); err != nil {
		return fmt.Errorf("size shared segment to %d bytes: %w", span, err)
	}
	if err := reserve(fd, 0, InitialBytes); err != nil {
		return err
	}
	var head [HeadShm]byte
	binary.LittleEndian.PutUint64(head[OffMagic:], Magic)
	binary.LittleEndian.PutUint64(head[OffVersion:], Version)
	binary.LittleEndian.PutUint64(head[OffSize:], uint64(span))
	if n, err := unix.Pwrite(fd, head[:], 0); err != nil || n != len(head) {
		return fmt.Errorf("write head of shared segment: %d of %d bytes: %w", n, len(head), err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("seal shared segment: %w", err)
	}
	return nil
}

// SetOwner writes the owner into a new segment.
func SetOwner(fd int, p wire.ProcID) error {
	var b [OffSerial - OffJob + 4]byte
	binary.LittleEndian.PutUint64(b[:], uint64(p.Job))
	binary.LittleEndian.PutUint32(b[OffSerial-OffJob:], p.Serial)
	if n, err := unix.Pwrite(fd, b[:], OffJob); err != nil || n != len(b) {
		return fmt.Errorf("write owner of shared segment: %d of %d bytes: %w", n, len(b), err)
	}
	return nil
}

// Check checks that fd is a segment of this version and owner whose size cannot change. It
// reads only the head page.
func Check(fd int, owner wire.ProcID) error {
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return fmt.Errorf("not a shared segment: %w", err)
	}
	if have&seals != seals {
		return fmt.Errorf("shared segment has seals %#x, needs %#x", have, seals)
	}
	span, err := Span(fd)
	if err != nil {
		return err
	}
	if span < leastSpan || span > SpanBytes {
		return fmt.Errorf("shared segment has %d bytes, needs %d to %d", span, int64(leastSpan), int64(SpanBytes))
	}
	var head [HeadShm]byte
	if n, err := unix.Pread(fd, head[:], 0); err != nil || n != len(head) {
		return fmt.Errorf("read head of shared segment: %d of %d bytes: %w", n, len(head), err)
	}
	if err := CheckHead(&head, owner); err != nil {
		return err
	}
	if s := binary.LittleEndian.Uint64(head[OffSize:]); s != uint64(span) {
		return fmt.Errorf("shared segment says it has %d bytes, not %d", s, span)
	}
	return nil
}

// CheckHead checks that a head page is of this version and owner.
func CheckHead(head *[HeadShm]byte, owner wire.ProcID) error {
	le := binary.LittleEndian
	if m, v := le.Uint64(head[OffMagic:]), le.Uint64(head[OffVersion:]); m != Magic || v != Version {
		return fmt.Errorf("not a shared segment of protocol %d: its head has %#x, version %d", Version, m, v)
	}
	if p := (wire.ProcID{Job: wire.JobID(le.Uint64(head[OffJob:])), Serial: le.Uint32(head[OffSerial:])}); p != owner {
		return fmt.Errorf("shared segment is that of process %v, not %v", p, owner)
	}
	return nil
}

// Span returns the address space of a segment in bytes, which never changes.
func Span(fd int) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("look at shared segment: %w", err)
	}
	return st.Size, nil
}

// spanAllowed returns the address space for a new segment. The kernel applies the limit on
// file sizes only when a file grows, and to the process that makes it grow.
func spanAllowed() (int64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &l); err != nil || l.Cur >= SpanBytes {
		return SpanBytes, nil
	}
	if l.Cur < leastSpan {
		return 0, fmt.Errorf("size shared segment to %d bytes of at least %d: %w", l.Cur, int64(leastSpan), unix.EFBIG)
	}
	return int64(l.Cur) &^ int64(os.Getpagesize()-1), nil
}

// Map maps n bytes from off on, which must be a multiple of the page size. Bytes without a
// reservation read as zeros and take memory when touched, so reserve them first. The mapping
// suits huge pages of the file. The caller must pass the same slice to Unmap, once, when no
// pointer into it remains.
func Map(fd int, off, n int64, write bool) ([]byte, error) {
	if err := checkRange(off, n); err != nil {
		return nil, err
	}
	if off%int64(os.Getpagesize()) != 0 {
		return nil, fmt.Errorf("map shared segment: offset %d is not on a page", off)
	}
	if span, err := Span(fd); err != nil {
		return nil, err
	} else if off > span-n {
		return nil, fmt.Errorf("map shared segment: %d bytes at %d are not inside its %d bytes", n, off, span)
	}
	prot := unix.PROT_READ
	if write {
		prot |= unix.PROT_WRITE
	}
	mem, err := mmap(fd, off, int(n), prot)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of shared segment at %d: %w", n, off, err)
	}
	return mem, nil
}

// Unmap unmaps memory that Map has returned.
func Unmap(mem []byte) error {
	if err := munmap(mem); err != nil {
		return fmt.Errorf("unmap %d bytes of shared segment: %w", len(mem), err)
	}
	return nil
}

// Release gives the whole pages inside [off, off+n) back to the system. They read as zeros
// afterwards and need Reserve before the next use.
func Release(fd int, off, n int64) error {
	if err := checkRange(off, n); err != nil {
		return err
	}
	err := fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
	if err != nil {
		return fmt.Errorf("release %d bytes of shared segment at %d: %w", n, off, err)
	}
	return nil
}

func checkRange(off, n int64) error {
	if off < 0 || n <= 0 || off > SpanBytes || n > SpanBytes-off {
		return fmt.Errorf("shared segment: range at %d of %d bytes is not inside its %d bytes", off, n, int64(SpanBytes))
	}
	return nil
}
