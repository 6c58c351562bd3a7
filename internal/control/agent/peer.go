// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// How much a client may leave unread. Above softQueue its further requests
// wait; that bounds what its requests can pile up. Only what comes unasked, or
// late, goes above, and a client that leaves hardQueue unread is dropped:
// hardQueue holds the deaths of 100,000 processes.
const (
	softQueue = 1 << 20
	hardQueue = 16 << 20
	// chunkBytes is how much is gathered for one system call.
	chunkBytes = 64 << 10
	// maxUntaken is what may be on its way to a head elsewhere, in weights of
	// frames. It bounds what one process has in the queues of both, and what it
	// can be answered before waitRoom sees that.
	maxUntaken = 64 << 10
	// lastWords is how long a closing connection may take for what is queued, and
	// lastHeard how long what a client has said may take that has ended, where others
	// have its connection.
	lastWords = 100 * time.Millisecond
	lastHeard = time.Second
)

// peer is the agent's end of one connection. One goroutine reads (Listener.serve)
// and one writes, so that a client that does not read stops nobody but itself.
type peer struct {
	conn *net.UnixConn
	in   *bufio.Reader
	pid  int // of the process at the other end, 0 if unknown

	serial uint32        // set by hello; afterwards constant
	pidfd  *os.File      // of that process, if it is followed; owned by the reader
	gone   chan struct{} // closed when a process that is followed has ended

	mu       sync.Mutex
	cond     sync.Cond // queue, bytes, closing have changed
	queue    []chunk
	bytes    int    // in queue and being written
	untaken  int    // passed on to the head, and not known to be with it
	host     []byte // the latest EvHost, if it is not yet written
	late     []byte // frames that wait for others
	due      bool   // but no longer
	closing  bool
	bye      string // last words
	protocol int    // of the peer
	byAgent  bool   // the agent broke the connection
	written  chan struct{}
}

// chunk is a run of frames; files go with its first byte.
type chunk struct {
	data  []byte
	files *Files
}

func newPeer(conn *net.UnixConn) *peer {
	p := &peer{conn: conn, in: bufio.NewReaderSize(conn, 4096), gone: make(chan struct{}), written: make(chan struct{}), protocol: wire.Protocol}
	p.cond.L = &p.mu
	return p
}

// send queues a frame. It takes over one reference to files (which may be
// nil) and never blocks.
func (p *peer) send(frame []byte, files *Files) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		files.Release()
		return
	}
	if p.bytes+len(frame) > hardQueue {
		files.Release()
		p.close(fmt.Sprintf("client left %d bytes unread", p.bytes), true)
		return
	}
	p.takeLate()
	p.bytes += len(frame)
	if n := len(p.queue); files == nil && n > 0 && len(p.queue[n-1].data)+len(frame) <= chunkBytes {
		p.queue[n-1].data = append(p.queue[n-1].data, frame...)
	} else {
		p.queue = append(p.queue, chunk{append([]byte(nil), frame...), files})
	}
	p.cond.Broadcast()
}

// lateLeast: what may be late by less than that is not held up.
const lateLeast = 500 * time.Microsecond

// sendLate queues a frame that may be gathered with others for that time, but
// comes before whatever is sent later.
func (p *peer) sendLate(frame []byte, wait time.Duration) {
	if wait < lateLeast {
		p.send(frame, nil)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return
	}
	if len(p.late) == 0 {
		p.due = false
		time.AfterFunc(wait, p.flushLate)
	}
	p.late = append(p.late, frame...)
	p.bytes += len(frame)
}

func (p *peer) flushLate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due = true
	p.cond.Broadcast()
}

// takeLate puts what waits into the queue. mu is held.
func (p *peer) takeLate() {
	if len(p.late) > 0 {
		p.queue = append(p.queue, chunk{data: p.late})
		p.late = nil
	}
}

// dropLate forgets what waits: it is of ends, and the client leaves itself.
func (p *peer) dropLate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= len(p.late)
	p.late = nil
}

// sendHost queues an EvHost in place of one that still waits.
func (p *peer) sendHost(frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closing {
		p.host = frame
		p.cond.Broadcast()
	}
}

// tell sends a frame to a tool when there is room; false if the connection is
// closing.
func (p *peer) tell(frame []byte) bool {
	if !p.waitRoom() {
		return false
	}
	p.send(frame, nil)
	return true
}

// waitRoom waits until the client has read enough for another request; false
// if the connection is closing.
func (p *peer) waitRoom() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for (p.bytes > softQueue || p.untaken >= maxUntaken) && !p.closing {
		p.cond.Wait()
	}
	return !p.closing
}

// passOn and taken keep count of what is on its way to the head.
func (p *peer) passOn(weight int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.untaken += weight
}

