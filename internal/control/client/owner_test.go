// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// as runs f on a thread that has another effective user.
func as(t *testing.T, uid int, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := func(uid int) { // of this thread alone
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
			t.Fatalf("user %d: %v", uid, e)
		}
	}
	own := os.Geteuid()
	set(uid)
	defer set(own)
	f()
}

// Nobody is shown a token who is another user, and nobody's tool talks to another but root's.
func TestOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can listen as another user")
	}
	const stranger, own = 65534, 4321
	listen := func(uid int) (l *net.UnixListener) {
		as(t, uid, func() {
			var err error
			if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("@gompi-test-%d-%d", os.Getpid(), uid), Net: "unix"}); err != nil {
				t.Fatal(err)
			}
		})
		t.Cleanup(func() { l.Close() })
		return l
	}
	sockets := map[int]*net.UnixListener{0: listen(0), own: listen(own), stranger: listen(stranger)}
	token := strings.Repeat("00", protocol.TokenBytes)
	for _, c := range []struct {
		uid, owner int
		tool, ok   bool
	}{
		{0, 0, false, true}, {0, stranger, false, false}, {0, stranger, true, true},
		{own, own, false, true}, {own, 0, false, true}, {own, own, true, true}, {own, 0, true, true},
		{own, stranger, false, false}, {own, stranger, true, false},
	} {
		said := controltest.Async(t, func() error {
			conn, err := sockets[c.owner].AcceptUnix()
			if err != nil {
				return err
			}
			defer conn.Close()
			if n, _ := conn.Read(make([]byte, 100)); (n > 0) != c.ok {
				return fmt.Errorf("hears %d bytes", n)
			}
			return nil
		})
		var err error
		as(t, c.uid, func() {
			addr := sockets[c.owner].Addr().String()
			if !c.tool {
				_, _, err = Dial(addr, token)
				return
			}
			var tool *Tool
			if tool, err = DialTool(t.Context(), addr); err == nil {
				tool.Close()
			}
		})
		var other *protocol.OwnerError
		if refused := errors.As(err, &other); refused == c.ok || refused && (other.Owner != c.owner || other.Own != c.uid) {
			t.Errorf("%+v: %v", c, err)
		}
		if err := said(); err != nil {
			t.Errorf("%+v: the other end %v", c, err)
		}
	}
}
