// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"os"

	"golang.org/x/sys/unix"
)

// follow ends the connection when the process at its other end has ended, which
// nobody else may see: it is no child of the launcher, and what it has forked may
// hold its socket. What it said last is still read. Where that is not possible
// the end of the connection itself has to do.
func (p *peer) follow() {
	if p.pid == 0 {
		return
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == unix.ESRCH {
		close(p.gone)
		p.lastRead()
		return
	}
	if err != nil {
		return
	}
	if unix.SetNonblock(fd, true) != nil { // for Go's poller
		unix.Close(fd)
		return
	}
	p.pidfd = os.NewFile(uintptr(fd), "pidfd")
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return
	}
	go func() {
		ended := false
		err := raw.Read(func(fd uintptr) bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			ended = n > 0
			return ended
		})
		if err == nil && ended {
			close(p.gone)
			p.lastRead()
		}
	}()
}

// unfollow ends follow; gone may never be closed then.
func (p *peer) unfollow() {
	if p.pidfd != nil {
		p.pidfd.Close()
	}
}
