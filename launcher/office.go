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

// office is where a program that decides about the job is heard: a Unix socket, and a
// file with the secret that it must know. Both are the user's alone.
type office struct {
	path, secret string
	socket       net.Listener
	heard        func() // there may be a decision

	mu   sync.Mutex
	x    *rm.External
	conn net.Conn    // of the program; nil: nobody is there
	out  chan []byte // what its writer writes
}

// How long a program may take to say who it is, and to read a line.
const (
	helloWait = 10 * time.Second
	lineWait  = 10 * time.Second
)

// bindWait is how long a socket may be there that does not listen before it counts as left.
const bindWait = 100 * time.Millisecond

// secretEnd is the name of the secret's file behind that of the socket, and secretBytes its
// length: digits and a line's end.
const (
	secretEnd   = ".secret"
	secretBytes = 2*32 + 1
)

// newOffice makes the socket and the secret.
func newOffice(path string) (*office, error) {
	var key [32]byte
	if err := random(key[:]); err != nil {
		return nil, err
	}
	o := &office{path: path, secret: hex.EncodeToString(key[:])}
	if err := o.vacate(); err != nil {
		return nil, err
	}
	// The socket reserves the name: the secret is made after it and removed before it. The
	// socket listens when the secret is there: a program that has connected can read it.
	fd, err := bindAlone(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err = o.hand(); err == nil {
		if o.socket, err = listen(fd); err == nil {
			return o, nil
		}
		_ = removeIfThere(path + secretEnd)
	}
	_ = removeIfThere(path)
	return nil, err
}

// bindAlone makes a socket that is this user's alone from the beginning: the kernel gives
// the file the mode of the socket. The kernel refuses connections until the socket listens.
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

// listen takes connections at a bound socket, of which it keeps a copy. The listener removes
// the file when it is closed.
func listen(fd int) (net.Listener, error) {
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return nil, os.NewSyscallError("listen", err)
	}
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	f := os.NewFile(uintptr(again), "")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(true)
	return l, nil
}

// hand writes the secret into its file, which has all of it as soon as it is there.
func (o *office) hand() error {
	if err := removeSecret(o.path + secretEnd); err != nil {
		return err
	}
	begun := o.path + secretEnd + ".new"
	if err := removeSecret(begun); err != nil {
		return err
	}
	f, err := os.OpenFile(begun, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, o.secret)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(begun, o.path+secretEnd)
	}
	if err != nil {
		_ = os.Remove(begun)
	}
	return err
}

// vacate removes the socket that a gompirun that was killed has left.
func (o *office) vacate() error {
	st, err := os.Lstat(o.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s is there, and is no socket", o.path)
	}
	// One that is just being made does not listen yet.
	for until := time.Now().Add(bindWait); ; time.Sleep(bindWait / 20) {
		c, err := net.Dial("unix", o.path)
		if err == nil {
			c.Close()
			return fmt.Errorf("%s: another gompirun listens there", o.path)
		} else if !errors.Is(err, unix.ECONNREFUSED) {
			return err
		} else if time.Now().After(until) {
			return removeIfThere(o.path)
		}
	}
}

// removeSecret removes the secret that a gompirun that was killed has left, and no other
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

// close removes socket and secret.
func (o *office) close() {
	_ = removeIfThere(o.path + secretEnd)
	o.socket.Close() // removes the file, too
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leave()
}

// Step implements rm.ResourceManager.
func (o *office) Step(now time.Duration, events ...rm.Event) []rm.Decision {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.x.Step(now, events...)
	o.send()
	return list
}

// Next implements rm.ResourceManager.
func (o *office) Next() (time.Duration, bool) { return o.x.Next() }

// send passes on what the program is to be told; who does not read is left.
func (o *office) send() {
	lines, err := o.x.Take()
	for _, l := range lines {
		select {
		case o.out <- l:
		default:
			err = rm.ErrBehind
		}
	}
	if err != nil && o.conn != nil {
		launch.Say("--manager: %v: it is left", err)
		o.leave()
	}
}

// leave ends the connection.
func (o *office) leave() {
	if o.conn != nil {
		o.conn.Close()
		close(o.out)
		o.conn, o.out = nil, nil
		o.x.Leave()
	}
}

// serve hears one program after the other until the office is closed.
func (o *office) serve() {
	for {
		c, err := o.socket.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // too many descriptors
			continue
		}
		go o.hear(c)
	}
}

// hear takes the lines of one program.
func (o *office) hear(c net.Conn) {
	in := bufio.NewScanner(c)
	in.Buffer(make([]byte, 0, 512), rm.MaxLine+1)
	c.SetReadDeadline(time.Now().Add(helloWait))
	ok := in.Scan()
	o.mu.Lock()
	if o.conn != nil {
		o.mu.Unlock()
		o.turnAway(c, errors.New("another manager decides"))
		return
	}
	err := in.Err()
	if ok {
		err = o.x.Hear(bytes.Clone(in.Bytes()))
	}
	if !ok || err != nil {
		o.x.Leave()
		o.mu.Unlock()
		o.turnAway(c, err)
		return
	}
	o.conn, o.out = c, make(chan []byte, 1<<13)
	go write(c, o.out)
	o.send()
	o.mu.Unlock()
	c.SetReadDeadline(time.Time{})
	for in.Scan() {
		o.mu.Lock()
		if o.conn != c {
			o.mu.Unlock()
			return
		}
		if err = o.x.Hear(in.Bytes()); err == nil {
			o.send()
		}
		o.mu.Unlock()
		if err != nil {
			break
		}
		o.heard()
	}
	if err == nil {
		err = in.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn == c {
		if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, unix.ECONNRESET) {
			launch.Say("--manager: %v: it is left", err)
		}
		o.leave()
	}
}

// turnAway says to a program why it is not heard.
func (o *office) turnAway(c net.Conn, why error) {
	defer c.Close()
	if why != nil {
		c.SetWriteDeadline(time.Now().Add(lineWait))
		_ = json.NewEncoder(c).Encode(map[string]any{"event": "refused", "line": 1, "text": why.Error()})
	}
}

// write writes lines until there are no more.
func write(c net.Conn, lines <-chan []byte) {
	for l := range lines {
		c.SetWriteDeadline(time.Now().Add(lineWait))
		if _, err := c.Write(l); err != nil {
			c.Close() // the reader sees that
			break
		}
	}
	for range lines {
	}
}
