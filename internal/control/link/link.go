// SPDX-License-Identifier: Apache-2.0

// Package link is the connection of a head with the agent of another host, or with the head of
// another job. It carries one-way messages in both directions, in order.
//
// A Link has a goroutine that reads and calls the handler of each message (On), and one that
// writes. Send never waits for the other end. An end that does not read enough loses its link, so
// that no message is ever lost silently. A link checks every frame that the other end writes.
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

// How many bytes an end may leave unread. Above softUnsent a sender that can wait does (Room).
// Other messages, of which there is one for each process or question, are queued up to HardUnsent.
// Beyond that the link ends.
const (
	softUnsent = 1 << 20
	HardUnsent = 64 << 20
)

// closeWait is how long Close waits for an end that does not read, and how long an end that cannot
// write reads what the other end has sent before.
const closeWait = 2 * time.Second

// spareBytes is the longest buffer that the writer keeps to fill it again.
const spareBytes = 64 << 10

// ErrClosed is the reason of a link whose Close was called.
var ErrClosed = errors.New("link is closed")

// Link is one end. Its methods may be called from any goroutine; On and OnEnd only before Run.
type Link struct {
	conn net.Conn
	take map[protocol.Kind]func(f *protocol.Frame) error
	ends []func(why error)

	mu      sync.Mutex
	cond    sync.Cond     // signals a change of any field
	queue   []byte        // whole frames
	writing int           // bytes that the writer has taken from queue and not yet written
	closing bool          // the writer ends when the queue is empty
	stuck   error         // why nothing can be written, although the reader still reads; set once
	err     error         // why the link has ended; set once
	written chan struct{} // closed when the writer has ended
	ended   chan struct{} // closed when stuck or err is set
	done    chan struct{} // closed when the reader has ended and all of ends have returned
}

// New makes an end of a connection, which it owns. The caller must Run it.
func New(conn net.Conn) *Link {
	l := &Link{
		conn:    conn,
		take:    map[protocol.Kind]func(*protocol.Frame) error{},
		written: make(chan struct{}),
		ended:   make(chan struct{}),
		done:    make(chan struct{}),
	}
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

// OnEnd registers a function that is called after the last message, when the link has ended. The
// reason is io.EOF if the other end has closed the link, and ErrClosed if this end has.
func (l *Link) OnEnd(f func(why error)) { l.ends = append(l.ends, f) }

// Run begins to read and write.
func (l *Link) Run() {
	go l.write()
	go l.read()
}

// Send queues a message. It never waits. A message that is too long ends the link.
func (l *Link) Send(m protocol.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing || l.over() {
		return
	}
	var err error
	if l.queue, err = protocol.AppendFrame(l.queue, 0, 0, m); err != nil {
		l.drop(err)
		return
	}
	l.cond.Broadcast()
	if n := l.unsent(); n > HardUnsent {
		l.drop(fmt.Errorf("the other end left %d bytes unread, at most %d allowed", n, HardUnsent))
	}
}

// unsent returns the bytes that are queued or being written. mu is held.
func (l *Link) unsent() int { return len(l.queue) + l.writing }

// Room waits until at most softUnsent bytes are unsent. It is false if the link has ended.
func (l *Link) Room() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.unsent() > softUnsent && !l.closing && !l.over() {
		l.cond.Wait()
	}
	return !l.closing && !l.over()
}

// Ended returns a channel that is closed when nothing is sent any more.
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
	_ = l.conn.Close() // reader and writer end, also if this fails
}

// over reports whether nothing is sent any more. mu is held.
func (l *Link) over() bool { return l.stuck != nil || l.err != nil }

// cannotWrite ends the sending, since a frame may have gone out in part. The reader still reads
// what the other end has sent. mu is held.
func (l *Link) cannotWrite(why error) {
	if l.over() {
		return
	}
	l.stuck, l.queue = why, nil
	close(l.ended)
	l.cond.Broadcast()
	_ = l.conn.SetReadDeadline(time.Now().Add(closeWait)) // fails only if it is closed
}

// Close writes what is queued, for at most closeWait, and ends the link. No handler runs any more
// when it returns.
func (l *Link) Close() {
	l.mu.Lock()
	l.closing = true
	l.cond.Broadcast()
	_ = l.conn.SetWriteDeadline(time.Now().Add(closeWait)) // fails only if it is closed
	l.mu.Unlock()
	<-l.written
	l.Break(ErrClosed)
	<-l.done
}

// write is the writer's goroutine, the only one that waits for an end that does not read.
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

// converse reads frames and calls their handlers until the connection ends.
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

// broken is the reason that ends the link with an end that broke the protocol.
func broken(err error) error { return errors.New(protocol.ProtocolBroken(err)) }
