// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/launch"
)

// pump forwards the streams of all processes into one descriptor, or each into a file of
// its own. It reads from a process only when it can write, so a slow reader of gompirun's
// output slows the ranks down, and memory stays bounded.
type pump struct {
	dest   outlet
	failed func(to string, err error) // called on the pump's goroutine, once for each outlet that fails
	epoll  int
	wake   int // eventfd: finish or close was called
	done   chan struct{}

	mu        sync.Mutex
	sources   map[int32]*source // by descriptor
	finishing []*source
	marks     []func() // called after the finishing streams are written
	closing   bool

	// Owned by run.
	lines  lines
	parked []*source // readable, but another stream owns the output
	held   map[*source]struct{}
	buf    []byte
}

// outlet is a destination of output. Once it is broken, output is dropped: the supervisor
// was told and ends the job.
type outlet struct {
	fd     int
	name   string
	take   func(b []byte) error // in place of fd; nil: write to fd
	broken bool
}

// source is a stream and its pipe.
type source struct {
	stream
	fd   int     // -1: the stream has ended
	was  int32   // fd, for the pump's table
	file *outlet // destination of this stream alone, unchanged; nil: the pump's
	// finish: the process has ended; only the rest bytes that the pipe held then are still
	// forwarded.
	finish bool
	rest   int
	parked bool
}

func newPump(dest outlet, failed func(to string, err error)) (*pump, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	p := &pump{
		dest: dest, failed: failed, epoll: epoll, wake: wake,
		done:    make(chan struct{}),
		sources: map[int32]*source{},
		held:    map[*source]struct{}{},
		buf:     make([]byte, maxPartial+chunkBytes),
	}
	if err := p.register(wake); err != nil {
		return nil, err
	}
	go p.run()
	return p, nil
}

func (p *pump) register(fd int) error {
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

func (p *pump) unregister(fd int) {
	unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil)
}

// add forwards output from fd, the non-blocking read end of a pipe. The pump owns fd, and
// the file if there is one.
func (p *pump) add(fd int, tag string, file *outlet) (*source, error) {
	s := &source{stream: stream{tag: tag}, fd: fd, was: int32(fd), file: file}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.register(fd); err != nil {
		unix.Close(fd)
		if file != nil {
			unix.Close(file.fd)
		}
		return nil, err
	}
	p.sources[int32(fd)] = s
	return s, nil
}

// say writes whole lines of gompirun's own, after the output of streams that have
// finished. It returns false if the pump is ending and does not write them.
func (p *pump) say(text string) bool {
	return p.mark(func() { p.write(&p.dest, []byte(text)) })
}

// mark calls f on the pump's goroutine at the point where say would write.
func (p *pump) mark(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return false
	}
	if p.marks = append(p.marks, f); len(p.marks)+len(p.finishing) == 1 {
		p.ring()
	}
	return true
}

// rename gives a stream another tag.
func (p *pump) rename(s *source, tag string) { p.mark(func() { s.tag = tag }) }

// finish is called when the process of s has ended: the bytes in the pipe are still
// forwarded, but the pump does not wait for its end. Other processes that inherited the
// descriptor would keep the pipe open.
func (p *pump) finish(s *source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sources[s.was] != s {
		return // it has ended already
	}
	if p.finishing = append(p.finishing, s); len(p.marks)+len(p.finishing) == 1 {
		p.ring()
	}
}

// close ends the pump when the last stream has ended; then done is closed.
func (p *pump) close() {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.ring()
}

func (p *pump) ring() {
	one := [8]byte{1}
	unix.Write(p.wake, one[:])
}

func (p *pump) run() {
	defer close(p.done)
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(p.epoll, events, p.timeout(time.Now()))
		if err != nil && err != unix.EINTR {
			panic("gompi: BUG: epoll_wait on our own descriptor: " + err.Error())
		}
		now := time.Now()
		rung := false
		for _, ev := range events[:max(n, 0)] {
			if int(ev.Fd) == p.wake {
				rung = true
				continue
			}
			p.mu.Lock()
			s := p.sources[ev.Fd]
			p.mu.Unlock()
			if s != nil {
				p.service(s, now)
			}
		}
		p.overdue(now)
		if rung {
			p.orders(now)
		}
		if p.over() {
			unix.Close(p.epoll)
			unix.Close(p.wake)
			return
		}
	}
}

// orders carries out finish and mark calls.
func (p *pump) orders(now time.Time) {
	var b [8]byte
	unix.Read(p.wake, b[:])
	p.mu.Lock()
	todo, marks := p.finishing, p.marks
	p.finishing, p.marks = nil, nil
	p.mu.Unlock()
	for _, s := range todo {
		if s.fd < 0 {
			continue
		}
		if !s.finish {
			s.finish = true
			s.rest, _ = unix.IoctlGetInt(s.fd, unix.TIOCINQ) // no error on a pipe
		}
		p.service(s, now)
	}
	for _, f := range marks {
		f()
	}
}

