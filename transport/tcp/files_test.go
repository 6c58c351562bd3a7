// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/wire"
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
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	next, err := os.Open(os.DevNull) // the lowest number that is free
	if err != nil {
		t.Fatal(err)
	}
	low := old
	low.Cur = uint64(next.Fd())
	next.Close()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	_, err = ts[0].Connect(c)
	if rerr := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); rerr != nil {
		t.Fatal(rerr)
	}
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("without files: %v", err)
	}
	if _, err := ts[0].Connect(c); err != nil || len(ts[0].byProc) != 1 || ts[0].byProc[c.Proc].state != peerDialing {
		t.Errorf("with files: %v", err)
	}
}
