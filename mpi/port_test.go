// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
)

// lookup waits until a service is published.
func lookup(t *mpitest.T, p *mpi.Process, service string) string {
	t.Helper()
	for {
		port, err := p.LookupName(service)
		if err == nil {
			return port
		}
		wantError(t, err, mpi.ErrName, service)
		<-time.After(time.Millisecond)
	}
}

// Two groups meet at a port that is found by a service, whoever comes first, and again.
func TestPorts(t *testing.T) {
	overAll(t, 5, func(t *mpitest.T, w *mpi.Comm) {
		p, server := w.Process(), w.Rank() < 2
		color := 1
		if server {
			color = 0
		}
		c, err := w.Split(color, 0)
		must(t, err)
		for round := range 4 {
			root := round % 2
			port := ""
			if c.Rank() == root {
				if server {
					port, err = p.OpenPort()
					must(t, err)
					must(t, p.PublishName("service", port))
				} else {
					port = lookup(t, p, "service")
				}
			}
			if late := round < 2; late == server { // one side is late
				<-time.After(5 * time.Millisecond)
			}
			meet := c.Connect
			if server {
				meet = c.Accept
			}
			d, err := meet(port, root)
			must(t, err)
			if d.Size() != c.Size() || d.RemoteSize() != 5-c.Size() {
				t.Fatalf("%d meet %d", d.Size(), d.RemoteSize())
			}
			n, err := mpi.AllreduceOne(d, c.Size(), mpi.Sum)
			must(t, err)
			if n != d.RemoteSize()*d.RemoteSize() {
				t.Fatalf("the sum of %d others is %d", d.RemoteSize(), n)
			}
			must(t, d.Disconnect())
			if server && c.Rank() == root {
				wantError(t, p.UnpublishName("service", "elsewhere"), mpi.ErrService)
				must(t, p.UnpublishName("service", port))
				must(t, p.ClosePort(port))
			}
			must(t, w.Barrier())
		}
	})
}

// What is wrong with ports and services is said, and who waits is not forgotten.
func TestPortErrors(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		p := w.Process()
		self := p.Self()
		switch w.Rank() {
		case 0:
			_, err := self.Connect("nowhere", 0)
			wantError(t, err, mpi.ErrPort, "nowhere")
			_, err = self.Accept("", 0)
			wantError(t, err, mpi.ErrPort)
			wantError(t, p.ClosePort("nowhere"), mpi.ErrPort)
			wantError(t, p.UnpublishName("nobody", ""), mpi.ErrService)
			wantError(t, p.PublishName("", "x"), mpi.ErrService)
			_, err = p.LookupName(strings.Repeat("x", 2000))
			wantError(t, err, mpi.ErrName)
			port, err := p.OpenPort()
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			_, err = self.WithContext(ctx).Accept(port, 0)
			wantError(t, err, mpi.ErrCancelled)
			must(t, p.PublishName("mine", port))
			must(t, w.Barrier())
			<-time.After(5 * time.Millisecond) // they wait
			must(t, p.ClosePort(port))
			must(t, w.Barrier())
			must(t, p.UnpublishName("mine", port))
			must(t, w.Barrier())
		default:
			must(t, w.Barrier())
			wantError(t, p.PublishName("mine", "other"), mpi.ErrService, "already")
			wantError(t, p.UnpublishName("mine", ""), mpi.ErrService)
			port := lookup(t, p, "mine")
			wantError(t, p.ClosePort(port), mpi.ErrPort, "another")
			_, err := self.Connect(port, 0)
			wantError(t, err, mpi.ErrPort, port)
			must(t, w.Barrier())
			must(t, w.Barrier())
			_, err = p.LookupName("mine")
			wantError(t, err, mpi.ErrName)
		}
	})
}

// A port and a service end with the process that has made them, and a group that waits
// there is told.
func TestPortOfTheDead(t *testing.T) {
	overAll(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		p := w.Process()
		if w.Rank() == 0 {
			port, err := p.OpenPort()
			must(t, err)
			must(t, p.PublishName("dying", port))
			_, err = mpi.Recv(w, make([]int, 1), 1, 0)
			must(t, err)
			<-time.After(5 * time.Millisecond)
			t.Kill(-1)
		}
		c, err := w.CreateGroup(must1(t)(w.Group().Incl([]int{1, 2})), 1)
		must(t, err)
		port := lookup(t, p, "dying")
		if w.Rank() == 1 {
			must(t, mpi.Send(w, []int{1}, 0, 0))
		}
		_, err = c.Connect(port, 0)
		wantError(t, err, mpi.ErrPort)
		_, err = p.LookupName("dying")
		wantError(t, err, mpi.ErrName)
	})
}

