// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dirty

// unsafe: the kernel gets addresses of memory and of structures that it fills.

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Tracker lets the kernel record the writes to memory of this process. It uses the
// asynchronous write-protection of userfaultfd and the scan of page tables of Linux 6.7.
// The first write to a page of an armed memory costs a fault (docs/results/resize.md), and
// splits a huge page. A Tracker is safe for all goroutines.
type Tracker struct {
	uffd, pagemap int

	mu    sync.Mutex
	armed map[*tracked]bool
}

// Numbers from linux/userfaultfd.h and linux/fs.h.
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

	modeProtect = 2 // mode of registration
	doProtect   = 1

	scanCheckAsync = 2 // fail for memory that is not protected asynchronously
	pageIsWritten  = 1 << 1
)

// Open returns a Tracker, or an error that says why the kernel cannot do it. An old kernel
// does not know the call or the feature, and an administrator may forbid it.
func Open() (*Tracker, error) {
	if unix.Getpagesize() != ChunkBytes {
		return nil, fmt.Errorf("pages have %d bytes", unix.Getpagesize())
	}
	const flags = unix.O_CLOEXEC | unix.O_NONBLOCK
	// userModeOnly excludes faults inside the kernel, as in read(2). Asynchronous faults
	// go to no handler, so that is no loss.
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

// selfTest checks that the kernel reports a write to a page.
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

// Close ends all observations.
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

// tracked is a memory whose whole pages are protected. Partial pages at its ends also hold
// other memory, and count as written.
type tracked struct {
	t            *Tracker
	mem          []byte // keeps the memory alive: Go gives no page of it back
	start, limit uintptr
}

// errShared is the error for memory that other processes may also write.
var errShared = errors.New("the memory is not private to this process")

// errSmall is the error for memory without a page to protect.
var errSmall = errors.New("the memory has no whole page")

// Arm starts the observation of a memory, which must stay mapped until Disarm. The memory
// must be private and anonymous, as Go's heap is, and not armed yet. Arm refuses memory that
// other processes can map, because the kernel does not report their stores through other
// mappings. It reports writes by the kernel for this process or another one (read,
// process_vm_writev), except into pages that the kernel looked up before Arm.
func (t *Tracker) Arm(mem []byte) (Watch, error) {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	a := &tracked{
		t:     t,
		mem:   mem,
		start: (first + ChunkBytes - 1) &^ (ChunkBytes - 1),
		limit: (first + uintptr(len(mem))) &^ (ChunkBytes - 1),
	}
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
			return nil, errors.New("some of the memory is already armed")
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
		if errors.Is(err, unix.EAGAIN) { // mappings are changing
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

// pageRun is a run of pages as PAGEMAP_SCAN reports it.
type pageRun struct{ start, end, categories uint64 }

const scanRuns = 1024 // number of runs per call

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
		flags:   scanCheckAsync,
		start:   uint64(a.start),
		end:     uint64(a.limit),
		runs:    uint64(uintptr(unsafe.Pointer(unsafe.SliceData(runs)))),
		numRuns: scanRuns,
		anyof:   pageIsWritten,
		result:  pageIsWritten,
	}
	q.size = uint64(unsafe.Sizeof(q))
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	if !a.t.armed[a] {
		return nil, errors.New("the memory is not armed any more")
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
