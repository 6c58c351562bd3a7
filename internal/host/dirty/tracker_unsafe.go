// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dirty

// unsafe: the kernel is given addresses of memory, and of what it fills.

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Tracker has the kernel note which memory of this process is written: by asynchronous
// write-protection of userfaultfd, and the scan of page tables that goes with it, Linux
// 6.7. The first write to a page of a memory that is armed costs a fault (docs/results/resize.md);
// a huge page is split by it. Safe for all goroutines.
type Tracker struct {
	uffd, pagemap int

	mu    sync.Mutex
	armed map[*tracked]bool
}

// Numbers of linux/userfaultfd.h and linux/fs.h.
const (
	uffdAPI      = 0xaa
	ioAPI        = 0xc018aa3f
	ioRegister   = 0xc020aa00
	ioUnregister = 0x8010aa01
	ioProtect    = 0xc018aa06
	ioScan       = 0xc0606610

	userModeOnly = 1

	featureUnpopulated = 1 << 13
	featureAsync       = 1 << 15

	modeProtect = 2 // of registering
	doProtect   = 1

	scanCheckAsync = 2 // refuse what is not protected so
	pageIsWritten  = 1 << 1
)

// Open finds whether the kernel can do it; the error says why it cannot. An old kernel
// does not know the call or the feature, an administrator may forbid it.
func Open() (*Tracker, error) {
	if unix.Getpagesize() != ChunkBytes {
		return nil, fmt.Errorf("pages have %d bytes", unix.Getpagesize())
	}
	const flags = unix.O_CLOEXEC | unix.O_NONBLOCK
	// Faults in the kernel, as in read(2), are none of user mode, but asynchronous ones
	// are told to nobody and so need no more.
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, flags|userModeOnly, 0, 0)
	if errno == unix.EINVAL { // before Linux 5.11
		fd, _, errno = unix.Syscall(unix.SYS_USERFAULTFD, flags, 0, 0)
	}
	if errno != 0 {
		return nil, fmt.Errorf("userfaultfd: %w", errno)
	}
	t := &Tracker{uffd: int(fd), pagemap: -1, armed: map[*tracked]bool{}}
	api := struct{ api, features, ioctls uint64 }{uffdAPI, featureAsync | featureUnpopulated, 0}
	err := ioctl(t.uffd, ioAPI, unsafe.Pointer(&api))
	if err != nil {
		err = fmt.Errorf("userfaultfd without asynchronous write-protection: %w", err)
	} else if t.pagemap, err = unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		err = t.selfTest()
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// try finds a write to a page.
func (t *Tracker) selfTest() error {
	mem, err := unix.Mmap(-1, 0, 2*ChunkBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	defer unix.Munmap(mem)
	w, err := t.Arm(mem)
	if err != nil {
		return err
	}
	defer w.Disarm()
	mem[ChunkBytes] = 1
	s, err := w.Written()
	if err == nil && (s.Has(0) || !s.Has(ChunkBytes)) {
		err = errors.New("the kernel does not tell which page was written")
	}
	return err
}

// Close ends all.
func (t *Tracker) Close() error {
	t.mu.Lock()
	list := t.armed
	t.armed = nil
	t.mu.Unlock()
	var err error
	for a := range list {
		err = errors.Join(err, a.end())
	}
	if t.pagemap >= 0 {
		err = errors.Join(err, unix.Close(t.pagemap))
	}
	return errors.Join(err, unix.Close(t.uffd))
}

// armed is a memory whose whole pages are protected. Parts of pages at its ends are other
// memory's, too, and count as written.
type tracked struct {
	t            *Tracker
	mem          []byte // held: Go gives no page of it back
	start, limit uintptr
}

// errShared is that of memory of which this process's stores are not all there are.
var errShared = errors.New("it is no private memory of this process")

// errSmall is that of memory that is protected nowhere.
var errSmall = errors.New("it has no whole page")

// Arm begins to watch a memory: the caller's, private and anonymous, as the heap of Go is.
// It stays mapped until Disarm; what another process stores there through a mapping of its
// own would not be seen, and so memory that can be mapped elsewhere is refused, as is what
// is armed already. Writes by the kernel for this process or another (read, process_vm_writev)
// are seen, but not one whose pages the kernel has looked up before Arm.
func (t *Tracker) Arm(mem []byte) (Watch, error) {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	a := &tracked{t: t, mem: mem, start: (first + ChunkBytes - 1) &^ (ChunkBytes - 1), limit: (first + uintptr(len(mem))) &^ (ChunkBytes - 1)}
	if a.start >= a.limit {
		return nil, errSmall
	}
	if private, err := isPrivate(a.start, a.limit); err != nil || !private {
		return nil, errors.Join(errShared, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.armed == nil {
		return nil, errors.New("the tracker was closed")
	}
	for b := range t.armed {
		if a.start < b.limit && b.start < a.limit {
			return nil, errors.New("some of it is armed already")
		}
	}
	register := struct{ start, len, mode, ioctls uint64 }{uint64(a.start), uint64(a.limit - a.start), modeProtect, 0}
	if err := ioctl(t.uffd, ioRegister, unsafe.Pointer(&register)); err != nil {
		return nil, fmt.Errorf("UFFDIO_REGISTER of %d bytes: %w", a.limit-a.start, err)
	}
	t.armed[a] = true
	protect := struct{ start, len, mode uint64 }{uint64(a.start), uint64(a.limit - a.start), doProtect}
	for {
		err := ioctl(t.uffd, ioProtect, unsafe.Pointer(&protect))
		if errors.Is(err, unix.EAGAIN) { // mappings change just now
			runtime.Gosched()
			continue
		}
		if err != nil {
			delete(t.armed, a)
			return nil, errors.Join(fmt.Errorf("UFFDIO_WRITEPROTECT of %d bytes: %w", a.limit-a.start, err), a.end())
		}
		return a, nil
	}
}

// Disarm implements Watch.
func (a *tracked) Disarm() error {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	if !a.t.armed[a] {
		return nil
	}
	delete(a.t.armed, a)
	return a.end() // before another Arm of the same memory
}

func (a *tracked) end() error {
	r := struct{ start, len uint64 }{uint64(a.start), uint64(a.limit - a.start)}
	err := ioctl(a.t.uffd, ioUnregister, unsafe.Pointer(&r))
	runtime.KeepAlive(a.mem)
	return err
}

// scanned is a run of pages.
type pageRun struct{ start, end, categories uint64 }

const scanRuns = 1024 // at once

// Written implements Watch.
func (a *tracked) Written() (*Set, error) {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(a.mem)))
	s := newSet(int64(len(a.mem)), int64(first%ChunkBytes))
	s.Add(0, int64(a.start-first))
	s.Add(int64(a.limit-first), int64(len(a.mem)))
	runs := make([]pageRun, scanRuns)
	var pinned runtime.Pinner
	pinned.Pin(unsafe.SliceData(runs))
	defer pinned.Unpin()
	q := struct {
		size, flags, start, end, walked, runs, numRuns, maxPages, inverted, mask, anyof, result uint64
	}{
		flags: scanCheckAsync, start: uint64(a.start), end: uint64(a.limit),
		runs: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(runs)))), numRuns: scanRuns, anyof: pageIsWritten, result: pageIsWritten,
	}
	q.size = uint64(unsafe.Sizeof(q))
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	if !a.t.armed[a] {
		return nil, errors.New("it is not armed any more")
	}
	for q.start < q.end {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(a.t.pagemap), ioScan, uintptr(unsafe.Pointer(&q)))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || n > scanRuns || q.walked <= q.start || q.walked > q.end {
			return nil, fmt.Errorf("PAGEMAP_SCAN from %#x to %#x of %#x: %d runs, %w", q.start, q.walked, q.end, n, errno)
		}
		for _, r := range runs[:n] {
			s.Add(int64(r.start)-int64(first), int64(r.end)-int64(first))
		}
		q.start = q.walked
	}
	return s, nil
}

func ioctl(fd int, number uintptr, arg unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), number, uintptr(arg))
		if errno == 0 {
			return nil
		}
		if errno != unix.EINTR {
			return errno
		}
	}
}
