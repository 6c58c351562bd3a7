// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/engine"
)

// level is how far an operation has come.
type level uint8

const (
	// atOrigin: its buffers belong to the caller again, and its results are there.
	atOrigin level = iota
	// atTarget: it has also happened at the target.
	atTarget
	numLevels
)

// The queues of this process to another: one for each path whose operations complete after
// they have begun.
const (
	byFrames = iota
	byPosts
	numLines
)

// opQueue has the operations of one path that are under way to another process. They begin
// in order and end in any order. The engine's lock guards it.
type opQueue struct {
	carrier carrier
	// Operations are numbered from 1. begun is the last one; all up to done have reached a
	// level.
	begun uint64
	done  [numLevels]uint64
	bytes int          // of operations that are not done
	ring  []inflightOp // operation i is at i % len, a power of two
}

// carrier carries the operations of a queue. It must end each of them, with a fault if the
// other process has gone. Its methods are called with the lock held.
type carrier interface {
	// full reports whether another operation must wait until one ends.
	full() bool
	// urge says that a goroutine waits for all operations up to one. After it they end
	// without further calls.
	urge(number uint64) *fault.Fault
	// withdraw makes the operations of a target after one number and up to another touch no
	// memory of this process any more. They still end.
	withdraw(t *Target, from, until uint64)
}

// inflightOp is an operation that is not done.
type inflightOp struct {
	target *Target
	ended  [numLevels]bool
	bytes  int   // that it counts in the queue
	off    int64 // served: offset of the reply in to; posted: offset in the target
	n      int64 // posted: bytes there

	// Of one that is served.
	to    buffer.Buf // where the reply goes
	reply int        // bytes of it, 0 if there is none
}

// at returns the entry of an operation that is not done, or is about to begin.
func (l *opQueue) at(number uint64) *inflightOp { return &l.ring[number&uint64(len(l.ring)-1)] }

// underWay reports whether an operation is under way.
func (l *opQueue) underWay(number uint64) bool { return number > l.done[atTarget] && number <= l.begun }

// begin adds an operation.
func (l *opQueue) begin(f inflightOp) {
	if n := l.begun - l.done[atTarget]; n == uint64(len(l.ring)) {
		old := *l
		l.ring = make([]inflightOp, max(16, 2*len(old.ring)))
		for i := old.done[atTarget] + 1; i <= old.begun; i++ {
			*l.at(i) = *old.at(i)
		}
	}
	l.begun++
	*l.at(l.begun) = f
	l.bytes += f.bytes
	l.advance()
}

// end records that an operation has reached a level.
func (l *opQueue) end(number uint64, to level) {
	f := l.at(number)
	for v := range to + 1 {
		f.ended[v] = true
	}
	l.advance()
}

func (l *opQueue) advance() {
	for v := range numLevels {
		for l.done[v] < l.begun && l.at(l.done[v] + 1).ended[v] {
			l.done[v]++
			if v == atTarget {
				f := l.at(l.done[v])
				l.bytes -= f.bytes
				*f = inflightOp{}
			}
		}
	}
}

// drop ends all operations.
func (l *opQueue) drop() {
	for v := range l.done {
		l.done[v] = l.begun
	}
	l.bytes, l.ring = 0, nil
}

// targetOps are a target's operations in one queue. The engine's lock guards it, except
// last.
type targetOps struct {
	// last has, for each level, the number of the last operation that had not reached it
	// when it began; 0 means none.
	last [numLevels]atomic.Uint64
	// Failed operations that were not reported: the first that failed, and the one with the
	// largest number.
	first, latest failure
}

// failure is the fault of an operation.
type failure struct {
	number uint64
	fault  *fault.Fault
}

// begin adds an operation of the target to a queue.
func (t *Target) begin(by int, f inflightOp) {
	l := t.peer.lines[by]
	f.target = t
	l.begin(f)
	for v := range numLevels {
		if !f.ended[v] {
			t.flights[by].last[v].Store(l.begun)
		}
	}
}

