// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/internal/control/protocol"
)

// DefaultName is the name of a head that is started without one.
const DefaultName = "default"

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName checks the name of a head.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("%.80q is no name of a head: up to 64 letters, digits, '.', '_' and '-', of which the first is a letter or a digit", name)
	}
	return nil
}

// prefix returns the common prefix of the socket names of this user's heads. The sockets
// are abstract: a name is free when the process has ended, and no file is left.
func prefix() string { return fmt.Sprintf("@gompi-head-%d-", os.Geteuid()) }

func address(name string) string { return prefix() + name }

// Heads returns the names of this user's heads on this host.
func Heads() ([]string, error) {
	list, err := protocol.ListenAddresses()
	var names []string
	for _, addr := range list {
		if name, ok := strings.CutPrefix(addr, prefix()); ok && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	return names, err
}

// peerPID returns the process at the other end, which must be this user's.
func peerPID(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid int
	var credErr error
	err = raw.Control(func(fd uintptr) { uid, pid, credErr = protocol.PeerOf(int(fd)) })
	if err = errors.Join(err, credErr); err != nil {
		return 0, err
	}
	if own := os.Geteuid(); uid != own {
		return 0, fmt.Errorf("user %d may not lease slots of user %d", uid, own)
	}
	return pid, nil
}

// dial connects to a head.
func dial(name string) (*net.UnixConn, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: address(name), Net: "unix"})
	if err != nil {
		names, _ := Heads()
		switch {
		case !errors.Is(err, unix.ECONNREFUSED):
			return nil, fmt.Errorf("head %s: %w", name, err)
		case len(names) == 0:
			return nil, fmt.Errorf("there is no head %s on this host: gompirun --head=%s makes one", name, name)
		}
		return nil, fmt.Errorf("there is no head %s on this host, but %s", name, strings.Join(names, ", "))
	}
	if err := protocol.CheckOwnerOf(c, false); err != nil {
		c.Close()
		return nil, fmt.Errorf("head %s: %w", name, err)
	}
	return c, nil
}
