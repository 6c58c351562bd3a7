// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// jobs runs two jobs beside each other, of so many ranks, over each transport by which
// their own ranks may talk. What a job sends, its ranks have from the other's.
func jobs(t *testing.T, ranks [2]int, f func(t *mpitest.T, side int, w *mpi.Comm, told [2]chan string)) {
	for _, tr := range []string{"shm", "tcp"} {
		t.Run(tr, func(t *testing.T) {
			told := [2]chan string{make(chan string, 8), make(chan string, 8)}
			// Not t.Parallel: on one processor it lets one run at a time, and each needs the other.
			var wg sync.WaitGroup
			for side, n := range ranks {
				wg.Go(func() {
					t.Run(fmt.Sprint(side), func(t *testing.T) {
						mpitest.Run(t, n, func(t *mpitest.T, w *mpi.Comm) { f(t, side, w, told) }, mpitest.Transport(tr))
					})
				})
			}
			wg.Wait()
		})
	}
}

// greet is what two groups that have met say to each other.
func greet(c *mpi.Comm) error {
	n, err := mpi.AllreduceOne(c, c.Size(), mpi.Max)
	if err == nil && n != c.RemoteSize() {
		err = fmt.Errorf("the others say that they are %d, not %d", n, c.RemoteSize())
	}
	return errors.Join(err, c.Disconnect())
}

// Groups of two jobs meet at a port, whoever comes first, and again; they talk, merge,
// divide what they have merged, and part.
func TestNeighbors(t *testing.T) {
	jobs(t, [2]int{2, 3}, func(t *mpitest.T, side int, w *mpi.Comm, told [2]chan string) {
		p := w.Process()
		for round := range 4 {
			root, port := round%2, ""
			if w.Rank() == root && side == 0 {
				var err error
				port, err = p.OpenPort()
				must(t, err)
				told[0] <- port
			} else if w.Rank() == root {
				port = <-told[0]
			}
			if late := round < 2; late == (side == 0) { // one side is late
				<-time.After(5 * time.Millisecond)
			}
			meet := w.Connect
			if side == 0 {
				meet = w.Accept
			}
			d, err := meet(port, root)
			must(t, err)
			if d.Size() != w.Size() || d.RemoteSize() != 5-w.Size() {
				t.Fatalf("%d meet %d", d.Size(), d.RemoteSize())
			}
			n, err := mpi.AllreduceOne(d, w.Size(), mpi.Sum)
			must(t, err)
			if n != d.RemoteSize()*d.RemoteSize() {
				t.Fatalf("the sum of %d others is %d", d.RemoteSize(), n)
			}
			// More than fits into a message that is sent at once, each way.
			long := make([]int, 1<<18)
			long[len(long)-1] = 100*side + w.Rank()
			if k := w.Rank(); k < min(d.Size(), d.RemoteSize()) {
				in := make([]int, len(long))
				r := mpi.Irecv(d, in, k, round)
				must(t, mpi.Send(d, long, k, round))
				_, err = r.Wait()
				must(t, err)
				if got := in[len(in)-1]; got != 100*(1-side)+k {
					t.Fatalf("got %d from rank %d", got, k)
				}
			}
			m, err := d.IntercommMerge(side == 1)
			must(t, err)
			if m.Size() != 5 || m.Rank() != w.Rank()+2*side {
				t.Fatalf("rank %d of %d in both groups", m.Rank(), m.Size())
			}
			if n, err = mpi.AllreduceOne(m, 1<<m.Rank(), mpi.Sum); err != nil || n != 31 {
				t.Fatalf("the sum of both groups is %d, %v", n, err)
			}
			odd, err := m.Split(m.Rank()%2, 0)
			must(t, err)
			if n, err = mpi.AllreduceOne(odd, m.Rank(), mpi.Sum); err != nil || n != []int{6, 4}[m.Rank()%2] {
				t.Fatalf("the sum of those like rank %d is %d, %v", m.Rank(), n, err)
			}
			own, err := m.Split(side, 0) // of one job again
			must(t, err)
			must(t, own.Barrier())
			made, err := mpi.CommFromGroup(m.Group(), fmt.Sprint(round))
			must(t, err)
			must(t, made.Barrier())
			_, err = m.Accept("gompi", 0)
			wantError(t, err, mpi.ErrPort, "only groups of one job accept and connect") // a group of both
			_, err = m.Connect("gompi", 0)
			wantError(t, err, mpi.ErrPort, "only groups of one job accept and connect")
			_, _, err = mpi.CommSpawn(m, mpi.Command{Program: "true", Procs: 1}, 0)
			wantError(t, err, mpi.ErrSpawn, "this call is for processes of one job")
			for _, c := range []*mpi.Comm{made, own, odd, m, d} {
				must(t, c.Disconnect())
			}
			if side == 0 && w.Rank() == root {
				must(t, p.ClosePort(port))
			}
		}
	})
}

