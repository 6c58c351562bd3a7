// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// epollSleeper parks its goroutine in Go's network poller, on an epoll descriptor of its
// own, so that the process holds no P while it sleeps.
//
//	Go's poller -> outer (one-shot) -> inner (level triggered, bells edge) -> fds
//
// The outer registration is one-shot, and only Sleep arms it. So events that arrive while
// the process polls wake no thread of the Go runtime.
type epollSleeper struct {
	outer  *os.File
	raw    syscall.RawConn
	outFD  int
	inner  int
	wakeFD int // eventfd of Wake
	woken  atomic.Bool
	bells  atomic.Int32
	// closing orders Wake and Close: a late Wake must not write to a file descriptor
	// number that is in use for something else by then.
	closing atomic.Int32 // users of wakeFD; negative after Close
	ready   func(fd uintptr) bool
}

const closedBias = -1 << 30

// NewEpoll returns a sleeper on epoll, which only Linux has.
func NewEpoll() (Sleeper, error) {
	outer, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	inner, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		unix.Close(outer)
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	kick, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(outer)
		unix.Close(inner)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	s := &epollSleeper{outFD: outer, inner: inner, wakeFD: kick}
	fail := func(err error) (Sleeper, error) {
		if s.outer != nil {
			s.outer.Close()
		} else {
			unix.Close(outer)
		}
		unix.Close(inner)
		unix.Close(kick)
		return nil, err
	}
	if err := s.Add(kick); err != nil {
		return fail(err)
	}
	ev := unix.EpollEvent{Events: 0, Fd: int32(inner)}
	if err := unix.EpollCtl(outer, unix.EPOLL_CTL_ADD, inner, &ev); err != nil {
		return fail(fmt.Errorf("epoll_ctl: %w", err))
	}
	if err := unix.SetNonblock(outer, true); err != nil {
		return fail(err)
	}
	s.outer = os.NewFile(uintptr(outer), "gompi-sleeper")
	if s.raw, err = s.outer.SyscallConn(); err != nil {
		return fail(err)
	}
	s.ready = func(fd uintptr) bool {
		var evs [1]unix.EpollEvent
		n, err := unix.EpollWait(int(fd), evs[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	}
	return s, nil
}

func (s *epollSleeper) Add(fd int) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(s.inner, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

func (s *epollSleeper) AddBell(fd int) error {
	defer s.closing.Add(-1)
	if s.closing.Add(1) <= 0 {
		return errClosed
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(fd)}
	if err := unix.EpollCtl(s.inner, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	s.bells.Add(1)
	return nil
}

func (s *epollSleeper) DropBell(fd int) {
	defer s.closing.Add(-1)
	if s.closing.Add(1) > 0 && unix.EpollCtl(s.inner, unix.EPOLL_CTL_DEL, fd, nil) == nil {
		s.bells.Add(-1)
	}
}

// drainBells makes the bells that rang not readable any more. What a bell announces was
// written before the ring, so a look after this call sees it.
func (s *epollSleeper) drainBells() {
	var evs [16]unix.EpollEvent
	unix.EpollWait(s.inner, evs[:], 0)
}

func (s *epollSleeper) Wake() {
	if s.woken.Swap(true) {
		return // the eventfd is readable already
	}
	if s.closing.Add(1) > 0 {
		one := [8]byte{1}
		unix.Write(s.wakeFD, one[:])
	}
	s.closing.Add(-1)
}

func (s *epollSleeper) Sleep() {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(s.inner)}
	if err := unix.EpollCtl(s.outFD, unix.EPOLL_CTL_MOD, s.inner, &ev); err == nil {
		s.raw.Read(s.ready) // an error means closed
	}
	// Read before clearing. A Wake in between is answered by this return. A Wake that
	// writes only after this read makes the next Sleep short.
	var b [8]byte
	unix.Read(s.wakeFD, b[:])
	s.woken.Store(false)
	if s.bells.Load() > 0 {
		s.drainBells()
	}
}

func (s *epollSleeper) Close() {
	for !s.closing.CompareAndSwap(0, closedBias) {
		if s.closing.Load() < 0 {
			return
		}
		osYield()
	}
	s.outer.Close()
	unix.Close(s.inner)
	unix.Close(s.wakeFD)
}

func osYield() { unix.RawSyscallNoError(unix.SYS_SCHED_YIELD, 0, 0, 0) }
