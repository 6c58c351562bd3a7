// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"gompi/internal/control/protocol"
)

// How much a head that does not read (it is stopped, or slow) may leave in a
// client's queue. Requests wait while there are more than softUnsent bytes, so
// all of them together, with their withdrawals, stay near that. What is only
// told is not made to wait, since the engine tells with its lock held; it comes
// once for each process and communicator, and once for each answer that the
// head itself asked for: hardUnsent holds a Watch of 100 scattered processes
// for 40,000 communicators. Above it the connection is given up, as the head
// does the other way (hardQueue): a lost Watch would be a call that never ends.
const (
	softUnsent = 1 << 20
	hardUnsent = 64 << 20
)

// reasonWait is how long a writer whose socket has failed waits for the
// reader to find the head's reason.
const reasonWait = time.Second

// spareBytes is the longest buffer that is kept to be filled again.
const spareBytes = 64 << 10

// closeWait is how long Close waits for a head that does not read.
const closeWait = 2 * time.Second

// outbox holds the frames that a client has yet to write, in order.
type outbox struct {
	mu      sync.Mutex
	cond    sync.Cond     // any field has changed
	queue   []byte        // frames; of the first one a part may have left
	writing int           // bytes that the writer has taken and not yet written
	closing bool          // Close was called: write what is queued, then end
	err     error         // why nothing is written any more; set once
	written chan struct{} // closed when the writer has ended; nil: it has not begun
}

func (o *outbox) init() { o.cond.L = &o.mu }

// ended says why a frame cannot be queued. mu is held.
func (o *outbox) ended() error {
	switch {
	case o.closing:
		return protocol.ErrClosed
	case o.err != nil:
		return fmt.Errorf("%w: %w", protocol.ErrLost, o.err)
	}
	return nil
}

// unsent counts bytes. mu is held.
func (o *outbox) unsent() int { return len(o.queue) + o.writing }

// stop drops what is queued; nothing can be queued afterwards. It returns the
// first reason that stop was given.
func (o *outbox) stop(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.drop(err)
}

// drop is stop with mu held.
func (o *outbox) drop(err error) error {
	if o.err == nil {
		o.err, o.queue = err, nil
		o.cond.Broadcast()
	}
	return o.err
}

// add queues a frame behind the others. What asks leaves at once, with
// all that was told before, as far as the kernel takes it; the rest is the writer's,
// as is what is only told, so that frames leave together and one of them wakes the
// agent. The writer begins with the first frame that it gets. mu is held.
func (c *Client) add(id uint32, m protocol.Message, atOnce bool) (err error) {
	o := &c.out
	if o.queue, err = protocol.AppendFrame(o.queue, id, 0, m); err != nil {
		return err
	}
	if atOnce && o.writing == 0 {
		n := c.conn.trySend(o.queue)
		if o.queue = o.queue[n:]; len(o.queue) == 0 {
			o.queue = nil
			o.cond.Broadcast() // there is room
			return nil
		}
	}
	if o.written == nil {
		o.written = make(chan struct{})
		go c.write()
	}
	o.cond.Broadcast()
	return nil
}

// tell queues a frame that has no answer. It never waits for the head.
func (c *Client) tell(m protocol.Message) error {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.ended(); err != nil {
		return err
	}
	if err := c.add(0, m, false); err != nil {
		return err
	}
	if n := o.unsent(); n > hardUnsent {
		o.drop(fmt.Errorf("gompirun left %d bytes unread, at most %d allowed", n, hardUnsent))
		// Not Close, which may wait. The only error is that the connection
		// is closed, which is as good.
		_ = c.conn.SetDeadline(time.Unix(1, 0))
		return o.ended()
	}
	return nil
}

// say is tell, and returns when all is written: the process may end at once.
func (c *Client) say(m protocol.Message) error {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.ended(); err != nil {
		return err
	}
	for err := c.add(0, m, true); o.unsent() > 0 || err != nil; o.cond.Wait() {
		if err != nil {
			return err
		}
		if err := o.ended(); err != nil {
			return err
		}
	}
	return nil
}

// request queues a frame that asks, once there is room or until ctx is done.
func (c *Client) request(ctx context.Context, id uint32, m protocol.Message) error {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unsent() > softUnsent {
		stop := context.AfterFunc(ctx, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.cond.Broadcast()
		})
		defer stop()
		for o.unsent() > softUnsent && o.ended() == nil && ctx.Err() == nil {
			o.cond.Wait()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := o.ended(); err != nil {
		return err
	}
	return c.add(id, m, true)
}

// write is the writer's goroutine: the only one that a head that does not read
// stops.
func (c *Client) write() {
	o := &c.out
	defer close(o.written)
	var spare []byte
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.closing && o.err == nil {
			o.cond.Wait()
		}
		if len(o.queue) == 0 {
			o.mu.Unlock()
			return
		}
		batch := o.queue
		o.queue, o.writing = spare[:0], len(batch)
		o.mu.Unlock()

		_, err := c.conn.Write(batch)
		if spare = batch; cap(batch) > spareBytes {
			spare = nil
		}

		o.mu.Lock()
		o.writing = 0
		o.cond.Broadcast()
		closing := o.closing
		o.mu.Unlock()
		if err == nil {
			continue
		}
		if !closing && !errors.Is(err, os.ErrDeadlineExceeded) {
			// The head has closed its end, so the reader is about to find
			// that too, with the head's reason before it.
			select {
			case <-c.done:
			case <-time.After(reasonWait):
			}
		}
		o.stop(err)
		c.conn.Close() // a frame may have gone out in part
		return
	}
}

// finish writes what is queued, for at most closeWait, and ends the writer.
func (c *Client) finish() {
	o := &c.out
	o.mu.Lock()
	o.closing = true
	if o.written == nil {
		o.mu.Unlock()
		return
	}
	o.cond.Broadcast()
	// The only error is that the connection is closed, which is as good.
	_ = c.conn.SetWriteDeadline(time.Now().Add(closeWait))
	o.mu.Unlock()
	<-o.written
}
