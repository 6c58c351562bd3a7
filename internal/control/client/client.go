// SPDX-License-Identifier: Apache-2.0

// Package client is a process's end of the control plane (Client), and that of
// gompictl (Tool).
package client

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"gompi/internal/base/version"
	"gompi/internal/control/protocol"
)

// dialWait bounds the way to a Welcome: a head that starts a thousand
// processes on two cores answers the last one after seconds.
const dialWait = 60 * time.Second

// Client is a process's connection to its agent. Its methods may be called
// from any goroutine; Next by one at a time.
//
// Calls that ask for something return ErrLost (wrapped, with the reason) when
// the connection ends before the answer, ErrClosed after Close. Calls that
// only tell never wait for the head: their frames are queued and leave in the
// order of all calls. An answer, as that of Finalize, so says that the head
// has everything that was told before.
type Client struct {
	conn *socket
	done chan struct{} // closed when the reader has ended
	out  outbox

	mu     sync.Mutex
	cond   sync.Cond                   // events, err have changed
	calls  map[uint32]chan *answer     // nil: given up, and what is to be given back may still come
	late   map[uint32]protocol.Message // what these ask
	same   map[any]*sameLate           // of these, by abandoned.same
	lastID uint32
	events []protocol.Event
	err    error // set once, when nothing more will come
	closed bool
}

// sameLate are answers for the same thing that nobody waits for.
type sameLate struct {
	n    int           // that are still to come
	over chan struct{} // closed when all have come, and were given back
}

// answer is what a call gets.
type answer struct {
	reply protocol.Reply
	fds   [protocol.FrameFDs]int
}

// Dial joins the job as the process that was started with this token. The
// caller owns Welcome's descriptors. A refusal is an ErrRefused or ErrEnding
// with the head's words. Who listens there is shown the token only if that is this user,
// or root: else it is a *protocol.OwnerError.
func Dial(addr, token string) (*Client, *protocol.Welcome, error) { return dial(addr, token, dialWait) }

// DialSpare is Dial of a spare, which waits until it is needed. If it never is,
// that is an ErrEnding or ErrRefused, or the end of the connection.
func DialSpare(addr, token string) (*Client, *protocol.Welcome, error) {
	return dial(addr, token, spareWait)
}

// spareWait is longer than any job.
const spareWait = 100 * 365 * 24 * time.Hour

func dial(addr, token string, wait time.Duration) (*Client, *protocol.Welcome, error) {
	for _, v := range [...][3]string{{addr, protocol.EnvAddr, protocol.EnvToken}, {token, protocol.EnvToken, protocol.EnvAddr}} {
		if v[0] == "" {
			return nil, nil, fmt.Errorf("join job: %s is set in the environment, but %s is not: gompirun sets both, "+
				"and something between it and this program has removed one", v[2], v[1])
		}
	}
	m := protocol.Hello{Version: version.Gompi()}
	raw, err := hex.DecodeString(token)
	if err != nil || len(raw) != protocol.TokenBytes {
		return nil, nil, fmt.Errorf("join job: %s is not %d hexadecimal digits", protocol.EnvToken, 2*protocol.TokenBytes)
	}
	copy(m.Token[:], raw)
	deadline := time.Now().Add(dialWait)
	conn, err := connect(context.Background(), addr, false, deadline)
	if err != nil {
		return nil, nil, fmt.Errorf("join job at %s: %w", addr, err)
	}
	in := newFDReader(conn)
	w, err := join(conn, in, &m, time.Now().Add(wait))
	if err != nil {
		in.close()
		conn.Close()
		return nil, nil, fmt.Errorf("join job at %s: %w", addr, err)
	}
	return newClient(conn, in), w, nil
}

// newClient makes a client of a connection that was welcomed.
func newClient(conn *socket, in *fdReader) *Client {
	c := &Client{conn: conn, done: make(chan struct{}), calls: map[uint32]chan *answer{}, late: map[uint32]protocol.Message{}, same: map[any]*sameLate{}}
	c.cond.L = &c.mu
	c.out.init()
	go c.read(in)
	return c
}

