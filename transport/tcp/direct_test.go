// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// TestDirectLinkWakes: epoll does not report the input of the direct link, but whoever is about to
// sleep hears of it, and of what has come before.
func TestDirectLinkWakes(t *testing.T) {
	p := newPinger(t, Options{})
	h := &wire.Header{askEcho}
	readable := func(msec int) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.t.FD()), Events: unix.POLLIN}}, msec)
		if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		return n == 1
	}
	for _, first := range []bool{true, false} { // whether Arm comes before the message
		for turns := 0; p.t.direct == nil; turns++ {
			if turns == 1<<16 {
				t.Fatal("a ping-pong makes no link direct")
			}
			p.message(h, nil)
		}
		l := p.t.direct
		if first && !p.t.Arm() {
			t.Fatal("Arm: not idle")
		}
		if st := p.t.Send(p.slot, h, nil, 1); st != transport.Sent {
			t.Fatalf("Send: status %d", st)
		}
		if !first {
			for have := 0; have == 0; { // the answer lies in the socket
				var err error
				if have, err = unix.IoctlGetInt(l.fd, unix.TIOCINQ); err != nil {
					t.Fatal(err)
				}
			}
			if readable(0) {
				t.Error("epoll reports the input of a direct link")
			}
			if !p.t.Arm() {
				t.Fatal("Arm: not idle")
			}
		}
		if !readable(int(waitLimit.Milliseconds())) {
			t.Fatalf("Arm first %v: the answer wakes nobody", first)
		}
		p.t.Disarm()
		for p.t.Poll(p.ev) == 0 {
		}
	}
}
