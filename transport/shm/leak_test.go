// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/test/testlab"
	"gompi/transport"
)

// TestConnectRelease connects and parts a thousand times: descriptors,
// mappings and the memory of the segments end where they began.
func TestConnectRelease(t *testing.T) {
	cycles := 1000
	if testing.Short() {
		cycles = 50
	}
	if testlab.Long() {
		cycles = 2 * dirCap
	}
	f := newFabric(nil)
	defer f.close()
	a, b := wire.ProcID{Job: 4, Serial: 1}, wire.ProcID{Job: 4, Serial: 2}
	ta, tb := f.open(t, a), f.open(t, b)
	defer ta.Close()
	defer tb.Close()
	cycle := func() {
		sa, err := ta.Connect(f.Contact(b, a))
		if err != nil {
			t.Fatal(err)
		}
		sb, err := tb.Connect(f.Contact(a, b))
		if err != nil {
			t.Fatal(err)
		}
		if ta.Send(sa, &wire.Header{7}, []byte("so long"), 0) != transport.Sent {
			t.Fatal("not sent")
		}
		ta.Release(sa)
		got := false
		for down := false; !down; {
			var ev [4]transport.Event
			for _, e := range ev[:tb.Poll(ev[:])] {
				got = got || e.Kind == transport.EvRecv && e.Header[0] == 7
				down = e.Kind == transport.EvDown
			}
		}
		if !got {
			t.Fatal("the last message is lost")
		}
		tb.Release(sb)
		ta.Poll(make([]transport.Event, 1))
		tb.Poll(make([]transport.Event, 1))
	}
	cycle()
	fds, maps := countFDs(t), countMaps(t)
	memA, memB := blocks(t, f.files[a][0]), blocks(t, f.files[b][0])
	for range cycles {
		cycle()
	}
	if a, b := ta.own.claimed.Load(), tb.own.claimed.Load(); a > 3 || b > 3 {
		t.Errorf("%d and %d directory entries in use by one connection at a time", a, b)
	}
	if n := countFDs(t); n > fds {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
	if n := countMaps(t); n > maps {
		t.Errorf("%d mappings, %d before", n, maps)
	}
	grown := 2 * (ta.shape.bytes() + pageBytes)
	if n := blocks(t, f.files[a][0]); n > memA+grown {
		t.Errorf("segment has %d bytes, %d before", n, memA)
	}
	if n := blocks(t, f.files[b][0]); n > memB+grown {
		t.Errorf("segment has %d bytes, %d before", n, memB)
	}
}

func countFDs(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

func countMaps(t *testing.T) int {
	t.Helper()
	m, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(m, []byte("memfd:gompi"))
}

// blocks is the memory behind a segment.
func blocks(t *testing.T, fd int) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// TestHalfMadeEntry: a process that died between claiming a directory entry
// and publishing it hides nobody who comes later.
func TestHalfMadeEntry(t *testing.T) {
	f := newFabric(nil)
	defer f.close()
	a := wire.ProcID{Job: 4, Serial: 1}
	ta := f.open(t, a)
	defer ta.Close()
	for i := range 5 {
		ta.own.claimed.Add(1) // the dead one
		b := wire.ProcID{Job: 4, Serial: uint32(2 + i)}
		tb := f.open(t, b)
		defer tb.Close()
		s, err := tb.Connect(f.Contact(a, b))
		if err != nil {
			t.Fatal(err)
		}
		if tb.Send(s, &wire.Header{1}, nil, 0) != transport.Sent {
			t.Fatal("not sent")
		}
		var ev [4]transport.Event
		if n := ta.Poll(ev[:]); n != 2 || ev[0].Kind != transport.EvUp || ev[0].Proc != b || ev[1].Kind != transport.EvRecv {
			t.Fatalf("%d events: %v", n, ev[:n])
		}
	}
	if n := ta.own.claimed.Load(); n > 7 {
		t.Errorf("5 connections and 5 of the dead have used %d entries", n)
	}
}
