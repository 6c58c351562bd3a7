// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"gompi/internal/base/bytepool"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/engine/match"
	"gompi/transport"
)

// RemoteServer serves one-sided access above the engine: it handles the frames of other
// processes. Its methods are called with the lock held and must not block.
// docs/design/014-remote-memory.md.
type RemoteServer interface {
	// Frame serves a frame of another process. b is valid during the call. It may lie in
	// memory that the peer can write, so each byte must be read once. An error means that
	// the peer broke the protocol; it ends the peer.
	Frame(from wire.ProcID, b []byte) error

	// Down reports, once for each process, that p has ended or, with class Transport, that
	// there is no such process. The engine acknowledges it to the control plane afterwards.
	Down(p wire.ProcID, f *fault.Fault)

	// Forget reports that the engine forgets the end of p: no communicator has it and no
	// query asks for it. If the name occurs again, Down is called again.
	Forget(p wire.ProcID)

	// Cut reports, once for each process, that frames neither come from p nor reach it any
	// more. p lives, and goes on using memory that it reaches without frames.
	Cut(p wire.ProcID, f *fault.Fault)

	// Posted reports that an operation of a Poster has ended: at this process only, or also
	// at the other.
	Posted(tok transport.Token, remote bool, err error)

	// Ended reports that a request that is completed from outside has failed earlier: its
	// memory belongs to the program again. Any request may be reported.
	Ended(h Handle)

	// Leave reports that the process is being finalized. It closes what the process has
	// published, and waits for accesses of others until user ends. It is called without the
	// lock.
	Leave(user context.Context)

	// Close reports that the process was finalized and its transports are closed. Shared
	// memory that no goroutine here uses can be left. It is called without the lock.
	Close()
}

// FrameMax is the largest frame in bytes. It is the same for all processes.
const FrameMax = copiedMax

// longFrame is the length of a frame part that another part follows.
const longFrame = FrameMax / 2

// Lock takes the engine's lock for the server of remote memory. Methods that say so must be
// called under it, others must not.
func (e *Engine) Lock() { e.mu.Lock() }

// Unlock releases the engine's lock.
func (e *Engine) Unlock() { e.mu.Unlock() }

// Closed reports whether the process was finalized. The caller holds the lock.
func (e *Engine) Closed() bool { return e.closed }

// Remote returns the engine's server of remote memory. If there is none, it calls make
// under the lock.
func (e *Engine) Remote(make func() RemoteServer) RemoteServer {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.remote == nil {
		e.remote = make()
		for p, d := range e.dead {
			if d.told {
				e.remote.Down(p, d.fault())
			}
		}
	}
	return e.remote
}

// frame waits for its transport to take it.
type frame struct {
	data []byte
	sent int // bytes that the transport has taken
	next *frame
}

// frameQueue holds the frames to one peer, oldest first.
type frameQueue struct {
	first, last *frame
	bytes       int
}

// remoteFrames carries the frames of remote memory.
type remoteFrames struct {
	process *process
	net     *network

	frames framePool
	remote RemoteServer // nil until used
}

// framePool recycles frames and their memory. It keeps no more than the layer above had
// outstanding at one time.
type framePool struct {
	free   *frame
	blocks bytepool.Pool
}

func (p *framePool) get(b []byte, sent int) *frame {
	f := p.free
	if f == nil {
		f = new(frame)
	} else {
		p.free, f.next = f.next, nil
	}
	f.data, f.sent = p.blocks.Get(len(b)), sent
	copy(f.data, b)
	return f
}

func (p *framePool) put(f *frame) {
	p.blocks.Put(f.data)
	*f = frame{next: p.free}
	p.free = f
}

// SendFrame sends a frame of at most FrameMax bytes to the server of another process. The
// caller holds the lock, and may reuse b at return. Frames to one process arrive in the
// order of the calls. A frame that the transport refuses waits here (FramesQueued): the
// sender must bound the frames without answer. A fault means that the process is known to
// be down. Nil means that the frame arrives, or Down is called.
func (rf *remoteFrames) SendFrame(to wire.ProcID, b []byte) *fault.Fault {
	if len(b) > FrameMax {
		panic(fmt.Sprintf("gompi: BUG: frame of %d bytes, at most %d allowed", len(b), FrameMax))
	}
	if rf.process.closed {
		return &fault.Fault{Class: fault.Finalized, Peer: -1}
	}
	p := rf.net.peerOf(to)
	if p.state == peerDown {
		return p.down
	}
	sent := 0
	if p.frames.first == nil && p.state == peerUp && !p.full {
		n, st := rf.passFrame(p, b)
		switch st {
		case transport.Sent, transport.Queued, transport.Broken: // the last: EvDown follows
			return nil
		}
		rf.net.refused(p)
		sent = n
	}
	rf.process.prog.FrameRefused()
	f := rf.frames.get(b, sent)
	q := &p.frames
	if q.last == nil {
		q.first = f
	} else {
		q.last.next = f
	}
	q.last = f
	q.bytes += len(b) - sent
	rf.net.list(p)
	if p.state == peerNew {
		rf.net.connect(p)
	}
	return nil
}

// FramesQueued returns how many bytes of frames to a process its transport has not taken.
// The caller holds the lock.
func (rf *remoteFrames) FramesQueued(to wire.ProcID) int {
	if p := rf.net.peers[to]; p != nil {
		return p.frames.bytes
	}
	return 0
}

