// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/transport"
)

// Signal stores v in a word of the target's control block, which this process
// alone writes, and wakes the owner. Whoever sees it there sees what this
// process has put and accumulated there before, without a Flush. It waits for
// what a device has under way.
func (t *Target) Signal(word int, v uint64) *fault.Fault {
	c := t.ctl
	if f := t.settlePosts(); f != nil {
		return f
	}
	if c == nil || t.path.framed() {
		return t.sendSignal(word, v) // behind the frames of what was put
	}
	if uint(word) >= uint(len(c.words)) {
		return noWord(word, len(c.words))
	}
	// The owner sets asleep before it looks at its words for the last time.
	// Atomics are sequentially consistent: it sees v, or this sees asleep.
	t.s.meet()
	c.words[word].Store(v)
	if c.head.asleep.Load() != 0 && c.head.asleep.Swap(0) != 0 {
		t.s.e.Lock()
		t.s.wakeProcess(t.proc)
		t.s.e.Unlock()
	}
	return nil
}

// settlePosts waits for what devices do in the target's memory, with which signals
// keep no order. What has failed is not its to tell.
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
	return t.wait("Signal", &q.line, atTarget, last, nil)
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

// Word is a word of the region's control block. Another process wrote it.
func (r *Region) Word(i int) uint64 { return r.ctl.words[i].Load() }

// Asleep is that of an engine.Await for words of the region: it tells those who
// signal that this process may be asleep. The flag stays when it is awake again:
// others may still wait for words of the region, and the first to signal takes
// it away.
func (r *Region) Asleep(asleep bool) {
	if asleep {
		r.ctl.head.asleep.Store(1)
	}
}
