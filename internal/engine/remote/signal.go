// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/transport"
)

// Signal stores v in a word of the target's control block that this process alone writes,
// and wakes the owner. A process that sees v there also sees what this process has put and
// accumulated before, without a Flush. Signal waits for operations of a device that are
// under way.
func (t *Target) Signal(word int, v uint64) *fault.Fault {
	c := t.ctl
	if f := t.settlePosts(); f != nil {
		return f
	}
	if c == nil || t.path.framed() {
		return t.sendSignal(word, v) // it follows the frames of earlier operations
	}
	if uint(word) >= uint(len(c.words)) {
		return noWord(word, len(c.words))
	}
	// The owner sets asleep before it reads its words for the last time. Atomics are
	// sequentially consistent: either the owner sees v, or this process sees asleep.
	t.s.meet()
	c.words[word].Store(v)
	if c.head.asleep.Load() != 0 && c.head.asleep.Swap(0) != 0 {
		t.s.e.Lock()
		t.s.wakeProcess(t.proc)
		t.s.e.Unlock()
	}
	return nil
}

// settlePosts waits for a device's operations in the target's memory: signals keep no order
// with them. It does not report their failures.
func (t *Target) settlePosts() *fault.Fault {
	last := t.flights[byPosts].last[atTarget].Load()
	if last == 0 {
		return nil
	}
	t.s.e.Lock()
	defer t.s.e.Unlock()
	q := t.peer.posts
	if t.peer.down == nil {
		q.urge(last)
	}
	return t.wait("Signal", &q.opQueue, atTarget, last, nil)
}

func noWord(word, words int) *fault.Fault {
	return &fault.Fault{Class: fault.Unreachable, Peer: -1, Err: fmt.Errorf("%w: word %d of %d", transport.ErrProtocol, word, words)}
}

func (t *Target) sendSignal(word int, v uint64) *fault.Fault {
	s := t.s
	s.e.Lock()
	defer s.e.Unlock()
	b := s.syncFrame[:signalFrameBytes]
	clear(b)
	le := binary.LittleEndian
	b[0] = frameSignal
	le.PutUint32(b[4:], t.handle)
	le.PutUint64(b[8:], t.nonce)
	le.PutUint32(b[16:], uint32(word))
	le.PutUint64(b[24:], v)
	return s.e.SendFrame(t.proc, b)
}

// serveSignal stores a word for another process.
func (s *Space) serveSignal(b []byte) error {
	le := binary.LittleEndian
	r := s.regionOf(le.Uint32(b[4:]), le.Uint64(b[8:]))
	if r == nil {
		return nil // it was closed
	}
	word := le.Uint32(b[16:])
	if int64(word) >= int64(len(r.ctl.words)) {
		return fmt.Errorf("%w: word %d of %d", transport.ErrProtocol, word, len(r.ctl.words))
	}
	r.ctl.words[word].Store(le.Uint64(b[24:]))
	return nil
}

// Word returns a word of the region's control block. Another process wrote it.
func (r *Region) Word(i int) uint64 { return r.ctl.words[i].Load() }

// Asleep is the Asleep of an engine.Await for words of the region. It tells signalling
// processes that this process may sleep. The flag stays when the process is awake: other
// goroutines may still wait for words of the region. The first process that signals clears
// it.
func (r *Region) Asleep(asleep bool) {
	if asleep {
		r.ctl.head.asleep.Store(1)
	}
}
