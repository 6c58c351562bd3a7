// SPDX-License-Identifier: Apache-2.0

package tcp

// unsafe: the wrappers of x/sys enter the scheduler on every call, which costs more than a
// non-blocking receive of a small message. These calls do not, and take vectors without an
// allocation.

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawLimit bounds the bytes that a call may copy without telling the Go scheduler, because a
// garbage collection must wait for the call.
const rawLimit = 513 << 10

const sendFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL

func call(raw bool, trap, a1, a2, a3, a4 uintptr) (int, unix.Errno) {
	var n uintptr
	var e unix.Errno
	if raw {
		n, _, e = unix.RawSyscall6(trap, a1, a2, a3, a4, 0, 0)
	} else {
		n, _, e = unix.Syscall6(trap, a1, a2, a3, a4, 0, 0)
	}
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// recv reads into b, which must not be empty.
func recv(fd int, b []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// send writes b, which must not be empty nor longer than rawLimit.
func send(fd int, b []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), sendFlags, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// vector collects buffers for one call. It is a part of a Transport on the heap, so that the
// addresses in it stay valid.
type vector struct {
	msg   unix.Msghdr
	iov   [16]unix.Iovec
	n     int
	bytes int
}

// add appends a buffer and reports whether there was room.
func (v *vector) add(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if v.n == len(v.iov) {
		return false
	}
	v.iov[v.n].Base = unsafe.SliceData(b)
	v.iov[v.n].SetLen(len(b))
	v.n++
	v.bytes += len(b)
	return true
}

func (v *vector) run(fd int, trap uintptr, flags uintptr) (int, unix.Errno) {
	v.msg.Iov = &v.iov[0]
	v.msg.SetIovlen(v.n)
	n, e := call(v.bytes <= rawLimit, trap, uintptr(fd), uintptr(unsafe.Pointer(&v.msg)), flags, 0)
	clear(v.iov[:v.n]) // a pointer left here would keep a user's buffer alive
	v.n, v.bytes = 0, 0
	return n, e
}

// send writes the buffers and empties the vector. more says that more output follows at once.
func (v *vector) send(fd int, more bool) (int, unix.Errno) {
	flags := uintptr(sendFlags)
	if more {
		flags |= unix.MSG_MORE
	}
	return v.run(fd, unix.SYS_SENDMSG, flags)
}

// recv reads into the buffers and empties the vector.
func (v *vector) recv(fd int) (int, unix.Errno) {
	return v.run(fd, unix.SYS_RECVMSG, unix.MSG_DONTWAIT)
}

// vmsplice puts the pages of b, which must not be empty, into the pipe.
func (d *splicer) vmsplice(b []byte) (int, unix.Errno) {
	d.iov.Base = unsafe.SliceData(b)
	d.iov.SetLen(len(b))
	return call(true, unix.SYS_VMSPLICE, uintptr(d.pipe[1]), uintptr(unsafe.Pointer(&d.iov)), 1, unix.SPLICE_F_NONBLOCK)
}

// splice moves n bytes from a pipe to a socket.
func splice(pipe, fd, n int) (int, unix.Errno) {
	k, _, e := unix.RawSyscall6(unix.SYS_SPLICE, uintptr(pipe), 0, uintptr(fd), 0, uintptr(n), unix.SPLICE_F_NONBLOCK)
	if e != 0 {
		return 0, e
	}
	return int(k), 0
}

// aligned returns b from the first multiple of n bytes on.
func aligned(b []byte, n int) []byte {
	return b[int(-uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(n)):]
}

// epollNow returns the events that are ready, without waiting.
func epollNow(epfd int, ev []unix.EpollEvent) int {
	n, e := call(true, unix.SYS_EPOLL_PWAIT, uintptr(epfd),
		uintptr(unsafe.Pointer(unsafe.SliceData(ev))), uintptr(len(ev)), 0)
	if e != 0 {
		return 0
	}
	return n
}

// remap replaces the pages of b by new ones. b must be whole pages. Other users keep the old ones.
func remap(b []byte) error {
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED)
	return err
}
