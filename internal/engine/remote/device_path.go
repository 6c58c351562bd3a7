// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/engine"
	"gompi/transport"
)

// postWindow is how many operations of this process to another one a device may have.
const postWindow = 1024

// postQueue has the operations of a device in another process's memory. They end in any
// order. The engine's lock guards it.
type postQueue struct {
	opQueue
	s      *Space
	p      *peer
	poster transport.Poster // nil: the other process is down
	index  uint32           // in Space.posts
	rung   uint64           // the device was told of operations up to this
	stuck  bool             // it takes no more until an operation has ended
	// doubtful are operations that have failed, perhaps because the other process has
	// ended. Only the control plane knows.
	doubtful []uint64
}

// A token names an operation and its queue.
const (
	postNumberBits = 40
	postNumberMask = 1<<postNumberBits - 1
)

func (q *postQueue) token(number uint64) transport.Token {
	return transport.Token(uint64(q.index+1)<<postNumberBits | number&postNumberMask)
}

// postOf decodes a token. ok is false if the operation is not under way.
func (s *Space) postOf(tok transport.Token) (q *postQueue, number uint64, ok bool) {
	i := uint64(tok)>>postNumberBits - 1
	if i >= uint64(len(s.posts)) || s.posts[i] == nil {
		return nil, 0, false
	}
	q = s.posts[i]
	first := q.done[atTarget] + 1
	number = first + (uint64(tok)-first)&postNumberMask
	return q, number, q.underWay(number) && !q.at(number).ended[atTarget]
}

// full implements carrier.
func (q *postQueue) full() bool { return q.stuck || q.begun-q.done[atTarget] >= postWindow }

// urge implements carrier. It rings the device.
func (q *postQueue) urge(number uint64) *fault.Fault {
	if q.rung < number {
		q.rung = q.begun
		q.poster.Ring()
	}
	return nil
}

// withdraw implements carrier.
func (q *postQueue) withdraw(t *Target, from, until uint64) {
	for i := max(from, q.done[atTarget]) + 1; i <= min(until, q.begun); i++ {
		if f := q.at(i); f.target == t && !f.ended[atTarget] && q.poster != nil {
			q.poster.Withdraw(q.token(i))
		}
	}
}

// posted is the path by a device. The device moves contiguous bytes; the owner does all
// else.
type posted struct {
	served
	q   *postQueue
	key []byte
}

func (t *posted) unmarked() path { return t }

func (t *posted) put(src buffer.Buf, to Layout, n int64) *fault.Fault {
	if src.Strided() || !to.Type.Contiguous() {
		return t.served.put(src, to, n)
	}
	return t.post("Put", src.Slice(), to.Off)
}

func (t *posted) get(dst buffer.Buf, from Layout, n int64) *fault.Fault {
	if dst.Strided() || !from.Type.Contiguous() {
		return t.served.get(dst, from, n)
	}
	return t.post("Get", dst.Slice(), from.Off)
}

// post posts a Put or Get.
func (t *posted) post(op fault.Call, b []byte, at int64) *fault.Fault {
	s, q := t.s, t.q
	s.e.Lock()
	defer s.e.Unlock()
	for len(b) > 0 {
		if !t.open {
			return refused(fault.Closed, at, int64(len(b)), t.size)
		}
		if t.peer.down != nil || q.full() {
			if t.peer.down == nil {
				q.urge(q.begun)
			}
			if f := t.wait(op, &q.opQueue, 0, 0, nil); f != nil {
				return f
			}
			continue
		}
		k, post := min(len(b), transport.MaxPost), q.poster.Put
		if op == "Get" {
			post = q.poster.Get
		}
		st := post(b[:k], t.key, at, q.token(q.begun+1))
		switch {
		case st == transport.Full && q.begun > q.done[atTarget]:
			q.stuck = true
			continue
		case st != transport.Sent && st != transport.Queued:
			return t.lost(at, int64(len(b)), transport.ErrUnreachable)
		}
		f := inflightOp{off: at, n: int64(k)}
		f.ended[atOrigin] = op == "Put" && st == transport.Sent
		t.begin(byPosts, f)
		b, at = b[k:], at+int64(k)
	}
	return nil
}