func (p *peer) taken(weight int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.untaken -= min(weight, p.untaken)
	p.cond.Broadcast()
}

// settled lifts the deadline of the hello; false if the connection is closing.
func (p *peer) settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closing && p.conn.SetReadDeadline(time.Time{}) == nil
}

// shut ends the connection soon: what is queued and a reason, if not empty,
// get a short time. Reader and writer end by themselves.
func (p *peer) shut(bye string, byAgent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close(bye, byAgent)
}

// close is shut with mu held.
func (p *peer) close(bye string, byAgent bool) {
	if p.closing {
		return
	}
	p.closing, p.bye, p.byAgent = true, bye, byAgent
	// Deadlines and not Close: they do not wait for anybody. The only error
	// is that the connection is closed, which is as good.
	_ = p.conn.SetReadDeadline(time.Unix(1, 0))
	_ = p.conn.SetWriteDeadline(time.Now().Add(lastWords))
	p.cond.Broadcast()
}

// write is the writer's goroutine.
func (p *peer) write() {
	defer close(p.written)
	deaf := false // the client has closed its end
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && p.host == nil && !p.closing && (len(p.late) == 0 || !p.due) {
			p.cond.Wait()
		}
		p.takeLate()
		batch, last := p.queue, p.closing
		p.queue = nil
		if p.host != nil {
			batch = append(batch, chunk{data: p.host})
			p.bytes += len(p.host)
			p.host = nil
		}
		if last && p.bye != "" {
			bye := protocol.ByeTo(p.protocol, p.bye)
			batch = append(batch, chunk{data: bye})
			p.bytes += len(bye)
		}
		p.mu.Unlock()

		var err error
		for i := range batch {
			if err == nil && !deaf {
				err = p.writeChunk(&batch[i])
			}
			batch[i].files.Release()
			p.mu.Lock()
			p.bytes -= len(batch[i].data)
			p.cond.Broadcast()
			p.mu.Unlock()
		}
		if last {
			return
		}
		switch {
		case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
			deaf = true // the reader is about to find the end, behind what it has said last
		case err != nil:
			p.shut("", false)
		}
	}
}

func (p *peer) writeChunk(c *chunk) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		n, err := writeWith(p.conn, c.data, c.files)
		switch {
		case errors.Is(err, errManyRights):
			// Too many descriptors of this user are on their way (root is
			// exempt); the receivers will take them out.
			if !p.sleep(pause) {
				return err
			}
			continue
		case err != nil:
			return err
		case n < len(c.data):
			_, err = p.conn.Write(c.data[n:])
		}
		return err
	}
}

// sleep is false when the connection is closing.
func (p *peer) sleep(d time.Duration) bool {
	time.Sleep(d)
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closing
}

// read returns the next frame; the body is valid until the next call with the
// same buf.
func (p *peer) read(buf *[]byte, limit int) (protocol.Frame, error) {
	head, err := p.in.Peek(protocol.FrameHead)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return protocol.Frame{}, err
	}
	f, n, err := protocol.ParseHead(head)
	if err != nil {
		return protocol.Frame{}, &protocolError{err}
	}
	if f.FDs != 0 {
		return protocol.Frame{}, &protocolError{fmt.Errorf("%v frame has descriptors", f.Kind)}
	}
	if n > limit {
		return protocol.Frame{}, &protocolError{fmt.Errorf("%v frame has %d bytes, at most %d allowed here", f.Kind, n, limit)}
	}
	if _, err := p.in.Discard(protocol.FrameHead); err != nil {
		return protocol.Frame{}, err
	}
	if cap(*buf) < n || cap(*buf) > chunkBytes && n < chunkBytes {
		*buf = make([]byte, max(n, 512))
	}
	f.Body = (*buf)[:n]
	if _, err := io.ReadFull(p.in, f.Body); err != nil {
		return protocol.Frame{}, err
	}
	return f, nil
}

// mismatched says why a peer of another protocol, whose first frame this is, and this
// gompirun do not work together.
func (p *peer) mismatched(e *protocol.VersionError) (why, err error) {
	if _, err := p.in.Discard(protocol.FrameHead); err != nil {
		return nil, err
	}
	body := make([]byte, e.Bytes)
	if _, err := io.ReadFull(p.in, body); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.protocol = e.Protocol
	p.mu.Unlock()
	return protocol.Mismatch(e.Sender(body), protocol.OwnBuild("gompirun")), nil
}

// protocolError is the client's fault.
type protocolError struct{ err error }

func (e *protocolError) Error() string { return e.err.Error() }
func (e *protocolError) Unwrap() error { return e.err }

// lastRead lets the reader take what has come, and no more.
func (p *peer) lastRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closing {
		_ = p.conn.SetReadDeadline(time.Now().Add(lastHeard)) // it is closed: as good
	}
}
