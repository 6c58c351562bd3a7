// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"errors"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
)

// A process that can open no more files says so, and connects when it can.
func TestConnectWithoutFiles(t *testing.T) {
	var ts [2]*Transport
	for i := range ts {
		tr, err := Open(testEnv(uint32(i+1)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		ts[i] = tr
	}
	c := wire.Contact{Proc: testEnv(2).Self, Addrs: ts[1].Addrs(), Segment: -1, Bell: -1}
	next, err := os.Open(os.DevNull) // the lowest number that is free
	if err != nil {
		t.Fatal(err)
	}
	low := next.Fd()
	next.Close()
	restore := limitFiles(t, low)
	_, err = ts[0].Connect(c)
	restore()
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("without files: %v", err)
	}
	if _, err := ts[0].Connect(c); err != nil || len(ts[0].byProc) != 1 || ts[0].byProc[c.Proc].state != peerDialing {
		t.Errorf("with files: %v", err)
	}
}

// A process that can open no more files when it has to dial again does so when
// it can.
func TestRedialWithoutFiles(t *testing.T) {
	p, q := open(t, 1, Options{}), open(t, 2, Options{})
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	c := wire.Contact{Proc: q.env.Self, Addrs: append([]string{deaf.Addr().String()}, q.Addrs()...), Segment: -1, Bell: -1}
	if _, err := p.Connect(c); err != nil {
		t.Fatal(err)
	}
	to := p.byProc[c.Proc]
	fd := to.link.fd
	hung, err := deaf.Accept()
	if err != nil {
		t.Fatal(err)
	}
	hung.Close()
	restore := limitFiles(t, uintptr(fd)) // what the link gives back is too much
	until(t, "a dial without files", func() bool { return to.link == nil }, p)
	if to.state != peerDialing || len(p.redials) != 1 || len(p.events) != 0 {
		t.Errorf("without files: state %d, %d to be dialled later, events %v", to.state, len(p.redials), p.events)
	}
	deaf.Close()
	restore()
	until(t, "the connection", func() bool { return to.state == peerUp }, p, q)
	if len(p.redials) != 0 {
		t.Errorf("%d peers are to be dialled later", len(p.redials))
	}
}

// limitFiles allows descriptors below n only, until restore.
func limitFiles(t *testing.T, n uintptr) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	low := old
	low.Cur = uint64(n)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
	}
}
