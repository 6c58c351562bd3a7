// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/dtype"
	"gompi/transport"
)

// Requests that need no reply are answered when the other process asks, or when that much
// of its window is in use.
const (
	answerBytes    = windowBytes / 4
	answerRequests = windowRequests / 4
)

// incoming has the requests of another process to this one. The engine's lock guards it.
type incoming struct {
	number uint64 // the last request that was served
	told   uint64 // the last number that the other process knows as served
	bytes  int    // of requests after told

	waiting [][]byte // frames that wait for a guard, and later ones
	queued  int      // bytes of waiting
	broken  error    // the error of one of them
}

// Frame implements engine.RemoteServer.
func (s *Space) Frame(from wire.ProcID, b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: empty frame", transport.ErrProtocol)
	}
	// The frame may change at any time: only checked copies are used.
	p, kind := s.peerOf(from), b[0]
	switch {
	case kind == frameDone || kind == frameReply || kind == frameRefusal:
		return s.answer(p, kind, b)
	case p.in.broken != nil:
		return p.in.broken
	case len(p.in.waiting) > 0:
		return s.postpone(p, b)
	}
	wait, err := s.serveFrame(p, kind, b, nil)
	if wait != nil {
		wait.users++
		go s.serveWaiting(p, wait)
		return s.postpone(p, b)
	}
	return err
}

// serveFrame serves a frame that is not an answer. If it needs the guard of a region that
// another process has, and that is not held, nothing has happened and it returns the
// region.
func (s *Space) serveFrame(p *peer, kind byte, b []byte, held *Region) (wait *Region, err error) {
	switch {
	case kind >= firstSync:
		return nil, s.frameSync(p.proc, kind, b)
	case kind == frameAsk:
		return nil, s.serveAsk(p, b)
	case kind > frameMin && kind < frameAsk:
		return s.serveRequest(p, kind, b, held)
	}
	return nil, fmt.Errorf("%w: frame of kind %d", transport.ErrProtocol, kind)
}

// serveAsk answers that everything so far was served.
func (s *Space) serveAsk(p *peer, b []byte) error {
	if len(b) != replyBytes || binary.LittleEndian.Uint64(b[8:]) != p.in.number {
		return fmt.Errorf("%w: %d bytes ask for an answer, %d requests were served", transport.ErrProtocol, len(b), p.in.number)
	}
	if p.in.told < p.in.number {
		s.tellDone(p)
	}
	return nil
}

// tellDone answers all requests.
func (s *Space) tellDone(p *peer) {
	b := s.frame[:replyBytes]
	clear(b)
	b[0] = frameDone
	s.tell(p, b)
}

// tell sends an answer to the last request. If the peer is down no goroutine waits for it.
func (s *Space) tell(p *peer, b []byte) {
	binary.LittleEndian.PutUint64(b[8:], p.in.number)
	p.in.told, p.in.bytes = p.in.number, 0
	s.e.SendFrame(p.proc, b)
}