// Jobs that call each other at the same moment have two connections, of which one may not
// stand when ranks have met by the other.
func TestNeighborsCallEachOther(t *testing.T) {
	for range 5 {
		jobs(t, [2]int{1, 1}, func(t *mpitest.T, side int, w *mpi.Comm, told [2]chan string) {
			own, err := w.Process().OpenPort()
			must(t, err)
			v, err := w.Dup()
			must(t, err)
			told[side] <- own
			port := <-told[1-side]
			ends := make(chan error, 2)
			meet := func(meet func(string, int) (*mpi.Comm, error), port string) {
				d, err := meet(port, 0)
				if err == nil {
					_, err = mpi.AllreduceOne(d, 1, mpi.Sum)
				}
				if err == nil {
					err = d.Disconnect()
				}
				ends <- err
			}
			go meet(w.Accept, own)
			go meet(v.Connect, port)
			must(t, <-ends)
			must(t, <-ends)
		})
	}
}

// What is wrong with a port of another job is said.
func TestNeighborErrors(t *testing.T) {
	jobs(t, [2]int{2, 1}, func(t *mpitest.T, side int, w *mpi.Comm, told [2]chan string) {
		p := w.Process()
		if side == 0 {
			if w.Rank() == 0 {
				var ports [2]string
				for i := range ports {
					var err error
					ports[i], err = p.OpenPort()
					must(t, err)
				}
				must(t, p.ClosePort(ports[1]))
				told[0] <- ports[0]
				told[0] <- ports[1]
				<-told[1] // it has tried
				must(t, p.ClosePort(ports[0]))
				<-told[1]
			}
			must(t, w.Barrier())
			return
		}
		port, stale := <-told[0], <-told[0]
		connect := func(port, text string) {
			t.Helper()
			_, err := w.Connect(port, 0)
			wantError(t, err, mpi.ErrPort, text)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_, err := w.WithContext(ctx).Connect(port, 0)
		wantError(t, err, mpi.ErrCancelled)
		connect(stale, "invalid port: not found: port \"")
		last := byte('0')
		if strings.HasSuffix(port, "0") {
			last = '1'
		}
		connect(port[:len(port)-1]+string(last), "port") // another secret
		other := strings.Split(port, ":")
		other[1] = "00000000000000ff"
		connect(strings.Join(other, ":"), "refused") // there is no such job
		_, err = w.Accept(port, 0)
		wantError(t, err, mpi.ErrPort, "another job")
		wantError(t, p.ClosePort(port), mpi.ErrPort)
		done := make(chan error)
		go func() {
			_, err := w.Connect(port, 0)
			done <- err
		}()
		<-time.After(5 * time.Millisecond) // it waits
		told[1] <- ""
		wantError(t, <-done, mpi.ErrPort, "closed")
		told[1] <- ""
	})
}

// Either end is killed: while it waits at a port, and when both have met.
func TestNeighborKilled(t *testing.T) {
	for _, victim := range []int{0, 1} {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			jobs(t, [2]int{2, 2}, func(t *mpitest.T, side int, w *mpi.Comm, told [2]chan string) {
				p := w.Process()
				port := ""
				if w.Rank() == 0 && side == 0 {
					var err error
					port, err = p.OpenPort()
					must(t, err)
					told[0] <- port
				} else if w.Rank() == 0 {
					port = <-told[0]
				}
				meet := w.Connect
				if side == 0 {
					meet = w.Accept
				}
				d, err := meet(port, 0)
				must(t, err)
				// Who dies does so when all others know that all have met.
				switch {
				case side == victim && w.Rank() == 1:
					for rank := range 2 {
						_, err := mpi.Recv(d, make([]int, 1), rank, 0)
						must(t, err)
					}
					_, err := mpi.Recv(w, make([]int, 1), 0, 0)
					must(t, err)
					t.Kill(-1)
				case side == victim:
					must(t, mpi.Send(w, []int{1}, 1, 0))
				default:
					must(t, mpi.Send(d, []int{1}, 1, 0))
				}
				if side != victim {
					_, err = mpi.Recv(d, make([]int, 1), 1, 0)
					wantError(t, err, mpi.ErrProcFailed, "killed")
					_, err = mpi.AllreduceOne(d, 1, mpi.Sum)
					wantError(t, err, mpi.ErrProcFailed)
					if n, err := mpi.AllreduceOne(w, 1, mpi.Sum); err != nil || n != 2 {
						t.Fatalf("the job itself: %d, %v", n, err)
					}
				}
				// Who is left still talks.
				if w.Rank() == 0 {
					r := mpi.Irecv(d, make([]int, 1), 0, 1)
					must(t, mpi.Send(d, []int{1}, 0, 1))
					_, err = r.Wait()
					must(t, err)
				}
				// The end of the accepting or connecting job is next: both learn it.
				must(t, d.Free())
			})
		})
	}
}