// passFrame hands a frame to the transport, in parts if that takes less at once. It returns
// how many bytes the transport took.
func (rf *remoteFrames) passFrame(p *Peer, b []byte) (n int, st transport.Status) {
	for {
		k, flags := len(b)-n, uint8(0)
		if most := int(p.link.piece); k > most {
			k, flags = most, flagMore
		}
		rf.net.head = header(match.NewKey(wire.ContextID{}, wire.TrafficRMA, 0, 0), kindFrame, flags, 0)
		st = p.link.Send(p.slot, &rf.net.head, b[n:n+k], 0)
		if st != transport.Sent && st != transport.Queued {
			return n, st
		}
		if n += k; n == len(b) {
			return n, st
		}
	}
}

// pumpFrames sends queued frames. It returns false if some are left.
func (rf *remoteFrames) pumpFrames(p *Peer) bool {
	q := &p.frames
	first := q.first
	for f := first; f != nil; f = q.first {
		n, st := rf.passFrame(p, f.data[f.sent:])
		f.sent += n
		q.bytes -= n
		switch st {
		case transport.Full:
			rf.net.refused(p)
			if n > 0 || f != first {
				rf.process.prog.FrameRefused()
			}
			return false
		case transport.Broken:
			return false // EvDown drops the rest
		}
		if q.first = f.next; q.first == nil {
			q.last = nil
		}
		rf.frames.put(f)
	}
	return true
}

// dropFrames drops the frames queued for a peer that is down, and the incomplete frame that
// came from it.
func (rf *remoteFrames) dropFrames(p *Peer) {
	for f := p.frames.first; f != nil; {
		next := f.next
		rf.frames.put(f)
		f = next
	}
	p.frames = frameQueue{}
	rf.frames.blocks.Put(p.frameParts)
	p.frameParts = nil
}

// arriveFrame gives a frame to the server.
func (rf *remoteFrames) arriveFrame(p *Peer, env *envelope, data []byte) error {
	more := env.flags&flagMore != 0
	if rf.remote == nil || len(p.frameParts)+len(data) > FrameMax || more && len(data) == 0 || env.flags&^flagMore != 0 {
		return fmt.Errorf("%w: frame of %d bytes after %d, flags %#x", transport.ErrProtocol, len(data), len(p.frameParts), env.flags)
	}
	rf.process.prog.FrameCame(len(data) >= longFrame)
	if !more && p.frameParts == nil {
		return rf.remote.Frame(p.proc, data)
	}
	if p.frameParts == nil {
		p.frameParts = rf.frames.blocks.Get(FrameMax)[:0]
	}
	p.frameParts = append(p.frameParts, data...)
	if more {
		return nil
	}
	whole := p.frameParts
	p.frameParts = nil
	err := rf.remote.Frame(p.proc, whole)
	rf.frames.blocks.Put(whole)
	return err
}

// tellDown reports a departure to the server of remote memory, once, and ends the use of
// that process's memory.
func (e *Engine) tellDown(proc wire.ProcID, d *departure) {
	e.loseMemory(proc)
	if e.remote != nil && !d.told {
		e.remote.Down(proc, d.fault())
	}
	d.told = true
}

// WakeProcess makes a process that may sleep look at its memory. The caller holds the lock.
func (e *Engine) WakeProcess(p wire.ProcID) {
	if p == e.cfg.Self {
		e.cfg.Sleeper.Wake()
		return
	}
	q := e.peerOf(p)
	if q.state == peerDown {
		if q.down.Class == fault.Unreachable {
			e.cfg.Control.Cut(p, q.down.Err.Error())
		}
		return
	}
	e.control(q, match.NewKey(wire.ContextID{}, wire.TrafficRMA, 0, 0), kindCredit, 0, 0)
}

// NewRemote is NewOther for an operation that needs a rank. The caller holds the lock.
func (rq *requests) NewRemote(c *Context, op fault.Call, rank int32) Handle {
	r := rq.newRequest(reqOther)
	r.op, r.ctx, r.rank, r.tag = op, c, rank, callreg.NoTag
	r.hang()
	return Handle{r, r.gen}
}

// EndRemote is Complete for a caller that holds the lock.
func (rq *requests) EndRemote(h Handle, st Status) bool {
	if !h.live() || h.req.kind != reqOther || h.req.done {
		return false
	}
	h.req.status = st
	rq.complete(h.req)
	return true
}

// device returns the transport that reaches the memory of others by a device, or nil.
func (e *Engine) device() transport.RemoteMemory {
	for _, l := range e.links[1:] {
		if d, ok := l.Transport.(transport.RemoteMemory); ok {
			return d
		}
	}
	return nil
}

// ExposePosted lets processes that know the key access b, until HidePosted. It returns nil
// if no transport can do that.
func (e *Engine) ExposePosted(b []byte) (key []byte) {
	d := e.device() // the list of transports does not change
	if d == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	key = make([]byte, transport.MaxKey)
	n, err := d.Expose(b, key)
	if err != nil {
		return nil
	}
	return key[:n]
}

// HidePosted ends an ExposePosted. No process accesses the memory after it returns.
func (e *Engine) HidePosted(key []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.device().Hide(key)
	}
}

// Poster opens the way to memory that another process has exposed with ExposePosted. The
// Poster's methods are called with the lock held; the caller must close it before it
// returns from Down or Cut. Poster may block, and is called without the lock.
func (e *Engine) Poster(p wire.ProcID) (transport.Poster, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.device()
	if d == nil || e.closed {
		return nil, e.errNone()
	}
	c, err := e.contact(p)
	if err == nil && e.closed {
		closeContact(c)
		err = e.errNone()
	}
	if err != nil {
		return nil, err
	}
	return d.Poster(c)
}
