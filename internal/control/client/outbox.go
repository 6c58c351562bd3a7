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

// How many bytes a head that does not read, because it is stopped or slow, may leave in a client's
// queue.
//
// Requests wait while there are more than softUnsent bytes, so that all of them together, with their
// Cancels, stay near that. One-way messages do not wait, since the engine sends them with its lock
// held. There is one for each process and communicator, and one for each answer that the head asked
// for: hardUnsent holds a Watch of 100 scattered processes for 40,000 communicators. Above
// hardUnsent the connection ends, as in the other direction (hardQueue of package agent): a lost
// Watch would be a call that never returns.
const (
	softUnsent = 1 << 20
	hardUnsent = 64 << 20
)

// reasonWait is how long a writer whose socket has failed waits for the reader to find the head's
// reason.
const reasonWait = time.Second

// spareBytes is the longest buffer that the writer keeps to fill it again.
const spareBytes = 64 << 10

// closeWait is how long Close waits for a head that does not read.
const closeWait = 2 * time.Second

// outbox is the frames that a client has not written yet, in order.
type outbox struct {
	mu      sync.Mutex
	cond    sync.Cond     // signals a change of any field
	queue   []byte        // frames; a part of the first one may have left
	writing int           // bytes that the writer has taken from queue and not yet written
	closing bool          // Close was called: the writer ends when the queue is empty
	err     error         // why nothing is written any more; set once
	written chan struct{} // closed when the writer has ended; nil: it has not begun
}

func (o *outbox) init() { o.cond.L = &o.mu }

// ended returns why a frame cannot be queued; nil: it can. mu is held.
func (o *outbox) ended() error {
	switch {
	case o.closing:
		return protocol.ErrClosed
	case o.err != nil:
		return fmt.Errorf("%w: %w", protocol.ErrLost, o.err)
	}
	return nil
}

// unsent returns the bytes that are queued or being written. mu is held.
func (o *outbox) unsent() int { return len(o.queue) + o.writing }

// stop drops what is queued. Nothing can be queued afterwards. It returns the reason of the first
// stop.
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

// add queues a frame behind the others. With atOnce it writes the queue, as far as the kernel takes
// it, without the writer. The writer writes the rest, and one-way messages: these leave together, and
// only one of them wakes the agent. The writer begins with the first frame that it gets. mu is held.
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

// tell queues a one-way message. It never waits for the head.
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
		// Close might wait. This fails only if the connection is closed.
		_ = c.conn.SetDeadline(time.Unix(1, 0))
		return o.ended()
	}
	return nil
}

// say is tell that returns when all is written, so that the process may end at once.
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

// request queues a request once there is room, or until ctx is done.
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

// write is the writer's goroutine, the only one that waits for a head that does not read.
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
			// The head has closed its end. The reader is about to find that, and the head's reason
			// before it.
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
	// This fails only if the connection is closed.
	_ = c.conn.SetWriteDeadline(time.Now().Add(closeWait))
	o.mu.Unlock()
	<-o.written
}
