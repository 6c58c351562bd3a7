// SPDX-License-Identifier: Apache-2.0

// Package link is the connection of the head of a job with the agent of another
// host: frames of some kinds each way, in order. What the other end writes is
// checked; nobody waits for an end that does not read.
package link

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"gompi/internal/control/protocol"
)

// How much an end may leave unread. Above softUnsent what can wait does (Room);
// what cannot, as it comes once for each process or answers something, goes up to
// HardUnsent, and then the link is given up: news are never lost silently.
const (
	softUnsent = 1 << 20
	HardUnsent = 64 << 20
)

// closeWait is how long Close waits for an end that does not read, and one that
// cannot write for the end of what the other one has said.
const closeWait = 2 * time.Second

// spareBytes is the longest buffer that is kept to be filled again.
const spareBytes = 64 << 10

// ErrClosed: Close was called.
var ErrClosed = errors.New("link is closed")

// Link is one end. Its methods may be called from any goroutine; On and OnEnd only before Run.
type Link struct {
	conn net.Conn
	take map[protocol.Kind]func(f *protocol.Frame) error
	ends []func(why error)

	mu      sync.Mutex
	cond    sync.Cond // any field has changed
	queue   []byte    // whole frames
	writing int       // bytes that the writer has taken and not yet written
	closing bool      // write what is queued, then end
	stuck   error     // why nothing can be written; what the other end has said is still read
	err     error     // why the link has ended; set once
	written chan struct{}
	ended   chan struct{} // closed when stuck or err is set
	done    chan struct{} // the reader has ended, and so have all of ends
}

// New makes an end of a connection, which it owns. The caller must Run it.
func New(conn net.Conn) *Link {
	l := &Link{conn: conn, take: map[protocol.Kind]func(*protocol.Frame) error{}, written: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{})}
	l.cond.L = &l.mu
	return l
}

// On registers the handler of a type of message. It is called for one message at a time, on the
// reader's goroutine. The message may keep parts of the frame's body, which is valid only until
// the handler returns. An error means that the other end broke the protocol, and ends the link,
// as does a message that has no handler.
func On[M protocol.Message](l *Link, handle func(M) error) {
	var none M
	l.take[protocol.KindOf(none)] = func(f *protocol.Frame) error {
		m, err := f.Message()
		if err != nil {
			return err
		}
		return handle(m.(M))
	}
}

// OnEnd has f called, after the last frame, when the link has ended: with io.EOF
// where the other end has closed it, with ErrClosed where this one has.
func (l *Link) OnEnd(f func(why error)) { l.ends = append(l.ends, f) }

// Run begins to read and write.
func (l *Link) Run() {
	go l.write()
	go l.read()
}

// Send queues a message. It never waits.
func (l *Link) Send(m protocol.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing || l.over() {
		return
	}
	var err error
	if l.queue, err = protocol.AppendFrame(l.queue, 0, 0, m); err != nil { // news are never lost silently
		l.drop(err)
		return
	}
	l.cond.Broadcast()
	if n := l.unsent(); n > HardUnsent {
		l.drop(fmt.Errorf("the other end left %d bytes unread, at most %d allowed", n, HardUnsent))
	}
}

// unsent counts bytes. mu is held.
func (l *Link) unsent() int { return len(l.queue) + l.writing }

// Room waits until the other end has read enough for what can wait; false if the
// link has ended.
func (l *Link) Room() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.unsent() > softUnsent && !l.closing && !l.over() {
		l.cond.Wait()
	}
	return !l.closing && !l.over()
}

// Ended is closed when nothing is sent any more.
func (l *Link) Ended() <-chan struct{} { return l.ended }

// Break ends the link at once.
func (l *Link) Break(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(why)
}

// drop is Break with mu held.
func (l *Link) drop(why error) {
	if l.err != nil {
		return
	}
	if l.stuck == nil {
		close(l.ended)
	}
	l.err, l.queue = why, nil
	l.cond.Broadcast()
	_ = l.conn.Close() // whoever reads or writes ends; an error is as good
}

// over reports whether nothing is sent any more. mu is held.
func (l *Link) over() bool { return l.stuck != nil || l.err != nil }

// cannotWrite ends the sending: a frame may have gone out in part. The other end,
// which may have gone, has its last word. mu is held.
func (l *Link) cannotWrite(why error) {
	if l.over() {
		return
	}
	l.stuck, l.queue = why, nil
	close(l.ended)
	l.cond.Broadcast()
	_ = l.conn.SetReadDeadline(time.Now().Add(closeWait)) // as good if it is closed
}

// Close writes what is queued, for at most closeWait, and ends the link. It
// returns when nobody is called any more.
func (l *Link) Close() {
	l.mu.Lock()
	l.closing = true
	l.cond.Broadcast()
	_ = l.conn.SetWriteDeadline(time.Now().Add(closeWait)) // as good if it is closed
	l.mu.Unlock()
	<-l.written
	l.Break(ErrClosed)
	<-l.done
}

// write is the writer's goroutine: the only one that an end that does not read
// stops.
func (l *Link) write() {
	defer close(l.written)
	var spare []byte
	for {
		l.mu.Lock()
		for len(l.queue) == 0 && !l.closing && !l.over() {
			l.cond.Wait()
		}
		if len(l.queue) == 0 {
			l.mu.Unlock()
			return
		}
		batch := l.queue
		l.queue, l.writing = spare[:0], len(batch)
		l.mu.Unlock()

		_, err := l.conn.Write(batch)
		if spare = batch; cap(batch) > spareBytes {
			spare = nil
		}

		l.mu.Lock()
		l.writing = 0
		l.cond.Broadcast()
		if err != nil {
			l.cannotWrite(err)
		}
		l.mu.Unlock()
	}
}

// read is the reader's goroutine.
func (l *Link) read() {
	defer close(l.done)
	err := l.converse()
	l.mu.Lock()
	if l.stuck != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		err = l.stuck
	}
	l.drop(err)
	why := l.err
	l.mu.Unlock()
	for _, f := range l.ends {
		f(why)
	}
}

func (l *Link) converse() error {
	in := bufio.NewReaderSize(l.conn, spareBytes)
	var head [protocol.FrameHead]byte
	var buf []byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		f, n, err := protocol.ParseHead(head[:])
		if err != nil {
			return broken(err)
		}
		take := l.take[f.Kind]
		switch {
		case take == nil:
			return broken(fmt.Errorf("%v frame does not belong here", f.Kind))
		case f.FDs != 0 || f.ID != 0:
			return broken(fmt.Errorf("%v frame has %d descriptors and the request number %d", f.Kind, f.FDs, f.ID))
		}
		if cap(buf) < n || cap(buf) > spareBytes && n < spareBytes {
			buf = make([]byte, max(n, 512))
		}
		if _, err := io.ReadFull(in, buf[:n]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		f.Body = buf[:n]
		if err := take(&f); err != nil {
			return broken(err)
		}
	}
}

func broken(err error) error { return errors.New(protocol.ProtocolBroken(err)) }
