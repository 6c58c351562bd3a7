// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/core"
	"gompi/internal/engine"
)

const (
	opBsend        fault.Call = "Bsend"
	opIbsend       fault.Call = "Ibsend"
	opAttachBuffer fault.Call = "AttachBuffer"
	opDetachBuffer fault.Call = "DetachBuffer"
	opFlushBuffer  fault.Call = "FlushBuffer"
)

// BsendOverhead is what a message takes of an attached buffer beyond its own
// bytes. MPI 4.1 section 3.6.
const BsendOverhead = 64

// BufferAutomatic, as the size of a buffer, means one that grows with what is
// put into it. MPI 4.1 section 3.6.
const BufferAutomatic = -1

// Bsend copies buf into an attached buffer, unless the message can leave at
// once, and returns: it never waits for the receiver. The buffer is the
// communicator's, or else that of its session, or the process's; ErrBuffer if there is none or it has
// less room than the bytes and BsendOverhead. A message that cannot be
// delivered later is an error of Flush or Detach of the buffer; one in the
// process's buffer is lost if its communicator is freed. dest may be ProcNull.
// MPI 4.1 section 3.4.
func Bsend[T any](c *Comm, buf []T, dest, tag int) error {
	return c.bsendBuf(opBsend, BufOf(buf), dest, tag)
}

// Ibsend is Bsend with its result in a request, which is complete.
// MPI 4.1 section 3.7.2.
func Ibsend[T any](c *Comm, buf []T, dest, tag int) Request {
	return c.Bufs().Ibsend(BufOf(buf), dest, tag)
}

func (c *Comm) bsendBuf(op fault.Call, b Buf, dest, tag int) error {
	if c != nil && dest == ProcNull {
		return nil
	}
	if err := c.badSend(op, &b, dest, tag); err != nil {
		return err
	}
	a := engine.SendArgs{Op: op, Buf: b.b, Dest: int32(dest), Tag: int32(tag), Plane: wire.TrafficP2P}
	if k := c.core.Check; k != nil {
		u, f := k.Book(&c.core.Comm, core.SendUse(&a))
		if f != nil {
			return c.errorOf(op, a.Dest, a.Tag, f)
		}
		defer k.End(u)
	}
	return c.raise(c.bsend(&a))
}

// bsend sends from the buffer that serves c, without the error handler. a has
// been checked.
func (c *Comm) bsend(a *engine.SendArgs) *Error {
	s := c.core.buffer.Load()
	if !s.attached() {
		s = c.core.space
	}
	if !s.attached() {
		if s = &c.core.proc.buffer; !s.attached() {
			return c.newError(&argFault{class: ErrBuffer, op: a.Op, at: atPeerTag(int(a.Dest), int(a.Tag)), err: fmt.Errorf("no buffer is attached to the communicator or the process")})
		}
	}
	return s.send(c, a)
}

// sendBuffer is memory for buffered sends: a number of bytes, counted as MPI
// does, and blocks that are reused. The zero value has nothing attached.
type sendBuffer struct {
	mu       sync.Mutex
	on       bool
	capacity int64 // or BufferAutomatic
	used     int64
	sent     []stored
	spare    []stored // whose blocks may be reused
	spared   int64    // bytes in spare
	handles  []engine.Handle
	lost     error // the first message that could not be delivered
	reapAt   int   // how many stored messages make a send look which have left

	turn chan struct{} // held by the flush that waits
}

// stored is a message that has not left.
type stored struct {
	h     engine.Handle
	block []byte
	cost  int64
}

// maxSpare bounds the memory that a buffer keeps for reuse, in bytes.
const maxSpare = 1 << 20

// attached reports whether there is memory. s may be nil.
func (s *sendBuffer) attached() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on
}

func (s *sendBuffer) attach(bytes int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.on:
		return fmt.Errorf("a buffer of %s is attached", sizeText(s.capacity))
	case bytes < 0 && bytes != BufferAutomatic:
		return fmt.Errorf("%d bytes", bytes)
	}
	s.on, s.capacity, s.reapAt = true, int64(bytes), minReap
	if s.turn == nil {
		s.turn = make(chan struct{}, 1)
	}
	return nil
}

func sizeText(n int64) string {
	if n == BufferAutomatic {
		return "automatic size"
	}
	return fmt.Sprintf("%d bytes", n)
}

func (s *sendBuffer) send(c *Comm, a *engine.SendArgs) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := a.Buf.Bytes()
	cost := n + BsendOverhead
	if s.capacity != BufferAutomatic && s.used+cost > s.capacity || len(s.sent) >= s.reapAt {
		s.reap(c.core.Engine)
	}
	if s.capacity != BufferAutomatic && s.used+cost > s.capacity {
		return c.newError(&argFault{class: ErrBuffer, op: a.Op, at: atPeerTag(int(a.Dest), int(a.Tag)), err: fmt.Errorf("%d bytes and %d overhead do not fit: %d of %d are free", n, BsendOverhead, s.capacity-s.used, s.capacity)})
	}
	b := engine.SendArgs{Op: a.Op, Buf: a.Buf, Dest: a.Dest, Tag: a.Tag, Plane: a.Plane}
	left, f := c.core.Engine.TrySend(c.core.Ctx, &b)
	if f != nil {
		return c.faultError(a.Op, a.Dest, a.Tag, f)
	}
	if left {
		return nil
	}
	block := s.take(n)
	a.Buf.Pack(block, 0)
	b.Buf = buffer.Of(block)
	s.sent = append(s.sent, stored{c.core.Engine.Isend(c.core.Ctx, &b), block, cost})
	s.used += cost
	return nil
}

