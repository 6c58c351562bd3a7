// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/wire"
)

// deaf is a client whose head reads only when the test does.
func deaf(t *testing.T) (*Client, *net.UnixConn) {
	t.Helper()
	before := leftovers()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		conn, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = conn.(*net.UnixConn)
	}
	c := newClient(ends[0], newFDReader(ends[0]))
	t.Cleanup(func() {
		c.Close()
		ends[1].Close()
		waitFor(t, fmt.Sprintf("nothing left beyond %+v", before), func() bool { return leftovers().within(before) })
	})
	return c, ends[1]
}

func serial(i int) wire.ProcID { return wire.ProcID{Job: 7, Serial: uint32(i + 1)} }

// tellAll makes n calls that only tell, in turn a Watch and a Dead.
func tellAll(c *Client, n int) error {
	for i := range n {
		var err error
		if i%2 == 0 {
			err = c.Watch(wire.MembersOf(serial(i)))
		} else {
			err = c.Dead(serial(i))
		}
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// hearAll reads what tellAll told.
func hearAll(in *fdReader, n int) error {
	for i := range n {
		f, _, err := in.next()
		if err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
		var got wire.ProcID
		switch {
		case i%2 == 0 && f.kind == kWatch:
			m := membersMsg{k: kWatch}
			if err = decode(&m, f.body); err == nil && m.members.Len() == 1 {
				got = m.members.At(0)
			}
		case i%2 == 1 && f.kind == kDead:
			m := procMsg{k: kDead}
			err = decode(&m, f.body)
			got = m.proc
		}
		if err != nil || got != serial(i) {
			return fmt.Errorf("frame %d has kind %d and process %v, %v; want %v", i, f.kind, got, err, serial(i))
		}
	}
	return nil
}

// many calls are more than any socket holds.
const many = 50000

func TestTellNeverWaits(t *testing.T) {
	c, head := deaf(t)
	goroutines := leftovers().goroutines
	if err := async(t, func() error { return tellAll(c, many) })(); err != nil {
		t.Fatal(err)
	}
	// Nothing was read yet, so a goroutine that waited for one of these calls
	// would still be there. The one that made them may be on its way out.
	waitFor(t, fmt.Sprintf("no more than %d goroutines", goroutines), func() bool { return leftovers().goroutines <= goroutines })
	c.out.mu.Lock()
	if c.out.unsent() < softUnsent {
		t.Errorf("%d bytes are unsent; the socket holds too much for this test", c.out.unsent())
	}
	c.out.mu.Unlock()
	// A request finds no room, and its context ends it.
	ctx, cancel := context.WithCancel(bg)
	get := async(t, func() error { _, err := c.Get(ctx, "k", true); return err })
	cancel()
	if err := get(); !errors.Is(err, context.Canceled) {
		t.Errorf("Get without room: %v", err)
	}
	// The next one comes after all that was told.
	get = async(t, func() error { _, err := c.Get(bg, "k", true); return err })
	in := newFDReader(head)
	if err := async(t, func() error { return hearAll(in, many) })(); err != nil {
		t.Fatal(err)
	}
	f, _, err := in.next()
	for err == nil && f.kind == kCancel {
		f, _, err = in.next()
	}
	if err != nil || f.kind != kGet {
		t.Fatalf("frame of kind %d, %v; want the Get", f.kind, err)
	}
	if _, err := head.Write(appendFrame(nil, f.id, 0, failure(notFound("nothing")))); err != nil {
		t.Fatal(err)
	}
	if err := get(); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
}

// some calls are more than a socket holds, and little to read in closeWait.
const some = many / 4

func TestCloseFlushes(t *testing.T) {
	c, head := deaf(t)
	if err := tellAll(c, some); err != nil {
		t.Fatal(err)
	}
	in := newFDReader(head)
	heard := async(t, func() error { return hearAll(in, some) })
	c.Close()
	if err := heard(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := in.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
	if err := c.Dead(serial(0)); !errors.Is(err, ErrClosed) {
		t.Errorf("Dead after Close: %v", err)
	}
}

func TestCloseWithDeafHead(t *testing.T) {
	c, _ := deaf(t)
	if err := tellAll(c, many); err != nil {
		t.Fatal(err)
	}
	waiting := async(t, c.Finalize)
	if err := async(t, c.Close)(); err != nil {
		t.Fatal(err)
	}
	if err := waiting(); !errors.Is(err, ErrClosed) {
		t.Errorf("Finalize: %v", err)
	}
}

// A head that leaves too much unread is given up.
func TestTellTooMuch(t *testing.T) {
	c, _ := deaf(t)
	text := make([]byte, MaxReport)
	err := async(t, func() error {
		for range 2 * hardUnsent / MaxReport {
			if err := c.Stacks(1, nil, text); err != nil {
				return err
			}
		}
		return nil
	})()
	for range 2 {
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "bytes unread") {
			t.Errorf("error is %v", err)
		}
		err = async(t, func() error { _, err := c.Next(); return err })()
	}
}

// What the head says last is the reason, not the failed write.
func TestTellAfterBye(t *testing.T) {
	c, head := deaf(t)
	if _, err := head.Write(appendFrame(nil, 0, 0, &textMsg{kBye, "go away"})); err != nil {
		t.Fatal(err)
	}
	head.Close()
	if _, err := c.Next(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "go away") {
		t.Errorf("Next: %v", err)
	}
	if err := c.Dead(serial(0)); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "go away") {
		t.Errorf("Dead: %v", err)
	}
}

// A server that is held up gets all Watches and acts on them.
func TestWatchOfHeldServer(t *testing.T) {
	r := newRig(t, 2, nil)
	a, b := r.join(0), r.join(1)
	r.Server.mu.Lock()
	told := async(t, func() error {
		for range many {
			if err := a.Watch(wire.MembersOf(b.id)); err != nil {
				return err
			}
		}
		return nil
	})()
	r.Server.mu.Unlock()
	a.must(told)
	a.must(b.Finalize())
	a.expect(EvGone, b.id)
}
