// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package client

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// socket is a stream socket to an agent. Only on Linux frames come with their descriptors.
type socket struct{ *net.UnixConn }

const passes = false

func oobBytes() int { return 0 }

const errBusy = syscall.EAGAIN

func dialSocket(addr string, _ bool) (*socket, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return &socket{conn}, nil
}

func (s *socket) receive(b, _ []byte) (n, oobn, flags int, err error) {
	n, err = s.Read(b)
	if errors.Is(err, net.ErrClosed) {
		err = os.ErrClosed
	}
	return n, 0, 0, err
}

// trySend sends nothing, since there is no portable call that does not wait.
func (s *socket) trySend([]byte) int { return 0 }

func (*fdReader) claim([]byte, int) error { return nil }

func becomeStdin(int) {}
