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

// RemoteServer is what stands above the engine for remote memory: it serves
// frames of other processes. Its methods are called with the lock held and
// must not block. docs/design/014-remote-memory.md.
type RemoteServer interface {
	// Frame serves a frame of another process; b is valid during the call and
	// is not trusted: it may lie in memory that the peer can write, so each
	// byte is read once. An error means that the peer broke the protocol, and
	// ends it.
	Frame(from wire.ProcID, b []byte) error

	// Down tells, once for each process, that p has ended, or, of class Transport,
	// that there is none. That is acknowledged to the control plane after that.
	Down(p wire.ProcID, f *fault.Fault)

	// Forget tells that the end of p is not remembered any more: no communicator
	// has it, and nobody asks for it. Should its name be met again, Down is
	// called again.
	Forget(p wire.ProcID)

	// Cut tells, once for each process, that no frame comes from p, or reaches
	// it, any more. It lives, and goes on using memory that it reaches without
	// frames.
	Cut(p wire.ProcID, f *fault.Fault)

	// Posted tells that an operation of a Poster has come to an end, at this process
	// only or also at the other.
	Posted(tok transport.Token, remote bool, err error)

	// Ended tells that a request which is completed from outside has failed before:
	// what it uses is the program's again. It may be anybody's.
	Ended(h Handle)

	// Leave tells that the process is being finalized: what it has published is
	// closed, and accesses of others that are under way are waited for until
	// user ends. The lock is not held.
	Leave(user context.Context)

	// Close tells that the process was finalized and its transports are closed:
	// shared memory that nobody here uses can be left. The lock is not held.
	Close()
}

// FrameMax is the largest frame, in bytes, the same for all processes.
const FrameMax = copiedMax

// longFrame is the length of frames that others may follow.
const longFrame = FrameMax / 2

// Lock takes the engine's lock, for the server of remote memory: methods that
// say so are called under it, others must not be.
func (e *Engine) Lock() { e.mu.Lock() }

// Unlock gives the engine's lock back.
func (e *Engine) Unlock() { e.mu.Unlock() }

// Closed reports whether the process was finalized. The lock is held.
func (e *Engine) Closed() bool { return e.closed }

// Remote returns the engine's server of remote memory, which make makes, under
// the lock, if there is none yet.
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

// frame is one that waits for its transport.
type frame struct {
	data []byte
	sent int // bytes the transport has taken
	next *frame
}

// frameQueue holds what goes to one peer, oldest first.
type frameQueue struct {
	first, last *frame
	bytes       int
}

// remoteFrames are the frames of remote memory.
type remoteFrames struct {
	process *process
	net     *network

	frames framePool
	remote RemoteServer // nil until used
}

// framePool recycles frames and their memory. What it keeps is bounded by what
// the layer above had outstanding at one time.
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

// SendFrame sends a frame of at most FrameMax bytes to the server of another
// process. The lock is held; b is the caller's again at return. Frames to one
// process arrive in the order of the calls. What the transport refuses waits
// here (FramesQueued): whoever sends bounds what is unanswered. The fault is
// that the process is known to be down; nil means that the frame arrives or
// Down is told.
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

// FramesQueued is how many bytes of frames to a process its transport has not
// taken yet. The lock is held.
func (rf *remoteFrames) FramesQueued(to wire.ProcID) int {
	if p := rf.net.peers[to]; p != nil {
		return p.frames.bytes
	}
	return 0
}

// passFrame hands a frame to the transport, in parts if that takes less at
// once. It returns how many bytes it took.
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
			return false // EvDown throws the rest away
		}
		if q.first = f.next; q.first == nil {
			q.last = nil
		}
		rf.frames.put(f)
	}
	return true
}

// dropFrames throws away what is queued for a peer that is down, and the parts
// that came from it.
func (rf *remoteFrames) dropFrames(p *Peer) {
	for f := p.frames.first; f != nil; {
		next := f.next
		rf.frames.put(f)
		f = next
	}
	p.frames = frameQueue{}
	rf.frames.blocks.Put(p.parts)
	p.parts = nil
}

// arriveFrame gives a frame to the server.
func (rf *remoteFrames) arriveFrame(p *Peer, env *envelope, data []byte) error {
	more := env.flags&flagMore != 0
	if rf.remote == nil || len(p.parts)+len(data) > FrameMax || more && len(data) == 0 || env.flags&^flagMore != 0 {
		return fmt.Errorf("%w: frame of %d bytes after %d, flags %#x", transport.ErrProtocol, len(data), len(p.parts), env.flags)
	}
	rf.process.prog.FrameCame(len(data) >= longFrame)
	if !more && p.parts == nil {
		return rf.remote.Frame(p.proc, data)
	}
	if p.parts == nil {
		p.parts = rf.frames.blocks.Get(FrameMax)[:0]
	}
	p.parts = append(p.parts, data...)
	if more {
		return nil
	}
	whole := p.parts
	p.parts = nil
	err := rf.remote.Frame(p.proc, whole)
	rf.frames.blocks.Put(whole)
	return err
}

// tellDown tells the server of remote memory of a departure, once, and ends the
// use of that process's memory.
func (e *Engine) tellDown(proc wire.ProcID, d *departure) {
	e.loseMemory(proc)
	if e.remote != nil && !d.told {
		e.remote.Down(proc, d.fault())
	}
	d.told = true
}

// WakeProcess makes a process that may sleep look at its memory. The lock is held.
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

// NewRemote is NewOther, of an operation that needs a rank, with the lock held.
func (rq *requests) NewRemote(c *Context, op fault.Call, rank int32) Handle {
	r := rq.newRequest(reqOther)
	r.op, r.ctx, r.rank, r.tag = op, c, rank, callreg.NoTag
	r.hang()
	return Handle{r, r.gen}
}

// EndRemote is Complete with the lock held.
func (rq *requests) EndRemote(h Handle, st Status) bool {
	if !h.live() || h.req.kind != reqOther || h.req.done {
		return false
	}
	h.req.status = st
	rq.complete(h.req)
	return true
}

// device is the transport that reaches the memory of others by a device, nil if
// there is none.
func (e *Engine) device() transport.RemoteMemory {
	for _, l := range e.links[1:] {
		if d, ok := l.Transport.(transport.RemoteMemory); ok {
			return d
		}
	}
	return nil
}

// ExposePosted lets processes that know the key access b, until HidePosted. nil: no
// transport can.
func (e *Engine) ExposePosted(b []byte) (key []byte) {
	d := e.device() // transports do not change
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

// HidePosted ends an ExposePosted: nothing accesses the memory any more.
func (e *Engine) HidePosted(key []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.device().Hide(key)
	}
}

// Poster is the way to memory that another process has exposed by ExposePosted.
// Its methods are called with the lock held, and the caller closes it before
// it returns from Down or Cut. It may block. The lock is not held.
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