// lost returns the fault of an operation that the device could not do.
func (t *Target) lost(at, n int64, err error) *fault.Fault {
	class := fault.Unreachable
	switch {
	case errors.Is(err, transport.ErrHidden):
		return refused(fault.Closed, at, n, t.size)
	case errors.Is(err, transport.ErrCancelled):
		class = fault.Cancelled
	}
	return &fault.Fault{
		Class: class, Peer: -1, Got: -1, Want: -1,
		Err: fmt.Errorf("bytes [%d, %d+%d) of %d: %w", at, at, n, t.size, err),
	}
}

// openPosted makes a target that a device reaches.
func (t *Target) openPosted(key []byte) bool {
	q := t.s.postsTo(t.peer)
	if q == nil {
		return false
	}
	t.path = &posted{served{t}, q, append([]byte(nil), key...)}
	return true
}

// postsTo returns the queue to a process, or nil if there can be none.
func (s *Space) postsTo(p *peer) *postQueue {
	s.e.Lock()
	q := p.posts
	s.e.Unlock()
	if q != nil {
		return q
	}
	poster, err := s.e.Poster(p.proc)
	if err != nil {
		return nil
	}
	s.e.Lock()
	defer s.e.Unlock()
	if p.posts != nil || p.down != nil {
		poster.Close()
		return p.posts
	}
	q = &postQueue{s: s, p: p, poster: poster}
	q.carrier = q
	for q.index = 0; q.index < uint32(len(s.posts)) && s.posts[q.index] != nil; {
		q.index++
	}
	if q.index == uint32(len(s.posts)) {
		s.posts = append(s.posts, nil)
	}
	s.posts[q.index] = q
	p.posts, p.lines[byPosts] = q, &q.opQueue
	return q
}

// closePosts ends the device's operations in the memory of a process that is down.
func (s *Space) closePosts(p *peer) {
	q := p.posts
	if q == nil || q.poster == nil {
		return
	}
	q.poster.Close()
	q.poster, q.doubtful = nil, nil
	s.posts[q.index] = nil
}

// Posted implements engine.RemoteServer.
func (s *Space) Posted(tok transport.Token, remote bool, err error) {
	q, number, ok := s.postOf(tok)
	if !ok {
		return
	}
	q.stuck = false
	switch f := q.at(number); {
	case !remote:
		q.end(number, atOrigin)
	case errors.Is(err, transport.ErrPeerGone):
		if q.doubtful = append(q.doubtful, number); len(q.doubtful) == 1 {
			go q.ask()
		}
		return
	default:
		if err != nil {
			f.target.recordFault(byPosts, number, f.target.lost(f.off, f.n, err))
		}
		q.end(number, atTarget)
	}
	s.completeRequests(q.p)
}

// ask asks the control plane about the other process. If it has ended, Down ends
// everything.
func (q *postQueue) ask() {
	f := q.s.e.Fate(q.p.proc)
	q.s.e.Lock()
	defer q.s.e.Unlock()
	for _, number := range q.doubtful {
		q.at(number).target.recordFault(byPosts, number, f)
		q.end(number, atTarget)
	}
	q.doubtful = q.doubtful[:0]
	q.s.completeRequests(q.p)
	q.s.e.WakeProcess(q.s.self)
}

// Ended implements engine.RemoteServer. Operations whose request has ended before them must
// not touch its memory any more.
func (s *Space) Ended(h engine.Handle) {
	for _, p := range s.peers {
		for i := range p.promises {
			x := &p.promises[i]
			if x.handle != h {
				continue
			}
			for by, l := range p.lines {
				if l != nil {
					l.carrier.withdraw(x.target, x.from[by], x.until[by])
				}
			}
		}
	}
}

// post exposes a region to devices.
func (s *Space) post(r *Region, d *description) {
	if len(r.mem) == 0 || d.keys.room() < 0 {
		return
	}
	r.posted = s.e.ExposePosted(r.mem)
	switch n := len(r.posted); {
	case n == 0:
	case n > d.keys.room():
		s.hide(r)
	default:
		copy(d.keys.add(keyPosted, n), r.posted)
	}
}

// hide ends post.
func (s *Space) hide(r *Region) {
	if r.posted != nil {
		s.e.HidePosted(r.posted)
		r.posted = nil
	}
}