// Two processes of two jobs that have a connection of their own join.
func TestNeighborJoin(t *testing.T) {
	var ends [2]net.Conn
	ends[0], ends[1] = net.Pipe()
	jobs(t, [2]int{1, 1}, func(t *mpitest.T, side int, w *mpi.Comm, told [2]chan string) {
		for range 3 {
			c, err := w.Process().Join(t.Context(), ends[side])
			must(t, err)
			n, err := mpi.AllreduceOne(c, side, mpi.Sum)
			must(t, err)
			if n != 1-side || c.RemoteSize() != 1 {
				t.Fatalf("the other is %d", n)
			}
			must(t, c.Disconnect())
		}
	})
}

// A process that waits at a port of another job is killed, or one of this job that has
// opened it; the other waits no longer than it must, and the port serves the next.
func TestNeighborKilledWaiting(t *testing.T) {
	jobs(t, [2]int{2, 2}, func(t *mpitest.T, side int, w *mpi.Comm, told [2]chan string) {
		p := w.Process()
		self := p.Self()
		switch {
		case side == 0 && w.Rank() == 0:
			port, err := p.OpenPort()
			must(t, err)
			told[0] <- port
			told[0] <- port
			<-told[1] // one of those that wait was killed, and may be met all the same
			d, err := self.Accept(port, 0)
			must(t, err)
			if err = d.Disconnect(); errors.Is(err, mpi.ErrProcFailed) {
				d, err = self.Accept(port, 0)
				must(t, err)
				err = d.Disconnect()
			}
			must(t, err)
			_, err = mpi.Recv(w, make([]int, 1), 1, 0)
			must(t, err)
			t.Kill(-1)
		case side == 0:
			must(t, mpi.Send(w, []int{1}, 0, 0))
		case w.Rank() == 0:
			port := <-told[0]
			done := make(chan error)
			go func() {
				_, err := self.Connect(port, 0)
				done <- err
			}()
			<-time.After(5 * time.Millisecond)
			must(t, mpi.Ssend(w, []int{1}, 1, 0)) // it waits; a message that nobody has got would be lost with this process
			t.Kill(-1)
		default:
			_, err := mpi.Recv(w, make([]int, 1), 0, 0)
			must(t, err)
			_, err = mpi.Recv(w, make([]int, 1), 0, 1)
			wantError(t, err, mpi.ErrProcFailed)
			port := <-told[0]
			told[1] <- ""
			d, err := self.Connect(port, 0)
			must(t, err)
			must(t, d.Disconnect())
			_, err = self.Connect(port, 0)
			wantError(t, err, mpi.ErrPort)
		}
	})
}

// Many jobs come and meet one that stays, of which nothing is left there.
func TestSoakNeighbors(t *testing.T) {
	const first = 10
	most := testlab.Rounds(100, 5000)
	server := testjob.New(t, testjob.Transport("shm"))
	ports, served := make(chan string), make(chan error)
	var all []*mpi.Process
	for _, sp := range server.Add(2) {
		p, err := server.Boot(sp)
		must(t, err)
		defer server.Leave(p)
		all = append(all, p)
	}
	for rank, p := range all {
		go func() {
			served <- func() error {
				port := ""
				if rank == 0 {
					var err error
					if port, err = p.OpenPort(); err != nil {
						return err
					}
					ports <- port
				}
				for range most {
					d, err := p.World().Accept(port, 0)
					if err == nil {
						err = greet(d)
					}
					if err != nil {
						return err
					}
				}
				return p.World().Barrier()
			}()
		}()
	}
	port := <-ports
	var left testlab.Left
	var sizes [2]map[string]int
	for i := range most {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			client := testjob.New(t, testjob.Transport("shm"))
			p, err := client.Boot(client.Add(1)[0])
			must(t, err)
			d, err := p.World().Connect(port, 0)
			must(t, err)
			must(t, greet(d))
			must(t, client.Leave(p))
		})
		if k := (i + 1) / most; i+1 == first || i+1 == most {
			for server.Server.Sizes()["neighbors"] > 0 {
				<-time.After(time.Millisecond)
			}
			if sizes[k] = server.Server.Sizes(); k == 0 {
				left = testlab.Take()
			}
		}
	}
	must(t, errors.Join(<-served, <-served))
	for _, waits := range []string{"at ports", "bytes waiting", "requests"} { // after the last one nobody does
		sizes[0][waits], sizes[1][waits] = 0, 0
	}
	if !maps.Equal(sizes[0], sizes[1]) {
		t.Errorf("after %d jobs %v, after %d %v", first, sizes[0], most, sizes[1])
	}
	testlab.Nothing(t, left, 1<<20)
}