// began reports whether an operation had not reached a level when it began. It needs no
// lock.
func (t *Target) began(to level) bool {
	for i := range t.flights {
		if t.flights[i].last[to].Load() != 0 {
			return true
		}
	}
	return false
}

// behind reports whether operations of the target have not reached a level.
func (t *Target) behind(to level) bool {
	for i := range t.flights {
		if last := t.flights[i].last[to].Load(); last != 0 && t.peer.lines[i].done[to] < last {
			return true
		}
	}
	return false
}

// urge makes all operations of the target end.
func (t *Target) urge(to level) *fault.Fault {
	for i := range t.flights {
		last := t.flights[i].last[to].Load()
		if last == 0 || t.peer.lines[i].done[to] >= last {
			continue
		}
		if f := t.peer.lines[i].carrier.urge(last); f != nil {
			return f
		}
	}
	return nil
}

// withdraw lets no operation of a target touch memory of this process any more.
func (t *Target) withdraw() {
	for _, l := range t.peer.lines {
		if l != nil {
			l.carrier.withdraw(t, 0, l.begun)
		}
	}
}

// recordFault records the fault of an operation. Its request reports it, else the next call
// that asks.
func (t *Target) recordFault(by int, number uint64, f *fault.Fault) {
	for i := range t.peer.promises {
		if h := &t.peer.promises[i]; h.covers(t, by, number) {
			if h.fault == nil {
				h.fault = f
			}
			return
		}
	}
	x := &t.flights[by]
	if x.first.fault == nil {
		x.first = failure{number, f}
	}
	if number > x.latest.number {
		x.latest = failure{number, f}
	}
}

// takeFault returns the fault of operations that have failed, once.
func (t *Target) takeFault() (f *fault.Fault) {
	for i := range t.flights {
		x := &t.flights[i]
		if f == nil {
			f = x.first.fault
		}
		x.first, x.latest = failure{}, failure{}
	}
	return f
}

// takeFaultAfter is takeFault for operations after a mark.
func (t *Target) takeFaultAfter(m Mark) (f *fault.Fault) {
	for i := range t.flights {
		x := &t.flights[i]
		if x.latest.number <= m[i] {
			continue
		}
		f = x.latest.fault
		if x.first.number > m[i] {
			x.first = failure{}
		}
		x.latest = x.first
	}
	return f
}

func (t *Target) failed() bool {
	for i := range t.flights {
		if t.flights[i].first.fault != nil {
			return true
		}
	}
	return false
}

// Mark is a point between two operations on a target.
type Mark [numLines]uint64

// Mark returns the point between operations that have begun and those that have not.
func (t *Target) Mark() (m Mark) {
	for i := range m {
		m[i] = t.flights[i].last[atTarget].Load()
	}
	return m
}

// flushRequest is a request of the layer above. It ends with the operations of a target
// after one mark and up to another.
type flushRequest struct {
	target      *Target
	handle      engine.Handle
	from, until Mark
	fault       *fault.Fault
}

func (h *flushRequest) covers(t *Target, by int, number uint64) bool {
	return h.target == t && h.from[by] < number && number <= h.until[by]
}

// done reports whether all its operations are done at the origin.
func (h *flushRequest) done() bool {
	for i, l := range h.target.peer.lines {
		if l != nil && l.done[atOrigin] < h.until[i] {
			return false
		}
	}
	return true
}

// completeRequests ends the requests that can end. The caller holds the lock.
func (s *Space) completeRequests(p *peer) {
	left := p.promises[:0]
	for i := range p.promises {
		if h := &p.promises[i]; h.done() {
			s.e.EndRemote(h.handle, engine.Status{Fault: h.fault})
		} else {
			left = append(left, *h)
		}
	}
	clear(p.promises[len(left):])
	p.promises = left
}

// dropQueues ends everything that is under way to a process that is down.
func (s *Space) dropQueues(p *peer, f *fault.Fault) {
	for _, l := range p.lines {
		if l != nil {
			l.drop()
		}
	}
	handles := p.promises
	p.promises = nil
	for i := range handles {
		s.e.EndRemote(handles[i].handle, engine.Status{Fault: f})
	}
}
