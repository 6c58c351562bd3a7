// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gompi/launcher/rm"
)

// Server is a pool behind its socket.
type Server struct {
	name, manager string
	began         time.Time
	socket        *net.UnixListener
	log           func(format string, a ...any)

	mu    sync.Mutex
	pool  *Pool
	conns map[*conn]struct{}
	timer *time.Timer
	over  string        // why it ends; "": it does not
	left  chan struct{} // closed when it ends and no job is left
	gone  bool          // left is closed
}

// conn is the connection of a job, or of a process that has not sent its first line.
type conn struct {
	*net.UnixConn
	pid   int
	pidfd int // -1: there is none
	job   *Job
	out   chan []byte // lines for its writing goroutine
}

const (
	helloWait = 10 * time.Second // for the first line
	maxConns  = 1 << 12
	maxUnread = 1 << 10 // lines
)

// Listen opens the socket of a head. manager is the name of the resource manager m for
// people. log, if not nil, gets a line for each job that arrives, changes or ends.
func Listen(name, manager string, m rm.ResourceManager, slots int, log func(format string, a ...any)) (*Server, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: address(name), Net: "unix"})
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("there is a head %s on this host already (gompictl queue %s)", name, name)
	}
	if err != nil {
		return nil, fmt.Errorf("head %s: %w", name, err)
	}
	if log == nil {
		log = func(string, ...any) {}
	}
	s := &Server{
		name:    name,
		manager: manager,
		began:   time.Now(),
		socket:  l,
		log:     log,
		pool:    New(m, slots),
		conns:   map[*conn]struct{}{},
		left:    make(chan struct{}),
	}
	s.timer = time.AfterFunc(time.Hour, s.Bell)
	s.Bell()
	return s, nil
}

// Serve takes jobs until the server is closed.
func (s *Server) Serve() {
	for {
		c, err := s.socket.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // too many descriptors
			continue
		}
		go s.hear(c)
	}
}

func (s *Server) now() time.Duration { return time.Since(s.began) }

// Bell lets the manager decide after an event of its own.
func (s *Server) Bell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step()
}

// Slots sets the number of slots.
func (s *Server) Slots(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool.Slots(n)
	s.step()
}

// step lets the manager decide, and sends lines to jobs. The caller holds mu. It does not
// block.
func (s *Server) step() {
	for again := true; again; again = s.tell() {
		if s.over != "" {
			continue
		}
		s.pool.Step(s.now())
		if at, ok := s.pool.Next(); ok {
			s.timer.Reset(max(0, at-s.now()))
		}
	}
}

// tell sends lines to the jobs, and reports whether one was cut off.
func (s *Server) tell() (cut bool) {
	for c := range s.conns {
		for _, text := range c.job.Take() {
			select {
			case c.out <- text:
				continue
			default:
			}
			s.cut(c, errBehind)
			cut = true
			break
		}
	}
	return cut
}

var errBehind = errors.New("it does not read its lines")

// cut cuts a job off. The caller holds mu. Its slots are free when the last of its
// processes with the connection has ended; they may run on.
func (s *Server) cut(c *conn, why error) {
	if c.job.cut {
		return
	}
	s.log("job %s is cut off: %v", c.job.number, why)
	select {
	case c.out <- (&line{Event: "refused", Version: Version, Text: clip(why.Error())}).encode():
		c.SetWriteDeadline(time.Now().Add(helloWait))
	default:
		c.SetWriteDeadline(time.Unix(1, 0)) // its writer is blocked
	}
	close(c.out)
	s.pool.Cut(c.job)
}