func (p *pump) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing && len(p.sources)+len(p.finishing)+len(p.marks) == 0
}

// service forwards one chunk of s, or parks it. A finishing stream is forwarded to its
// end.
func (p *pump) service(s *source, now time.Time) {
	for s.fd >= 0 {
		if s.file == nil && !p.lines.mayWrite(&s.stream) {
			p.park(s)
			return
		}
		room := chunkBytes
		if s.finish {
			if room = min(room, s.rest); room == 0 {
				p.end(s)
				return
			}
		}
		data := p.buf[:copy(p.buf, s.held)+room]
		n, err := unix.Read(s.fd, data[len(s.held):])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN && !s.finish:
			return
		case n <= 0:
			p.end(s)
			return
		}
		s.rest -= n // counts once it is set
		if s.file != nil {
			p.write(s.file, data[:n])
		} else {
			p.pass(s, data[:len(s.held)+n], now)
		}
		if !s.finish {
			return
		}
	}
}

// pass forwards lines: data is s.held and the bytes after it.
func (p *pump) pass(s *source, data []byte, now time.Time) {
	s.last = now
	if len(s.held) == 0 {
		s.since = now
	}
	p.write(&p.dest, p.lines.feed(&s.stream, data, false))
	p.note(s)
	p.unpark()
}

// note updates p.held.
func (p *pump) note(s *source) {
	if len(s.held) > 0 {
		p.held[s] = struct{}{}
	} else {
		delete(p.held, s)
	}
}

// end writes the rest of s and closes it.
func (p *pump) end(s *source) {
	if len(s.held) > 0 {
		p.write(&p.dest, p.lines.feed(&s.stream, s.held, true))
	}
	delete(p.held, s)
	if p.lines.owner == &s.stream {
		p.write(&p.dest, p.lines.release())
	}
	if s.file != nil {
		p.broke(s.file, unix.Close(s.file.fd))
	}
	p.mu.Lock()
	delete(p.sources, s.was)
	p.mu.Unlock()
	// A close alone would leave it in epoll while a child between fork and exec has a
	// copy.
	p.unregister(s.fd)
	unix.Close(s.fd)
	s.fd = -1
	p.unpark()
}

func (p *pump) park(s *source) {
	if !s.parked {
		s.parked = true
		p.unregister(s.fd)
		p.parked = append(p.parked, s)
	}
}

// unpark lets the waiting streams go on once the output has no owner.
func (p *pump) unpark() {
	if p.lines.owner != nil || len(p.parked) == 0 {
		return
	}
	parked := p.parked
	p.parked = nil
	for _, s := range parked {
		s.parked = false
		if p.register(s.fd) != nil {
			panic("gompi: BUG: a descriptor that was in epoll cannot return")
		}
		if s.finish {
			// It may never become readable again, so run has to look at it.
			p.finish(s)
		}
	}
}

// timeout returns the timeout of epoll_wait: the time until something is overdue.
func (p *pump) timeout(now time.Time) int {
	ms := -1
	soonest := func(t time.Time) {
		d := int(max(0, t.Sub(now)+lineWait+time.Millisecond-1) / time.Millisecond)
		if ms < 0 || d < ms {
			ms = d
		}
	}
	if p.contended() {
		soonest(p.lines.owner.last)
	}
	for s := range p.held {
		if p.lines.mayWrite(&s.stream) {
			soonest(s.since)
		}
	}
	return ms
}

// contended reports whether the output has an owner and another stream has output.
func (p *pump) contended() bool {
	if p.lines.owner == nil {
		return false
	}
	if len(p.parked) > 0 {
		return true
	}
	for s := range p.held {
		if &s.stream != p.lines.owner {
			return true
		}
	}
	return false
}

// overdue takes the output from a silent owner while others wait, and writes unfinished
// lines that have waited.
func (p *pump) overdue(now time.Time) {
	if p.contended() && now.Sub(p.lines.owner.last) >= lineWait {
		p.write(&p.dest, p.lines.release())
		p.unpark()
	}
	for s := range p.held {
		if now.Sub(s.since) >= lineWait && p.lines.mayWrite(&s.stream) {
			s.last = now
			p.write(&p.dest, p.lines.feed(&s.stream, s.held, true))
			p.note(s)
		}
	}
}

// write waits until the outlet has taken b.
func (p *pump) write(to *outlet, b []byte) {
	switch {
	case to.broken || len(b) == 0:
	case to.take != nil:
		p.broke(to, to.take(b))
	default:
		p.broke(to, launch.WriteAll(to.fd, b))
	}
}

// broke records an error, if there is one.
func (p *pump) broke(to *outlet, err error) {
	if err != nil && !to.broken {
		to.broken = true
		p.failed(to.name, err)
	}
}
