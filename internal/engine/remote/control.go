// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"sync/atomic"

	"gompi/internal/engine/shmem"
	"gompi/transport"
)

// maxWords bounds the words of one control block.
const maxWords = 1 << 24

const _ = uint(shmem.MaxStable - headBytes - 8*maxWords)

// errStale is the error of mapping a control block that does not exist any more.
var errStale = errors.New("region does not exist any more")

// control is a control block of this or another process, as this process uses it. Others
// write its contents, which are not trusted.
type control struct {
	head  *controlHead
	words []atomic.Uint64

	block   shmem.Block    // if it belongs to this process
	mapping *shmem.Mapping // if it belongs to another one
}

// controlBytes is the length of a block.
func controlBytes(words int) int64 { return headBytes + 8*int64(words) }

// newControl allocates a zeroed control block.
func (s *Space) newControl(words int) (*control, error) {
	c := new(control)
	return c, s.initControl(c, words)
}

// initControl makes c a zeroed control block. It makes a system call only if the heap must
// grow.
func (s *Space) initControl(c *control, words int) (err error) {
	if words < 0 || words > maxWords {
		return fmt.Errorf("control block of %d words: at most %d", words, maxWords)
	}
	if c.block, err = s.heap.TakeStable(controlBytes(words)); err != nil {
		return err
	}
	c.head, c.words = viewControl(c.block.Mem(), words)
	// A former user of the block may have written late.
	c.head.state.Store(0)
	c.head.asleep.Store(0)
	c.head.guard.Store(0)
	c.head.ticket.Store(0)
	c.clearVisits()
	for i := range c.words {
		c.words[i].Store(0)
	}
	c.head.generation.Store(c.block.Generation())
	return nil
}

// freeControl frees a block of newControl. used says that others may still write there,
// because they could not agree on the end; then the memory is not allocated again. The
// engine's lock may be held.
func (s *Space) freeControl(c *control, used bool) {
	c.head.generation.Store(0)
	s.heap.Put(c.block, used)
}

// mapControl makes c a block of another process, which has described it. The use must end
// with unmapControl. It may block.
func (s *Space) mapControl(c *control, n *shmem.Name) error {
	words := (n.Bytes - headBytes) / 8
	if words < 0 || words > maxWords || n.Bytes != controlBytes(int(words)) || n.Off%controlAlign != 0 {
		return fmt.Errorf("process %v: %w: control block of %d bytes at %d", n.Owner, transport.ErrProtocol, n.Bytes, n.Off)
	}
	m, mem, err := s.mapShared(n)
	if err != nil {
		return err
	}
	*c = control{mapping: m}
	c.head, c.words = viewControl(mem, int(words))
	if c.head.generation.Load() != n.Generation {
		s.unmapControl(c)
		return fmt.Errorf("process %v: %w", n.Owner, errStale)
	}
	return nil
}

// unmapControl ends a mapControl. No goroutine uses c any more.
func (s *Space) unmapControl(c *control) { s.cache.Unmap(c.mapping) }

// mapShared maps memory that a process of this host has shared, until the cache's Unmap. It
// may block.
func (s *Space) mapShared(n *shmem.Name) (*shmem.Mapping, []byte, error) {
	m, mem, err := s.cache.Map(n)
	if err == nil && s.gone(n.Owner) != nil {
		s.cache.Gone(n.Owner) // the process may have died before this was mapped
	}
	return m, mem, err
}