// hear takes the lines of one connection.
func (s *Server) hear(u *net.UnixConn) {
	c := &conn{UnixConn: u, pidfd: -1, out: make(chan []byte, maxUnread)}
	defer c.Close()
	var err error
	if c.pid, err = peerPID(u); err != nil {
		return
	}
	c.SetReadDeadline(time.Now().Add(helloWait))
	in := scan(c)
	if !in.Scan() {
		return
	}
	err = mismatch(in.Bytes(), "the program that asks", "this head")
	var first *line
	if err == nil {
		first, err = decode(in.Bytes())
	}
	if err == nil && first.Version != Version {
		err = errors.New("no version")
	}
	switch {
	case err != nil:
	case first.Ask == "queue":
		s.answer(c)
		return
	default:
		err = s.join(c, first)
	}
	if err != nil {
		c.SetWriteDeadline(time.Now().Add(helloWait))
		_, _ = c.Write((&line{Event: "refused", Version: Version, Text: clip(err.Error())}).encode())
		return
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		write(c, c.out)
		c.CloseWrite() // a job that is cut off sees the end
	})
	c.SetReadDeadline(time.Time{})
	for err == nil && in.Scan() {
		err = s.said(c, in.Bytes())
	}
	if err == nil && errors.Is(in.Err(), bufio.ErrTooLong) {
		err = in.Err()
	}
	if err != nil {
		s.leaves(c, err)
		io.Copy(io.Discard, c.UnixConn) // until no process has the connection
	}
	s.leave(c)
	writing.Wait()
	if c.pidfd >= 0 {
		unix.Close(c.pidfd)
	}
}

// join takes a job into the pool.
func (s *Server) join(c *conn, first *line) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over != "":
		return errors.New(s.over)
	case len(s.conns) >= maxConns:
		return fmt.Errorf("%d jobs are here already", len(s.conns))
	}
	if c.job, err = s.pool.Join(s.now(), first, c.pid); err != nil {
		return err
	}
	if c.pidfd, err = unix.PidfdOpen(c.pid, 0); err != nil {
		c.pidfd = -1
	}
	s.conns[c] = struct{}{}
	s.log("job %s (%s, pid %d) wants %d slots", c.job.number, c.job.program, c.pid, c.job.start)
	s.step()
	return nil
}

// said takes a line of a job.
func (s *Server) said(c *conn, text []byte) error {
	l, err := decode(text)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.job.cut {
		return errBehind
	}
	had := c.job.has
	if err := s.pool.Hear(s.now(), c.job, l); err != nil {
		return err
	}
	if c.job.has != had {
		s.log("job %s: %d -> %d slots", c.job.number, had, c.job.has)
	}
	s.step()
	return nil
}

// leaves cuts a job off because of err.
func (s *Server) leaves(c *conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut(c, err)
	s.step()
}

// leave removes a job that is gone.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if !c.job.cut {
		c.SetWriteDeadline(time.Now().Add(helloWait))
		close(c.out)
	}
	s.pool.Leave(c.job)
	s.log("job %s has ended", c.job.number)
	s.step()
	s.ended()
}

// ended closes left if no job is left. The caller holds mu.
func (s *Server) ended() {
	if s.over != "" && len(s.conns) == 0 && !s.gone {
		s.gone = true
		close(s.left)
	}
}

// answer sends the queue.
func (s *Server) answer(c *conn) {
	s.mu.Lock()
	list := s.pool.lines(s.now(), s.manager)
	s.mu.Unlock()
	c.SetWriteDeadline(time.Now().Add(helloWait))
	for _, l := range append(list, &line{Event: "end"}) {
		if _, err := c.Write(l.encode()); err != nil {
			return
		}
	}
}

// write writes lines until the channel is closed.
func write(c net.Conn, lines <-chan []byte) {
	for l := range lines {
		if _, err := c.Write(l); err != nil {
			break
		}
	}
	for range lines {
	}
}

// End asks all jobs to end, with the reason, and takes no others. Left is closed when no
// job is left.
func (s *Server) End(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != "" {
		return
	}
	s.over = why
	for c := range s.conns {
		c.job.tell(&line{Event: "over", Text: clip(why)})
	}
	s.step()
	s.ended()
}

// Left is closed when the server ends and no job is left.
func (s *Server) Left() <-chan struct{} { return s.left }

// Kill kills the gompiruns that are left: their guardians end the rest.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.pidfd >= 0 {
			unix.PidfdSendSignal(c.pidfd, unix.SIGKILL, nil, 0)
		}
	}
}

// Queue returns the queue as Ask does.
func (s *Server) Queue() *Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &Queue{Name: s.name, Manager: s.manager}
	for _, l := range s.pool.lines(s.now(), s.manager) {
		q.take(l)
	}
	return q
}

// Close closes all connections. Jobs that are left end by themselves.
func (s *Server) Close() {
	s.mu.Lock()
	list := slices.Collect(maps.Keys(s.conns))
	s.timer.Stop()
	s.mu.Unlock()
	s.socket.Close()
	for _, c := range list {
		c.Close()
	}
}