// serveRequest does a request of a known kind.
func (s *Space) serveRequest(p *peer, kind byte, b []byte, held *Region) (wait *Region, err error) {
	var q request
	groups, data, err := q.parse(kind, b, &s.groups)
	if err != nil {
		return nil, err
	}
	if q.number != p.in.number+1 {
		return nil, fmt.Errorf("%w: request %d after %d", transport.ErrProtocol, q.number, p.in.number)
	}
	if s.e.FramesQueued(p.proc) > 2*windowBytes {
		return nil, fmt.Errorf("%w: more replies wanted than taken", transport.ErrProtocol)
	}
	r := s.regionOf(q.handle, q.nonce)
	if r != nil && r.published && r.ctl.head.generation.Load() == 0 {
		r = nil // this process is leaving: the memory belongs to the program again
	}
	o, at, why := r.admit(&q, groups)
	atomics := q.kind != framePut && q.kind != frameGet
	if why == 0 && atomics && r.damaged {
		why = fault.Unreachable
	}
	if why != 0 {
		p.in.number++
		s.refuse(p, why, at, int64(q.bytes), r)
		return nil, nil
	}
	guarded := r.domain == domainGuard || !o.few(int64(q.bytes))
	switch {
	case !atomics || r == held:
	case guarded:
		if !r.ctl.guardTry(s.self.Serial) {
			return r, nil
		}
		defer r.ctl.guardUnlock(s.self.Serial)
	default:
		v := r.ctl.tryVisit(s.self.Serial)
		if v == nil {
			return r, nil
		}
		defer v.end()
	}
	p.in.number++
	p.in.bytes += len(b)
	var reply []byte
	if q.replies() {
		reply = s.frame[replyBytes:][:q.bytes]
	}
	switch q.kind {
	case frameSwap:
		r.swap(&o, groups[0].off, data[:q.bytes], data[q.bytes:], reply, guarded)
	default:
		r.serve(&q, &o, groups, data, reply, guarded)
	}
	switch {
	case reply != nil:
		clear(s.frame[:replyBytes])
		s.frame[0] = frameReply
		s.tell(p, s.frame[:replyBytes+len(reply)])
	case p.in.bytes >= answerBytes || p.in.number-p.in.told >= answerRequests:
		s.tellDone(p)
	}
	return nil, nil
}

// admit checks a request against the region, which may be nil.
func (r *Region) admit(q *request, groups []group) (o operation, at int64, why fault.Class) {
	if r == nil {
		return o, groups[0].off, fault.Closed
	}
	size := int64(len(r.mem))
	for i := range groups {
		if !groups[i].within(size) {
			return o, groups[i].off, fault.RMARange
		}
	}
	if q.kind == framePut || q.kind == frameGet {
		return o, 0, 0
	}
	if q.elem >= dtype.NumKinds {
		return o, groups[0].off, fault.Op
	}
	o, ok := operationOf(q.op, q.elem, sizeOf(q.elem))
	if !ok || q.kind == frameSwap && (len(groups) != 1 || groups[0].runs != 1 || q.bytes > maxSwap || o.width != 0 && int64(q.bytes) != o.width) {
		return o, groups[0].off, fault.Op
	}
	for i := range groups {
		if g := &groups[i]; o.fn != nil && int64(g.length)%o.unit != 0 {
			return o, g.off, fault.Op
		} else if o.width != 0 && !g.aligned(phaseOf(r.mem), o.width) {
			return o, g.off, fault.Arg
		}
	}
	return o, 0, 0
}

// refuse answers that a request was not done.
func (s *Space) refuse(p *peer, why fault.Class, at, bytes int64, r *Region) {
	b := s.frame[:refusalBytes]
	clear(b)
	b[0], b[1] = frameRefusal, byte(why)
	binary.LittleEndian.PutUint64(b[16:], uint64(at))
	binary.LittleEndian.PutUint64(b[24:], uint64(bytes))
	if r != nil {
		binary.LittleEndian.PutUint64(b[32:], uint64(len(r.mem)))
	}
	s.tell(p, b)
}

// serve does a request that was admitted.
func (r *Region) serve(q *request, o *operation, groups []group, data, reply []byte, guarded bool) {
	i := int64(0)
	for _, g := range groups {
		n := int64(g.length)
		for k := range int64(g.runs) {
			m := r.mem[g.off+k*g.stride:][:n]
			a, was := part(data, i, n), part(reply, i, n)
			switch {
			case q.kind == framePut:
				copy(m, a)
			case q.kind == frameGet && r.live:
				copyLive(was, m)
			case q.kind == frameGet:
				copy(was, m)
			case guarded:
				o.applyGuarded(m, a, was)
			default:
				o.applyAtomic(m, a, was)
			}
			i += n
		}
	}
}

// swap does a CompareAndSwap that was admitted.
func (r *Region) swap(o *operation, off int64, compare, value, reply []byte, guarded bool) {
	if !guarded {
		o.swapAtomic(r.mem[off:], compare, value, reply)
		return
	}
	swapGuarded(r.mem[off:][:len(value)], compare, value, reply)
}