// minReap is the least number of stored messages at which a send looks which
// have left.
const minReap = 64

// take returns a block of n bytes.
func (s *sendBuffer) take(n int64) []byte {
	for i := len(s.spare) - 1; i >= 0; i-- {
		b := s.spare[i].block
		if c := int64(cap(b)); c >= n && c/4 <= n {
			last := len(s.spare) - 1
			s.spare[i] = s.spare[last]
			s.spare[last] = stored{}
			s.spare = s.spare[:last]
			s.spared -= c
			return b[:n]
		}
	}
	return make([]byte, n)
}

// reap gives back the space of messages that have left.
func (s *sendBuffer) reap(e *engine.Engine) {
	if len(s.sent) == 0 {
		return
	}
	s.handles = s.handles[:0]
	for _, m := range s.sent {
		s.handles = append(s.handles, m.h)
	}
	e.Reap(s.handles, func(i int, o engine.Outcome) { s.gone(i, &o) })
	s.compact()
	s.reapAt = max(minReap, 2*len(s.sent))
}

// gone books that message i has left or cannot.
func (s *sendBuffer) gone(i int, o *engine.Outcome) {
	m := &s.sent[i]
	s.used -= m.cost
	if f := o.Status.Fault; f != nil && f.Class != fault.Request && s.lost == nil {
		c, _ := o.Owner.(*Comm)
		s.lost = c.faultError(o.Op, o.Peer, o.Tag, f)
	}
	if n := int64(cap(m.block)); n > 0 && s.spared+n <= maxSpare {
		s.spare = append(s.spare, stored{block: m.block})
		s.spared += n
	}
	*m = stored{}
}

func (s *sendBuffer) compact() {
	kept := s.sent[:0]
	for _, m := range s.sent {
		if !m.h.IsNull() {
			kept = append(kept, m)
		}
	}
	clear(s.sent[len(kept):])
	s.sent = kept
}

// flush waits until what is stored now has left, or user ends: then gaveUp. It
// returns what could not be delivered since the last flush.
func (s *sendBuffer) flush(e *engine.Engine, user context.Context) (gaveUp bool, err error) {
	var end <-chan struct{}
	if user != nil {
		end = user.Done()
	}
	s.mu.Lock()
	on, turn := s.on, s.turn
	s.mu.Unlock()
	if !on {
		return false, errNoBuffer
	}
	// One at a time: a request has one waiter.
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-end:
		return true, context.Cause(user)
	}
	s.mu.Lock()
	wait := append([]stored(nil), s.sent...)
	s.mu.Unlock()
	for _, m := range wait {
		o, ended := e.WaitFor(m.h, user)
		if !ended {
			return true, context.Cause(user)
		}
		s.mu.Lock()
		// A send may have found it before.
		if i := slices.IndexFunc(s.sent, func(n stored) bool { return n.h == m.h }); i >= 0 {
			s.gone(i, &o)
			s.compact()
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err, s.lost = s.lost, nil
	return false, err
}

// detach flushes and gives the buffer up.
func (s *sendBuffer) detach(e *engine.Engine, user context.Context) (bytes int, gaveUp bool, err error) {
	gaveUp, err = s.flush(e, user)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.on:
		return 0, false, errNoBuffer
	case gaveUp && len(s.sent) > 0:
		return int(s.capacity), true, err
	case gaveUp:
		err = nil
	}
	bytes = int(s.capacity)
	// What another goroutine has put in meanwhile leaves by itself.
	for _, m := range s.sent {
		e.Free(m.h)
	}
	s.on, s.capacity, s.used, s.sent, s.spare, s.spared = false, 0, 0, nil, nil, 0
	return bytes, false, err
}

var errNoBuffer = errors.New("no buffer is attached")

// bufferError makes an error of a buffer call.
func (c *Comm) bufferError(op fault.Call, gaveUp bool, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	class := ErrBuffer
	if gaveUp {
		class = ErrCancelled
	} else if errors.As(err, &e) {
		return c.raise(e) // a message's own
	}
	return c.fail(&argFault{class: class, op: op, err: err})
}

// SendBuffer is buffer space for Bsend: of a communicator, or of a process for
// all communicators that have none of their own. MPI 4.1 section 3.6.
type SendBuffer struct {
	c     *Comm // whose calls they are
	own   bool  // the buffer is c's, not the process's
	proc  *Process
	space *sendBuffer // of its own; then c may be nil, and proc not
}

// SendBuffer is the communicator's buffer space. Its calls give up when c's
// context ends. Local.
func (c *Comm) SendBuffer() SendBuffer { return SendBuffer{c: c, own: true} }