func must1(t *mpitest.T) func(mpi.Group, error) mpi.Group {
	return func(g mpi.Group, err error) mpi.Group {
		t.Helper()
		must(t, err)
		return g
	}
}

// Two processes that have a connection of their own join; those of jobs elsewhere are nobody.
func TestJoin(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	overAll(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		conn := []net.Conn{a, b}[w.Rank()]
		c, err := w.Process().Join(t.Context(), conn)
		must(t, err)
		n, err := mpi.AllreduceOne(c, w.Rank(), mpi.Sum)
		must(t, err)
		if n != 1-w.Rank() || c.RemoteSize() != 1 {
			t.Fatalf("the other is %d", n)
		}
		must(t, c.Disconnect())
		if w.Rank() == 0 {
			c, err := w.Process().Join(t.Context(), conn)
			if c != nil || err != nil {
				t.Fatalf("joined with %v of another job, %v", c, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			_, err = w.Process().Join(ctx, conn)
			wantError(t, err, mpi.ErrCancelled)
			must(t, conn.SetDeadline(time.Time{}))
		} else {
			in := make([]byte, 40)
			_, err := conn.Read(in)
			stranger := append([]byte("gompi-join-2"), make([]byte, 28)...)
			binary.LittleEndian.PutUint64(stranger[12:], 1)
			_, werr := conn.Write(stranger)
			must(t, errors.Join(err, werr))
		}
		must(t, w.Barrier())
	})
}

// portOf is a port that rank 0 opens.
func portOf(t *mpitest.T, w *mpi.Comm) string {
	t.Helper()
	name := make([]byte, 100)
	if w.Rank() == 0 {
		port, err := w.Process().OpenPort()
		must(t, err)
		copy(name, port)
	}
	must(t, mpi.Bcast(w, name, 0))
	return strings.TrimRight(string(name), "\x00")
}

// A group that has given up its call at a port meets nobody by that: who comes then meets
// the next one.
func TestGivenUpPorts(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		self := w.Process().Self()
		port := portOf(t, w)
		for round := range 120 {
			quits := w.Rank() == round%2
			call := (*mpi.Comm).Connect
			if w.Rank() == 0 {
				call = (*mpi.Comm).Accept
			}
			if quits {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round%6)*200*time.Microsecond)
				_, err := call(self.WithContext(ctx), port, 0)
				cancel()
				wantError(t, err, mpi.ErrCancelled)
			}
			must(t, w.Barrier())
			d, err := call(self, port, 0)
			must(t, err)
			must(t, d.Barrier())
			must(t, d.Free())
		}
	})
}

// A group of which one rank gives up while the root waits at the port has left the port: who
// comes then meets the next group.
func TestGivenUpByMember(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.Split(w.Rank()/2, 0)
		must(t, err)
		port := portOf(t, w)
		switch w.Rank() {
		case 0:
			_, err := c.Accept(port, 0)
			wantError(t, err, mpi.ErrRevoked)
		case 1:
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			_, err := c.WithContext(ctx).Accept(port, 0)
			if !errors.Is(err, mpi.ErrCancelled) && !errors.Is(err, mpi.ErrRevoked) {
				t.Errorf("the rank that gives up: %v", err)
			}
		}
		must(t, w.Barrier())
		next, err := w.Split(w.Rank()/2, 0)
		must(t, err)
		call := (*mpi.Comm).Connect
		if w.Rank() < 2 {
			call = (*mpi.Comm).Accept
			_, err := c.Accept(port, 0) // a group that cannot talk meets nobody
			wantError(t, err, mpi.ErrRevoked)
			_, _, err = mpi.CommSpawn(c, mpi.Command{}, 0)
			wantError(t, err, mpi.ErrRevoked)
		}
		d, err := call(next, port, 0)
		must(t, err)
		must(t, d.Barrier())
		must(t, d.Free())
	})
}

// A rank whose context has ended before the call refuses it for its group, which meets
// nobody, and goes on with the communicator.
func TestGivenUpBefore(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, w *mpi.Comm) {
		c, err := w.Split(w.Rank()/2, 0)
		must(t, err)
		port := portOf(t, w)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		switch w.Rank() {
		case 0:
			_, err := c.Accept(port, 0)
			wantError(t, err, mpi.ErrAborted)
		case 1:
			_, err := c.WithContext(over).Accept(port, 0)
			wantError(t, err, mpi.ErrCancelled)
		}
		must(t, w.Barrier())
		call := (*mpi.Comm).Connect
		if w.Rank() < 2 {
			call = (*mpi.Comm).Accept
			must(t, c.Barrier())
		}
		d, err := call(c, port, 0)
		must(t, err)
		must(t, d.Barrier())
		must(t, d.Free())
	})
}
