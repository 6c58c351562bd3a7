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
	// atOrigin: its buffers are the caller's again, and what it reads is there.
	atOrigin level = iota
	// atTarget: it has happened there, and atOrigin.
	atTarget
	numLevels
)

// The lines of this process to another: one for each way by which operations
// complete after they have begun.
const (
	byFrames = iota
	byPosts
	numLines
)

// line is what this process has under way to another in one way. Operations
// begin in order, and end in any. Guarded by the engine's lock.
type line struct {
	carrier carrier
	// Operations are numbered from 1: begun is the last; all up to done have come
	// to a level.
	begun uint64
	done  [numLevels]uint64
	bytes int      // of those that are not done
	ring  []flying // of operation i at i % len, a power of two
}

// carrier is what carries the operations of a line. It ends each of them, at the
// latest with a fault when the other process is gone. The lock is held.
type carrier interface {
	// full reports whether another operation has to wait for the end of one.
	full() bool
	// urge tells that somebody waits for all operations up to one: they end
	// without anything else that this process does.
	urge(number uint64) *fault.Fault
	// withdraw makes the operations of a target after one number and up to another
	// touch no memory of this process any more. They end nevertheless.
	withdraw(t *Target, from, until uint64)
}

// flying is an operation that is not done.
type flying struct {
	target *Target
	ended  [numLevels]bool
	bytes  int   // that it counts in the line
	off    int64 // if it is served, of the reply in to; if it is posted, in the target
	n      int64 // bytes there, if it is posted

	// Of one that is served.
	to    buffer.Buf // where the reply goes
	reply int        // bytes of it, 0 if there is none
}

// at is the entry of an operation that is not done, or is about to begin.
func (l *line) at(number uint64) *flying { return &l.ring[number&uint64(len(l.ring)-1)] }

// flies reports whether an operation is under way.
func (l *line) flies(number uint64) bool { return number > l.done[atTarget] && number <= l.begun }

// begin enters an operation.
func (l *line) begin(f flying) {
	if n := l.begun - l.done[atTarget]; n == uint64(len(l.ring)) {
		old := *l
		l.ring = make([]flying, max(16, 2*len(old.ring)))
		for i := old.done[atTarget] + 1; i <= old.begun; i++ {
			*l.at(i) = *old.at(i)
		}
	}
	l.begun++
	*l.at(l.begun) = f
	l.bytes += f.bytes
	l.advance()
}

// end tells that an operation has come to a level.
func (l *line) end(number uint64, to level) {
	f := l.at(number)
	for v := range to + 1 {
		f.ended[v] = true
	}
	l.advance()
}

func (l *line) advance() {
	for v := range numLevels {
		for l.done[v] < l.begun && l.at(l.done[v] + 1).ended[v] {
			l.done[v]++
			if v == atTarget {
				f := l.at(l.done[v])
				l.bytes -= f.bytes
				*f = flying{}
			}
		}
	}
}

// drop ends everything.
func (l *line) drop() {
	for v := range l.done {
		l.done[v] = l.begun
	}
	l.bytes, l.ring = 0, nil
}

// flight is what a target has in one line. Guarded by the engine's lock, but for
// last.
type flight struct {
	// last are the numbers of the last operations that were not at a level when
	// they began, 0 if there was none.
	last [numLevels]atomic.Uint64
	// Of the operations that have failed and that nobody was told of: the first
	// that did, and the one with the largest number.
	first, latest failure
}

// failure is how an operation has failed.
type failure struct {
	number uint64
	fault  *fault.Fault
}

// begin enters an operation of the target in a line.
func (t *Target) begin(by int, f flying) {
	l := t.peer.lines[by]
	f.target = t
	l.begin(f)
	for v := range numLevels {
		if !f.ended[v] {
			t.flights[by].last[v].Store(l.begun)
		}
	}
}

// began reports whether any operation was not at a level when it began. The lock
// need not be held.
func (t *Target) began(to level) bool {
	for i := range t.flights {
		if t.flights[i].last[to].Load() != 0 {
			return true
		}
	}
	return false
}

// behind reports whether operations of the target are under way to a level.
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

// withdraw lets nothing that a target has asked for touch memory of this process
// any more.
func (t *Target) withdraw() {
	for _, l := range t.peer.lines {
		if l != nil {
			l.carrier.withdraw(t, 0, l.begun)
		}
	}
}

// blame notes that an operation has failed: its request is told, else whoever
// asks next.
func (t *Target) blame(by int, number uint64, f *fault.Fault) {
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

// takeFault tells once of operations that have failed.
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

// takeFaultAfter is takeFault of operations after a mark.
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

// Mark stands between two operations on a target.
type Mark [numLines]uint64

// Mark is that between what has begun and what is to begin.
func (t *Target) Mark() (m Mark) {
	for i := range m {
		m[i] = t.flights[i].last[atTarget].Load()
	}
	return m
}

// promise is a request of a layer above that ends when operations of a target
// have, those after one mark and up to another.
type promise struct {
	target      *Target
	handle      engine.Handle
	from, until Mark
	fault       *fault.Fault
}

func (h *promise) covers(t *Target, by int, number uint64) bool {
	return h.target == t && h.from[by] < number && number <= h.until[by]
}

// kept reports whether all of it are done at the origin.
func (h *promise) kept() bool {
	for i, l := range h.target.peer.lines {
		if l != nil && l.done[atOrigin] < h.until[i] {
			return false
		}
	}
	return true
}

// keepPromises ends the requests that can end. The lock is held.
func (s *Space) keepPromises(p *peer) {
	left := p.promises[:0]
	for i := range p.promises {
		if h := &p.promises[i]; h.kept() {
			s.e.EndRemote(h.handle, engine.Status{Fault: h.fault})
		} else {
			left = append(left, *h)
		}
	}
	clear(p.promises[len(left):])
	p.promises = left
}

// dropLines ends everything that this process has under way to one that is down.
func (s *Space) dropLines(p *peer, f *fault.Fault) {
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
