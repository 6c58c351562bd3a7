// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package client

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// socket is a stream socket to an agent, without what Linux adds: no
// descriptors.
type socket struct {
	*net.UnixConn
	until time.Time // for receive, before poll
}

const passes = false

func oobBytes() int { return 0 }

const errBusy = syscall.EAGAIN

func dialSocket(addr string) (*socket, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return &socket{UnixConn: conn}, nil
}

func (s *socket) poll() error {
	s.until = time.Time{}
	return s.SetDeadline(time.Time{})
}

func (s *socket) receive(b, _ []byte) (n, oobn, flags int, err error) {
	if !s.until.IsZero() {
		if err := s.SetDeadline(s.until); err != nil {
			return 0, 0, 0, err
		}
	}
	n, err = s.Read(b)
	if errors.Is(err, net.ErrClosed) {
		err = os.ErrClosed
	}
	return n, 0, 0, err
}

// trySend may send all, as nobody knows what the kernel takes at once.
func (s *socket) trySend(b []byte) int {
	if s.until.IsZero() {
		return 0
	}
	n, _ := s.Write(b)
	return n
}

func (*fdReader) claim([]byte, int) error { return nil }

func closeFDs([]int) {}

func becomeStdin(int) {}
