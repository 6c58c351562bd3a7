// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
	"gompi/transport"
)

var _ transport.Sharer = (*Transport)(nil)

// mostShared is how many pieces of shared memory a process may map. The kernel allows some
// 65,000 mappings, and the Go runtime kills a process that cannot get another one.
const mostShared = 20_000

// mapShared maps a piece and counts it.
func (t *Transport) mapShared(fd int, off, size int64) ([]byte, error) {
	if t.shared.Add(1) > t.mostShared {
		t.shared.Add(-1)
		return nil, fmt.Errorf("shm: %d pieces of shared memory are in use: %w", t.mostShared, transport.ErrUnavailable)
	}
	m, err := segment.Map(fd, off, size, true)
	if err != nil {
		t.shared.Add(-1)
	}
	return m, err
}

// unmapShared unmaps the pages of a piece.
func (t *Transport) unmapShared(mem []byte) {
	size := wholePages(len(mem))
	segment.Unmap(mem[:size:size])
	t.shared.Add(-1)
}

// wholePages rounds up to whole pages.
func wholePages(n int) int64 { return (int64(n) + pageBytes - 1) &^ (pageBytes - 1) }

// Share allocates memory of this process's segment. It reuses address space of Unshare, so
// that the segment does not run out.
func (t *Transport) Share(n int) (mem []byte, place uint64, err error) {
	if n <= 0 || int64(n) > segment.SpanBytes {
		return nil, 0, fmt.Errorf("shm: %d bytes cannot be shared", n)
	}
	size := wholePages(n)
	t.spansMu.Lock()
	off, ok := t.spans.Take(size)
	fresh, pieces := t.span-t.unshared, len(t.spans)
	if !ok && size <= fresh {
		off, ok = t.unshared, true
		t.unshared += size
	}
	t.spansMu.Unlock()
	if !ok {
		return nil, 0, fmt.Errorf("shm: no room for %d bytes, of %d that were never shared and %d pieces: %w", size, fresh, pieces, transport.ErrUnavailable)
	}
	if err := t.memory.Reserve(t.env.Segment, off, size); err != nil {
		t.putSpan(off, size)
		return nil, 0, err
	}
	m, err := t.mapShared(t.env.Segment, off, size)
	if err != nil {
		segment.Release(t.env.Segment, off, size)
		t.putSpan(off, size)
		return nil, 0, err
	}
	return m[:n], uint64(off), nil
}

func (t *Transport) putSpan(off, size int64) {
	t.spansMu.Lock()
	defer t.spansMu.Unlock()
	t.spans.Put(off, size)
}

// Unshare returns the pages to the system. They read as zeros when they are allocated
// again.
func (t *Transport) Unshare(mem []byte, place uint64) {
	size := wholePages(len(mem))
	t.unmapShared(mem)
	segment.Release(t.env.Segment, int64(place), size)
	t.putSpan(int64(place), size)
}

// Join maps memory of the contact's segment.
func (t *Transport) Join(c wire.Contact, place uint64, n int) (mem []byte, err error) {
	defer closeFD(c.Segment)
	defer closeFD(c.Bell)
	if !c.SameHost || c.Segment < 0 {
		return nil, fmt.Errorf("shm: process %v gave no segment: %w", c.Proc, transport.ErrUnreachable)
	}
	if n <= 0 || int64(n) > segment.SpanBytes || place < fastBoxes || place%pageBytes != 0 || place > uint64(segment.SpanBytes-wholePages(n)) {
		return nil, fmt.Errorf("shm: %d bytes at %#x of process %v's segment: %w", n, place, c.Proc, transport.ErrProtocol)
	}
	if err := segment.Check(c.Segment, c.Proc); err != nil {
		return nil, fmt.Errorf("shm: process %v: %w", c.Proc, err)
	}
	m, err := t.mapShared(c.Segment, int64(place), wholePages(n))
	if err != nil {
		return nil, err
	}
	return m[:n], nil
}

// Populate implements transport.Sharer.
func (t *Transport) Populate(mem []byte) error { return t.memory.Populate(mem) }

// Leave ends the use of memory of Join or Common.
func (t *Transport) Leave(mem []byte) {
	if !t.leaveArena(mem) {
		t.unmapShared(mem)
	}
}
