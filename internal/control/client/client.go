// SPDX-License-Identifier: Apache-2.0

// Package client is the end of the control plane in a process (Client), and in gompictl (Tool).
//
// A Client has a goroutine that reads answers and events, and one that writes what the kernel did
// not take at once. Each request names its answer by a number, so that many goroutines may ask at
// the same time. cancellation.go says what becomes of a request whose context ends first.
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

// dialWait bounds the time to a Welcome. A head that starts a thousand processes on two processors
// answers the last one after seconds.
const dialWait = 60 * time.Second

// Client is a process's connection to its agent. Its methods may be called from any goroutine, but
// Next only by one at a time.
//
// A call that asks for something returns ErrLost, wrapped with the reason, if the connection ends
// before the answer, and ErrClosed after Close. A one-way call never waits for the head. All frames
// leave in the order of the calls, so that an answer, such as that of Finalize, says that the head
// has everything that was sent before.
type Client struct {
	conn *socket
	done chan struct{} // closed when the reader has ended
	out  outbox

	mu     sync.Mutex
	cond   sync.Cond                   // signals a change of events or err
	calls  map[uint32]chan *answer     // requests without an answer; nil: abandoned, see late
	late   map[uint32]protocol.Message // abandoned requests whose answers have to be given back
	same   map[any]*sameLate           // of these, by cancellation.same
	lastID uint32
	events []protocol.Event
	err    error // why nothing more comes; set once
	closed bool
}

// sameLate is the answers to abandoned requests for the same thing.
type sameLate struct {
	n    int           // answers that are still to come
	over chan struct{} // closed when all have come and were given back
}

// answer is the answer to a request.
type answer struct {
	reply protocol.Reply
	fds   [protocol.FrameFDs]int
}

// Dial joins the job as the process that was started with this token. The caller owns the
// descriptors of the Welcome. A refusal is an ErrRefused or ErrEnding with the head's reason. Dial
// shows the token only to a socket of the same user or of root; else it returns a
// *protocol.OwnerError.
func Dial(addr, token string) (*Client, *protocol.Welcome, error) { return dial(addr, token, dialWait) }

// DialSpare is Dial for a spare, which waits until a change needs it. If none does, the error is an
// ErrEnding or ErrRefused, or the end of the connection.
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
	c := &Client{
		conn:  conn,
		done:  make(chan struct{}),
		calls: map[uint32]chan *answer{},
		late:  map[uint32]protocol.Message{},
		same:  map[any]*sameLate{},
	}
	c.cond.L = &c.mu
	c.out.init()
	go c.read(in)
	return c
}

// connect connects to an agent, for a process or for a tool. It waits while the agent's backlog is
// full, until the deadline or until ctx is done.
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

// read is the reader's goroutine. It passes answers to their calls, and events to Next.
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
		err = ended // this end has ended the connection
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

// deliver passes an answer to its call. For an abandoned request it closes the descriptors, and
// gives back what the answer gave.
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

// Ask sends a request and decodes its answer into body, which may keep parts of the answer. Ctx ends
// the wait. A request that may have had an effect is answered even then: Ask returns ctx's error
// only if there was none. What another answer gave is given back.
func (c *Client) Ask(ctx context.Context, m, body protocol.Message) error {
	b, err := c.ask(ctx, m)
	if err != nil {
		return err
	}
	return protocol.Decode(body, b)
}

// Tell sends a one-way message. It never waits.
func (c *Client) Tell(m protocol.Message) error { return c.tell(m) }

// Say is Tell that returns when the kernel has the message, so that the head gets it although the
// process ends at once.
func (c *Client) Say(m protocol.Message) error { return c.say(m) }

// AskFiles is Ask for an answer with descriptors, which the caller owns. They are -1 if the answer
// has none.
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

// ask sends a request whose answer has no descriptors, and returns the body of the answer.
func (c *Client) ask(ctx context.Context, m protocol.Message) ([]byte, error) {
	body, fds, err := c.askFiles(ctx, m)
	protocol.CloseFiles(fds[:]...)
	return body, err
}

// askFiles is ask with descriptors, which the caller owns. They are -1 on an error.
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

// wait sends a request and waits for its answer.
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
			// If the connection is lost the head forgets the request anyway.
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

// cancelled withdraws a request that may have had its effect already, and waits for the answer,
// which says so.
func (c *Client) cancelled(ctx context.Context, id uint32, ch chan *answer) (*answer, error) {
	_ = c.tell(&protocol.Cancel{ID: id}) // if the connection is lost the head forgets the request anyway
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

// afterSame waits until all answers to abandoned requests for the same thing were given back.
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
			return nil // the request finds out why
		}
	}
}

// awaitLate counts one more answer that has to be given back; mu is held.
func (c *Client) awaitLate(key any) {
	l := c.same[key]
	if l == nil {
		l = &sameLate{over: make(chan struct{})}
		c.same[key] = l
	}
	l.n++
}

// forget abandons a call; false if its answer has come already. What the answer to asked gives is
// given back, unless asked is nil.
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

// Next returns the next event. It blocks until there is one. After the end of the connection it
// returns ErrLost with the reason, or ErrClosed.
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

// Close ends the connection, and all calls return. It may be called at any time and repeatedly. It
// waits up to 2 s for a head that does not read. A process that closes without Finalize counts as
// dead when it exits.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.finish()
	c.conn.Close()
	<-c.done
	return nil
}
