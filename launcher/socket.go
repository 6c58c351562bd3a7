// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/launch"
	"gompi/launcher/rm"
)

// rmSocket is the manager for a program that connects to a Unix socket. The program must
// know the secret in a file beside it. Both belong to this user alone.
type rmSocket struct {
	path, secret string
	socket       net.Listener
	decided      func() // called when there may be a decision

	mu      sync.Mutex
	manager *rm.External
	conn    net.Conn    // of the program; nil: no program is connected
	out     chan []byte // lines for the goroutine that writes to conn
}

// Time limits for a program to send its first line, and to read a line.
const (
	helloWait = 10 * time.Second
	lineWait  = 10 * time.Second
)

// bindWait is how long a socket that does not listen may exist before it counts as stale.
const bindWait = 100 * time.Millisecond

// secretEnd is the suffix of the secret's file name, and secretBytes its length: digits
// and the end of the line.
const (
	secretEnd   = ".secret"
	secretBytes = 2*32 + 1
)

// newRMSocket makes the socket and the secret.
func newRMSocket(path string) (*rmSocket, error) {
	var key [32]byte
	if err := random(key[:]); err != nil {
		return nil, err
	}
	s := &rmSocket{path: path, secret: hex.EncodeToString(key[:])}
	if err := s.removeStale(); err != nil {
		return nil, err
	}
	// The socket reserves the name: the secret is made after it and removed before it. The
	// socket listens only when the secret is there, so a program that has connected can
	// read it.
	fd, err := bindAlone(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err = s.writeSecret(); err == nil {
		if s.socket, err = listen(fd); err == nil {
			return s, nil
		}
		_ = removeIfThere(path + secretEnd)
	}
	_ = removeIfThere(path)
	return nil, err
}

// bindAlone makes a socket that belongs to this user alone from the beginning: the kernel
// gives the file the mode of the socket. The kernel refuses connections until the socket
// listens.
func bindAlone(path string) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err = unix.Fchmod(fd, 0o600); err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	}
	if err != nil {
		unix.Close(fd)
		return -1, &os.PathError{Op: "bind", Path: path, Err: err}
	}
	return fd, nil
}

// listen takes connections at a copy of a bound socket. The listener removes the file when
// it is closed.
func listen(fd int) (net.Listener, error) {
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return nil, os.NewSyscallError("listen", err)
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	f := os.NewFile(uintptr(dup), "")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(true)
	return l, nil
}

// writeSecret writes the secret file, which is complete as soon as it exists.
func (s *rmSocket) writeSecret() error {
	if err := removeSecret(s.path + secretEnd); err != nil {
		return err
	}
	temporary := s.path + secretEnd + ".new"
	if err := removeSecret(temporary); err != nil {
		return err
	}
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, s.secret)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, s.path+secretEnd)
	}
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}

// removeStale removes a socket that was left by a gompirun that was killed.
func (s *rmSocket) removeStale() error {
	st, err := os.Lstat(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s is there, and is no socket", s.path)
	}
	// A socket that is being made does not listen yet.
	for until := time.Now().Add(bindWait); ; time.Sleep(bindWait / 20) {
		c, err := net.Dial("unix", s.path)
		if err == nil {
			c.Close()
			return fmt.Errorf("%s: another gompirun listens there", s.path)
		} else if !errors.Is(err, unix.ECONNREFUSED) {
			return err
		} else if time.Now().After(until) {
			return removeIfThere(s.path)
		}
	}
}

// removeSecret removes a secret that was left by a gompirun that was killed, and no other
// file.
func removeSecret(path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.Mode().IsRegular() || st.Mode().Perm() != 0o600 || st.Size() != 0 && st.Size() != secretBytes:
		return fmt.Errorf("%s is there, and is no secret of a gompirun", path)
	}
	return removeIfThere(path)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// close removes the socket and the secret.
func (s *rmSocket) close() {
	_ = removeIfThere(s.path + secretEnd)
	s.socket.Close() // also removes the file
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnect()
}

// Step implements rm.ResourceManager.
func (s *rmSocket) Step(now time.Duration, events ...rm.Event) []rm.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.manager.Step(now, events...)
	s.send()
	return list
}

// Next implements rm.ResourceManager.
func (s *rmSocket) Next() (time.Duration, bool) { return s.manager.Next() }

// send passes lines to the program. A program that does not read is disconnected.
func (s *rmSocket) send() {
	lines, err := s.manager.Take()
	for _, l := range lines {
		select {
		case s.out <- l:
		default:
			err = rm.ErrBehind
		}
	}
	if err != nil && s.conn != nil {
		launch.Say("--manager: %v: it is disconnected", err)
		s.disconnect()
	}
}

// disconnect ends the connection. The caller holds mu.
func (s *rmSocket) disconnect() {
	if s.conn != nil {
		s.conn.Close()
		close(s.out)
		s.conn, s.out = nil, nil
		s.manager.Leave()
	}
}

// serve takes one program after the other until the socket is closed.
func (s *rmSocket) serve() {
	for {
		c, err := s.socket.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // too many descriptors
			continue
		}
		go s.read(c)
	}
}

// read takes the lines of one program.
func (s *rmSocket) read(c net.Conn) {
	in := bufio.NewScanner(c)
	in.Buffer(make([]byte, 0, 512), rm.MaxLine+1)
	c.SetReadDeadline(time.Now().Add(helloWait))
	ok := in.Scan()
	s.mu.Lock()
	if s.conn != nil {
		s.mu.Unlock()
		s.refuse(c, errors.New("another manager decides"))
		return
	}
	err := in.Err()
	if ok {
		err = s.manager.Hear(bytes.Clone(in.Bytes()))
	}
	if !ok || err != nil {
		s.manager.Leave()
		s.mu.Unlock()
		s.refuse(c, err)
		return
	}
	s.conn, s.out = c, make(chan []byte, 1<<13)
	go write(c, s.out)
	s.send()
	s.mu.Unlock()
	c.SetReadDeadline(time.Time{})
	for in.Scan() {
		s.mu.Lock()
		if s.conn != c {
			s.mu.Unlock()
			return
		}
		if err = s.manager.Hear(in.Bytes()); err == nil {
			s.send()
		}
		s.mu.Unlock()
		if err != nil {
			break
		}
		s.decided()
	}
	if err == nil {
		err = in.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == c {
		if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, unix.ECONNRESET) {
			launch.Say("--manager: %v: it is disconnected", err)
		}
		s.disconnect()
	}
}

// refuse tells a program why it is not accepted.
func (s *rmSocket) refuse(c net.Conn, why error) {
	defer c.Close()
	if why != nil {
		c.SetWriteDeadline(time.Now().Add(lineWait))
		_ = json.NewEncoder(c).Encode(map[string]any{"event": "refused", "line": 1, "text": why.Error()})
	}
}

// write writes lines until the channel is closed.
func write(c net.Conn, lines <-chan []byte) {
	for l := range lines {
		c.SetWriteDeadline(time.Now().Add(lineWait))
		if _, err := c.Write(l); err != nil {
			c.Close() // the reader sees the close
			break
		}
	}
	for range lines {
	}
}
