// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// deaf is a client whose head reads only when the test does.
func deaf(t *testing.T) (*Client, *socket) {
	t.Helper()
	before := controltest.Leftovers()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*socket
	for i, fd := range fds {
		if ends[i], err = newSocket(fd); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient(ends[0], newFDReader(ends[0]))
	t.Cleanup(func() {
		c.Close()
		ends[1].Close()
		controltest.WaitFor(t, fmt.Sprintf("nothing left beyond %+v", before), func() bool { return controltest.Leftovers().Within(before) })
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
		case i%2 == 0 && f.Kind == protocol.KindWatch:
			m := protocol.Members{Kind: protocol.KindWatch}
			if err = protocol.Decode(&m, f.Body); err == nil && m.Members.Len() == 1 {
				got = m.Members.At(0)
			}
		case i%2 == 1 && f.Kind == protocol.KindDead:
			m := protocol.Proc{Kind: protocol.KindDead}
			err = protocol.Decode(&m, f.Body)
			got = m.Proc
		}
		if err != nil || got != serial(i) {
			return fmt.Errorf("frame %d has kind %d and process %v, %v; want %v", i, f.Kind, got, err, serial(i))
		}
	}
	return nil
}

// many calls are more than any socket holds.
const many = 50000

func TestTellNeverWaits(t *testing.T) {
	c, head := deaf(t)
	goroutines := controltest.Leftovers().Goroutines + 1 // the writer
	if err := controltest.Async(t, func() error { return tellAll(c, many) })(); err != nil {
		t.Fatal(err)
	}
	// Nothing was read yet, so a goroutine that waited for one of these calls
	// would still be there. The one that made them may be on its way out.
	controltest.WaitFor(t, fmt.Sprintf("no more than %d goroutines", goroutines), func() bool { return controltest.Leftovers().Goroutines <= goroutines })
	c.out.mu.Lock()
	if c.out.unsent() < softUnsent {
		t.Errorf("%d bytes are unsent; the socket holds too much for this test", c.out.unsent())
	}
	c.out.mu.Unlock()
	// A request finds no room, and its context ends it.
	ctx, cancel := context.WithCancel(context.Background())
	get := controltest.Async(t, func() error { _, err := c.Get(ctx, "k", true); return err })
	cancel()
	if err := get(); !errors.Is(err, context.Canceled) {
		t.Errorf("Get without room: %v", err)
	}
	// The next one comes after all that was told.
	get = controltest.Async(t, func() error { _, err := c.Get(context.Background(), "k", true); return err })
	in := newFDReader(head)
	if err := controltest.Async(t, func() error { return hearAll(in, many) })(); err != nil {
		t.Fatal(err)
	}
	f, _, err := in.next()
	for err == nil && f.Kind == protocol.KindCancel {
		f, _, err = in.next()
	}
	if err != nil || f.Kind != protocol.KindGet {
		t.Fatalf("%v frame, %v; want the Get", f.Kind, err)
	}
	if _, err := head.Write(protocol.ShortFrame(f.ID, 0, protocol.Failure(protocol.NotFound("nothing")))); err != nil {
		t.Fatal(err)
	}
	if err := get(); !errors.Is(err, protocol.ErrNotFound) {
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
	heard := controltest.Async(t, func() error { return hearAll(in, some) })
	c.Close()
	if err := heard(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := in.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
	if err := c.Dead(serial(0)); !errors.Is(err, protocol.ErrClosed) {
		t.Errorf("Dead after Close: %v", err)
	}
}

func TestCloseWithDeafHead(t *testing.T) {
	c, _ := deaf(t)
	if err := tellAll(c, many); err != nil {
		t.Fatal(err)
	}
	waiting := controltest.Async(t, c.Finalize)
	if err := controltest.Async(t, c.Close)(); err != nil {
		t.Fatal(err)
	}
	if err := waiting(); !errors.Is(err, protocol.ErrClosed) {
		t.Errorf("Finalize: %v", err)
	}
}

// A head that leaves too much unread is given up.
func TestTellTooMuch(t *testing.T) {
	c, _ := deaf(t)
	text := make([]byte, protocol.MaxReport)
	err := controltest.Async(t, func() error {
		for range 2 * hardUnsent / protocol.MaxReport {
			if err := c.Stacks(protocol.Stacks{ID: 1, Stacks: text}); err != nil {
				return err
			}
		}
		return nil
	})()
	for range 2 {
		if !errors.Is(err, protocol.ErrLost) || !strings.Contains(err.Error(), "bytes unread") {
			t.Errorf("error is %v", err)
		}
		err = controltest.Async(t, func() error { _, err := c.Next(); return err })()
	}
}

// What the head says last is the reason, not the failed write.
func TestTellAfterBye(t *testing.T) {
	c, head := deaf(t)
	if _, err := head.Write(protocol.ShortFrame(0, 0, &protocol.Text{Kind: protocol.KindBye, Text: "go away"})); err != nil {
		t.Fatal(err)
	}
	head.Close()
	if _, err := c.Next(); !errors.Is(err, protocol.ErrLost) || !strings.Contains(err.Error(), "go away") {
		t.Errorf("Next: %v", err)
	}
	if err := c.Dead(serial(0)); !errors.Is(err, protocol.ErrLost) || !strings.Contains(err.Error(), "go away") {
		t.Errorf("Dead: %v", err)
	}
}
