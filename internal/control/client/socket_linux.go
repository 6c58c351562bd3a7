// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/protocol"
)

// socket is a stream socket to an agent, by system calls. It does without package net, with which a
// program starts slower, and is linked with the C library if there is a C compiler. The socket is in
// Go's poller from the beginning: while a goroutine waits in a system call, Go's monitor looks at it
// every 20 us. One goroutine at a time may receive, one may write, and one may send.
type socket struct {
	file   *os.File
	raw    syscall.RawConn
	closed atomic.Bool

	in   received
	take func(fd uintptr) bool // into in
	out  []byte
	sent int
	give func(fd uintptr) bool // from out
}

// received is one system call that receives.
type received struct {
	b, oob         []byte
	n, oobn, flags int
	err            error
}

// passes says that frames come with their descriptors.
const passes = true

// oobBytes returns the room for descriptors. One system call returns at most one message of them, that
// of the last frame that it reads from.
func oobBytes() int { return unix.CmsgSpace(8 * 4) }

// errBusy is the error of a full backlog of the agent.
const errBusy = unix.EAGAIN

// dialSocket connects to an address, and checks the owner of the socket there (CheckOwner).
func dialSocket(addr string, tool bool) (*socket, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: addr}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := protocol.CheckOwner(fd, tool); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return newSocket(fd)
}

// newSocket takes over a descriptor that does not block.
func newSocket(fd int) (*socket, error) {
	s := &socket{file: os.NewFile(uintptr(fd), "control socket")}
	var err error
	if s.raw, err = s.file.SyscallConn(); err != nil {
		s.file.Close()
		return nil, err
	}
	s.take = func(fd uintptr) bool { return s.in.from(int(fd)) }
	s.give = func(fd uintptr) bool {
		s.sent, _ = unix.SendmsgN(int(fd), s.out, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return true
	}
	return s, nil
}

// from reads once; false: there was nothing.
func (r *received) from(fd int) bool {
	for {
		r.n, r.oobn, r.flags, _, r.err = unix.Recvmsg(fd, r.b, r.oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		if r.err != unix.EINTR {
			return r.err != unix.EAGAIN
		}
	}
}

// receive waits for bytes and descriptors. It returns no bytes at the end of the connection.
func (s *socket) receive(b, oob []byte) (n, oobn, flags int, err error) {
	s.in = received{b: b, oob: oob}
	if err = s.raw.Read(s.take); err == nil {
		err = s.in.err
	} else if s.closed.Load() {
		err = os.ErrClosed
	}
	return max(s.in.n, 0), s.in.oobn, s.in.flags, err
}

// trySend writes what the kernel takes at once, and returns the number of bytes.
func (s *socket) trySend(b []byte) int {
	s.out, s.sent = b, 0
	if s.raw.Write(s.give) != nil {
		s.sent = 0
	}
	s.out = nil
	return max(s.sent, 0)
}

// Write writes all.
func (s *socket) Write(b []byte) (int, error) { return s.file.Write(b) }

func (s *socket) SetDeadline(t time.Time) error      { return s.file.SetDeadline(t) }
func (s *socket) SetWriteDeadline(t time.Time) error { return s.file.SetWriteDeadline(t) }

// Close may be called repeatedly, by any goroutine.
func (s *socket) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	return s.file.Close()
}

// claim keeps received descriptors for their frame. If this process may not open all of them, the
// frame gets none: all are -1. The kernel says so by MSG_CTRUNC, and by nothing else if there was not
// even room for one.
func (d *fdReader) claim(oob []byte, flags int) error {
	lost := flags&unix.MSG_CTRUNC != 0
	if len(oob) == 0 && !lost {
		return nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("control message: %w", err)
	}
	for i := range msgs {
		if msgs[i].Header.Level != unix.SOL_SOCKET || msgs[i].Header.Type != unix.SCM_RIGHTS {
			continue
		}
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return fmt.Errorf("control message: %w", err)
		}
		if len(fds) != protocol.FrameFDs && len(fds) != protocol.MostFDs || lost {
			protocol.CloseFiles(fds...)
			lost = true
			continue
		}
		d.fds = append(d.fds, [protocol.MostFDs]int(append(fds, -1)[:protocol.MostFDs]))
	}
	if lost {
		d.fds = append(d.fds, [protocol.MostFDs]int{-1, -1, -1})
	}
	return nil
}

// becomeStdin replaces standard input by a descriptor, also for goroutines that read it already.
func becomeStdin(fd int) {
	if fd >= 0 {
		_ = unix.Dup3(fd, 0, 0)
	}
}