// SendBuffer is the process's buffer space. Local.
func (p *Process) SendBuffer() SendBuffer { return SendBuffer{c: p.Self()} }

// WithContext returns the same buffer space for calls that give up when ctx
// ends. Local.
func (b SendBuffer) WithContext(ctx context.Context) SendBuffer {
	b.c = b.comm().WithContext(ctx)
	return b
}

// NewSendBuffer is buffer space for communicators that it is to Serve: that of a
// session. Local.
func (p *Process) NewSendBuffer() SendBuffer { return SendBuffer{proc: p, space: new(sendBuffer)} }

// Serve makes b, which NewSendBuffer has made, the buffer space of a communicator,
// before that is used, and of those that are made from it, where they have no space
// attached of their own. Local.
func (b SendBuffer) Serve(c *Comm) { c.of("SendBuffer.Serve").space = b.space }

// Attached reports whether space is attached. Local.
func (b SendBuffer) Attached() bool { return b.comm() != nil && b.buffer().attached() }

// comm is the communicator whose calls they are.
func (b SendBuffer) comm() *Comm {
	if b.c == nil && b.proc != nil {
		return b.proc.Self()
	}
	return b.c
}

// buffer is the memory behind b, which has a communicator.
func (b SendBuffer) buffer() *sendBuffer {
	if b.space != nil {
		return b.space
	}
	if !b.own {
		return &b.c.core.proc.buffer
	}
	b.c.core.buffer.CompareAndSwap(nil, new(sendBuffer))
	return b.c.core.buffer.Load()
}

// Attach gives bytes of space, or BufferAutomatic. Memory is taken as it is
// needed. One buffer at a time; local. MPI 4.1 section 3.6.
func (b SendBuffer) Attach(bytes int) error {
	c := b.comm()
	if err := c.exists(opAttachBuffer); err != nil {
		return err
	}
	return c.attach(b.buffer(), bytes)
}

// Detach waits until all messages in the buffer have left, takes it away and
// returns its size. If the context ends before, it gives ErrCancelled and
// nothing changes. A message that could not be delivered gives its error, and
// the buffer is detached. MPI 4.1 section 3.6.
func (b SendBuffer) Detach() (bytes int, err error) {
	c := b.comm()
	if err := c.exists(opDetachBuffer); err != nil {
		return 0, err
	}
	return c.detach(b.buffer())
}

// Flush waits until all messages that are in the buffer have left, with the
// errors of Detach. MPI 4.1 section 3.6.
func (b SendBuffer) Flush() error {
	c := b.comm()
	if err := c.exists(opFlushBuffer); err != nil {
		return err
	}
	return c.flush(b.buffer())
}

// Iflush starts a Flush. MPI 4.1 section 3.6.
func (b SendBuffer) Iflush() Request {
	c := b.comm()
	if err := c.exists(opFlushBuffer); err != nil {
		return c.failedRequest(opFlushBuffer, err)
	}
	return c.iflush(b.buffer())
}

func (c *Comm) attach(s *sendBuffer, bytes int) error {
	p := c.core.proc
	p.bufferMu.Lock()
	err := s.attach(bytes)
	if err == nil {
		p.buffers = append(p.buffers, s)
	}
	p.bufferMu.Unlock()
	return c.bufferError(opAttachBuffer, false, err)
}

func (c *Comm) detach(s *sendBuffer) (int, error) {
	n, gaveUp, err := s.detach(c.core.Engine, c.user)
	if !gaveUp && !errors.Is(err, errNoBuffer) {
		p := c.core.proc
		p.bufferMu.Lock()
		p.buffers = slices.DeleteFunc(p.buffers, func(t *sendBuffer) bool { return t == s && !t.attached() })
		p.bufferMu.Unlock()
	}
	return n, c.bufferError(opDetachBuffer, gaveUp, err)
}

// detachAll is what Finalize does with buffers that are still attached.
func (p *Process) detachAll() error {
	p.bufferMu.Lock()
	all := p.buffers
	p.buffers = nil
	p.bufferMu.Unlock()
	var first error
	for _, s := range all {
		if _, gaveUp, err := s.detach(p.core.Engine, p.core.Ctx); first == nil && !errors.Is(err, errNoBuffer) {
			first = p.Self().bufferError("Finalize", gaveUp, err)
		}
	}
	return first
}

func (c *Comm) flush(s *sendBuffer) error {
	gaveUp, err := s.flush(c.core.Engine, c.user)
	return c.bufferError(opFlushBuffer, gaveUp, err)
}

func (c *Comm) iflush(s *sendBuffer) Request {
	h := c.core.Engine.NewOther(c.core.Ctx, opFlushBuffer, buffer.Buf{})
	go func() {
		st := engine.Status{Source: AnySource, Tag: AnyTag}
		if err := c.flush(s); err != nil {
			st.Fault = &fault.Fault{Class: fault.Reported, Peer: -1, Err: err}
		}
		c.core.Engine.Complete(h, st)
	}()
	return Request{h}
}
