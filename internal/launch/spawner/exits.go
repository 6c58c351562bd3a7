// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"gompi/internal/launch"
)

// exitPoller sees children exit, in order, and leaves them unreaped.
type exitPoller struct {
	epoll  int
	exited func(pid int, e launch.Ending) // called on the poller's goroutine

	mu   sync.Mutex
	pids map[int32]int // by pidfd
}

func newExitPoller(exited func(pid int, e launch.Ending)) (*exitPoller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	w := &exitPoller{epoll: fd, exited: exited, pids: map[int32]int{}}
	go w.run()
	return w, nil
}

// add takes ownership of pidfd.
func (w *exitPoller) add(pid, pidfd int) error {
	w.mu.Lock()
	w.pids[int32(pidfd)] = pid
	w.mu.Unlock()
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, pidfd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(pidfd)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

func (w *exitPoller) run() {
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(w.epoll, events, -1)
		if err != nil && err != unix.EINTR {
			panic("gompi: BUG: epoll_wait on our own descriptor: " + err.Error())
		}
		for _, ev := range events[:max(n, 0)] {
			w.mu.Lock()
			pid := w.pids[ev.Fd]
			w.mu.Unlock()
			e, done, err := exitOf(pid)
			if err != nil {
				panic("gompi: BUG: an unreaped child is unknown: " + err.Error())
			}
			if !done {
				continue
			}
			// A close alone does not remove it from epoll: a child between fork and exec
			// has a copy. After the close another file may get the number.
			unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, int(ev.Fd), nil)
			w.mu.Lock()
			delete(w.pids, ev.Fd)
			w.mu.Unlock()
			unix.Close(int(ev.Fd))
			w.exited(pid, e)
		}
	}
}