// connect waits while the agent's backlog is full, until the deadline or ctx is done. It
// is for a process, or for a tool.
func connect(ctx context.Context, addr string, tool bool, deadline time.Time) (*socket, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		conn, err := dialSocket(addr, tool)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, errBusy) || time.Now().After(deadline) {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// join says hello and reads the welcome.
func join(conn *socket, in *fdReader, m *protocol.Hello, deadline time.Time) (*protocol.Welcome, error) {
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if _, err := conn.Write(protocol.ShortFrame(0, 0, m)); err != nil {
		return nil, err
	}
	f, fds, err := in.next()
	if err != nil {
		return nil, protocol.ExplainVersion(err, "this program")
	}
	var said protocol.Welcomed
	var w protocol.Welcome
	switch f.Kind {
	case protocol.KindBye:
		err = protocol.ByeError(f.Body)
	case protocol.KindWelcome:
		if err = protocol.Decode(&said, f.Body); err == nil {
			err = protocol.Decode(&w, said.Welcome)
		}
		if err == nil && passes && fds[0] < 0 {
			err = fmt.Errorf("no room for the shared segment: this process can open no more files (ulimit -n): %w", syscall.EMFILE)
		}
	default:
		err = fmt.Errorf("answer to hello is %v", f.Kind)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		protocol.CloseFiles(fds[:]...)
		return nil, err
	}
	w.Segment, w.Bell, w.Arena, w.Preallocated = fds[0], fds[1], said.Arena, said.Preallocated
	w.Arena.File = fds[2]
	return &w, nil
}

// read is the reader's goroutine: answers go to their calls, events to Next.
func (c *Client) read(in *fdReader) {
	defer close(c.done)
	err := c.readFrames(in)
	in.close()
	c.conn.Close()
	ended := c.out.stop(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.cond.Broadcast()
	if c.closed {
		c.err = protocol.ErrClosed
		return
	}
	if errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = ended // the end came from this side
	}
	c.err = fmt.Errorf("%w: %w", protocol.ErrLost, err)
}

func (c *Client) readFrames(in *fdReader) error {
	for {
		f, fds, err := in.next()
		if err != nil {
			return err
		}
		switch f.Kind {
		case protocol.KindReply:
			a := &answer{fds: [protocol.FrameFDs]int(fds[:])}
			if err := protocol.Decode(&a.reply, f.Body); err != nil {
				protocol.CloseFiles(fds[:]...)
				return err
			}
			a.reply.Body = bytes.Clone(a.reply.Body)
			c.deliver(f.ID, a)
			continue // the call owns the descriptors
		case protocol.KindEvent:
			var ev protocol.Event
			err = protocol.Decode(&ev, f.Body)
			if err == nil && ev.Kind == protocol.EvStdin {
				becomeStdin(fds[0])
			} else if err == nil {
				c.mu.Lock()
				c.events = append(c.events, ev)
				c.cond.Signal()
				c.mu.Unlock()
			}
		case protocol.KindBye:
			err = protocol.ByeError(f.Body)
		default:
			err = f.Kind.Misplaced(protocol.Agent)
		}
		protocol.CloseFiles(fds[:]...)
		if err != nil {
			return err
		}
	}
}

// deliver hands an answer to its call. If the call has given up it closes the
// descriptors, and gives back what was given.
func (c *Client) deliver(id uint32, a *answer) {
	c.mu.Lock()
	ch, asked := c.calls[id], c.late[id]
	delete(c.calls, id)
	delete(c.late, id)
	c.mu.Unlock()
	if ch != nil {
		ch <- a // has room for the only answer
		return
	}
	protocol.CloseFiles(a.fds[:]...)
	if asked == nil {
		return
	}
	r := requests[protocol.KindOf(asked)]
	if a.reply.Err() == nil {
		r.back(c, asked, a.reply.Body)
	}
	if r.same == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := r.same(asked)
	l := c.same[key]
	if l.n--; l.n == 0 {
		close(l.over)
		delete(c.same, key)
	}
}

// Ask sends a request and reads its answer into body; what it keeps of that it
// owns. Ctx ends the wait. What may have an effect has none then, or is answered although
// ctx has ended; what was only given is given back.
func (c *Client) Ask(ctx context.Context, m, body protocol.Message) error {
	b, err := c.ask(ctx, m)
	if err != nil {
		return err
	}
	return protocol.Decode(body, b)
}

// Tell sends what has no answer, and never waits.
func (c *Client) Tell(m protocol.Message) error { return c.tell(m) }

// Say is Tell, and returns when the kernel has what was told: the head hears it although
// the process ends at once.
func (c *Client) Say(m protocol.Message) error { return c.say(m) }

// AskFiles is Ask of an answer with descriptors, which the caller owns; -1: it has
// none.
func (c *Client) AskFiles(ctx context.Context, m, body protocol.Message) (fds [protocol.FrameFDs]int, err error) {
	b, fds, err := c.askFiles(ctx, m)
	if err == nil {
		err = protocol.Decode(body, b)
	}
	if err != nil {
		protocol.CloseFiles(fds[:]...)
		fds = [protocol.FrameFDs]int{-1, -1}
	}
	return fds, err
}

// ask sends a request whose answer has no descriptors and returns the
// answer's body. Ctx ends the wait, not necessarily the request.
func (c *Client) ask(ctx context.Context, m protocol.Message) ([]byte, error) {
	body, fds, err := c.askFiles(ctx, m)
	protocol.CloseFiles(fds[:]...)
	return body, err
}

// askFiles is ask with descriptors, which the caller owns; -1 on an error.
func (c *Client) askFiles(ctx context.Context, m protocol.Message) ([]byte, [protocol.FrameFDs]int, error) {
	a, err := c.wait(ctx, m)
	if err != nil {
		return nil, [protocol.FrameFDs]int{-1, -1}, err
	}
	if err := a.reply.Err(); err != nil {
		protocol.CloseFiles(a.fds[:]...)
		return nil, [protocol.FrameFDs]int{-1, -1}, err
	}
	return a.reply.Body, a.fds, nil
}

// wait sends a request and waits for its answer. On an error there is none.
func (c *Client) wait(ctx context.Context, m protocol.Message) (*answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ch, r := make(chan *answer, 1), requests[protocol.KindOf(m)]
	if r.same != nil {
		if err := c.afterSame(ctx, r.same(m)); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, protocol.ErrClosed
	}
	for {
		c.lastID++
		if _, used := c.calls[c.lastID]; !used && c.lastID != 0 {
			break
		}
	}
	id := c.lastID
	c.calls[id] = ch
	c.mu.Unlock()
	if err := c.request(ctx, id, m); err != nil {
		c.forget(id, ch, nil)
		return nil, err
	}
	select {
	case a := <-ch:
		return a, nil
	case <-ctx.Done():
		if r.waits {
			return c.cancelled(ctx, id, ch)
		}
		if c.forget(id, ch, m) {
			// Best effort: a lost connection forgets the request as well.
			_ = c.tell(&protocol.Cancel{ID: id})
		}
		return nil, ctx.Err()
	case <-c.done:
		// The answer may have come before the end.
		select {
		case a := <-ch:
			return a, nil
		default:
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, id)
		return nil, c.err
	}
}

// cancelled withdraws a request whose answer says what has come of it all the same: it
// may have happened already.
func (c *Client) cancelled(ctx context.Context, id uint32, ch chan *answer) (*answer, error) {
	_ = c.tell(&protocol.Cancel{ID: id}) // a lost connection forgets the request as well
	select {
	case a := <-ch:
		if a.reply.Err() != nil {
			protocol.CloseFiles(a.fds[:]...)
			return nil, ctx.Err()
		}
		return a, nil
	case <-c.done:
		c.forget(id, ch, nil)
		return nil, ctx.Err()
	}
}

// afterSame waits until nothing is to be given back any more for the same thing.
func (c *Client) afterSame(ctx context.Context, key any) error {
	for {
		c.mu.Lock()
		late := c.same[key]
		c.mu.Unlock()
		if late == nil {
			return nil
		}
		select {
		case <-late.over:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.done:
			return nil // the request says why
		}
	}
}

// awaitLate notes that one more answer for the same thing is to be given back; mu is held.
func (c *Client) awaitLate(key any) {
	l := c.same[key]
	if l == nil {
		l = &sameLate{over: make(chan struct{})}
		c.same[key] = l
	}
	l.n++
}

// forget gives a call up; false if its answer has come already. What an answer to
// asked gives, nil: nothing, is then given back.
func (c *Client) forget(id uint32, ch chan *answer, asked protocol.Message) bool {
	c.mu.Lock()
	waiting := c.calls[id] == ch
	delete(c.calls, id)
	if asked != nil {
		if r := requests[protocol.KindOf(asked)]; r.back != nil {
			c.calls[id], c.late[id] = nil, asked
			if r.same != nil {
				c.awaitLate(r.same(asked))
			}
		}
	}
	c.mu.Unlock()
	if !waiting {
		c.deliver(id, <-ch)
	}
	return waiting
}

// Next returns the next event. It blocks until there is one, or the connection
// has ended: then ErrLost with the reason, or ErrClosed, for ever.
func (c *Client) Next() (protocol.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.events) == 0 {
		if c.err != nil {
			return protocol.Event{}, c.err
		}
		c.cond.Wait()
	}
	ev := c.events[0]
	c.events[0] = protocol.Event{}
	c.events = c.events[1:]
	return ev, nil
}

// Close ends the connection; all calls return. It may be called at any time,
// also repeatedly. A head that does not read gets 2 s for what was told before.
// A process that closes without Finalize counts as dead when it exits.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.finish()
	c.conn.Close()
	<-c.done
	return nil
}
