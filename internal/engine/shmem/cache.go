// SPDX-License-Identifier: Apache-2.0

package shmem

import (
	"fmt"
	"sync"

	"gompi/internal/base/wire"
)

// Cache has the memory of other processes that this process has mapped: each arena once,
// for all its users. It is safe for any goroutine. The zero value with Heap set is empty.
type Cache struct {
	// Heap is the memory of this process, which needs no mapping.
	Heap *Heap

	mu     sync.Mutex
	all    map[arenaKey]*Mapping
	idle   []*Mapping // without users, and not to be kept
	closed bool       // the process ends: mappings without users are unmapped
}

// arenaKey identifies an arena by its description. A false description harms only its own
// users.
type arenaKey struct {
	owner wire.ProcID
	place uint64
	total int64
	kept  bool
}

// Mapping is an arena of another process as it is mapped here.
type Mapping struct {
	key   arenaKey
	ready chan struct{} // closed when mem and err are set

	mem []byte
	err error

	// The cache's mu guards these fields.

	mapped bool // ready is closed, or about to be
	users  int
	dead   bool // its owner has ended
}

// Map returns the mapping of a block's arena, and counts a user of it until Unmap. mem is
// the block. For memory of this process m is nil. It may block.
func (c *Cache) Map(n *Name) (m *Mapping, mem []byte, err error) {
	if err := n.Check(); err != nil {
		return nil, nil, err
	}
	if n.Owner == c.Heap.Sharing.Self() {
		mem, err := c.Heap.own(n)
		return nil, mem, err
	}
	if n.Place >= privatePlace {
		return nil, nil, fmt.Errorf("process %v: %w", n.Owner, ErrPrivate)
	}
	k := arenaKey{n.Owner, n.Place, n.Total, n.Kept}
	c.mu.Lock()
	m = c.all[k]
	if m == nil {
		m = c.enter(k)
		c.mu.Unlock()
		m.mem, m.err = c.Heap.Sharing.Join(k.owner, k.place, int(k.total))
		c.mu.Lock()
		if m.mapped = true; m.err != nil {
			delete(c.all, k)
		}
		c.mu.Unlock()
		close(m.ready)
	} else {
		m.users++
		mapped := m.mapped
		c.mu.Unlock()
		if !mapped {
			<-m.ready
		}
	}
	if m.err != nil {
		return nil, nil, m.err
	}
	return m, m.mem[n.Off:][:n.Bytes:n.Bytes], nil
}

// enter adds a mapping with one user. The caller holds mu.
func (c *Cache) enter(k arenaKey) *Mapping {
	m := &Mapping{key: k, ready: make(chan struct{}), users: 1}
	if c.all == nil {
		c.all = map[arenaKey]*Mapping{}
	}
	c.all[k] = m
	return m
}

// Unmap ends a Map: the caller must not use pointers into the block any more. It is called
// without the engine's lock.
func (c *Cache) Unmap(m *Mapping) {
	if m == nil {
		return
	}
	c.mu.Lock()
	c.leave(m)
	gone := c.unused()
	c.mu.Unlock()
	c.unmap(gone)
}

// UnmapLater is Unmap for a caller that may hold the engine's lock. The next Unmap or Sweep
// unmaps.
func (c *Cache) UnmapLater(m *Mapping) {
	c.mu.Lock()
	c.leave(m)
	c.mu.Unlock()
}

// leave removes a user. The caller holds mu.
func (c *Cache) leave(m *Mapping) {
	if m.users--; m.users == 0 && !c.keeps(m) {
		c.idle = append(c.idle, m)
	}
}

// keeps reports whether a mapping stays without users. The caller holds mu.
func (c *Cache) keeps(m *Mapping) bool { return m.key.kept && !m.dead && !c.closed }

// Gone says that a process has ended. Its mappings go with their last user, or at the next
// Sweep. The engine's lock may be held.
func (c *Cache) Gone(p wire.ProcID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, m := range c.all {
		if k.owner == p && !m.dead {
			if m.dead = true; m.users == 0 {
				c.idle = append(c.idle, m)
			}
		}
	}
}

// Sweep unmaps mappings without users. It is called without the engine's lock.
func (c *Cache) Sweep() {
	c.mu.Lock()
	gone := c.unused()
	c.mu.Unlock()
	c.unmap(gone)
}

// Close says that this process ends. Mappings go with their last user.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	for _, m := range c.all {
		if m.users == 0 {
			c.idle = append(c.idle, m)
		}
	}
	gone := c.unused()
	c.mu.Unlock()
	c.unmap(gone)
}

// unused takes out of the cache the mappings that have become idle and were not found
// again. The caller holds mu.
func (c *Cache) unused() (gone []*Mapping) {
	for _, m := range c.idle {
		if m.users == 0 && c.all[m.key] == m {
			delete(c.all, m.key)
			gone = append(gone, m)
		}
	}
	c.idle = c.idle[:0]
	return gone
}

func (c *Cache) unmap(gone []*Mapping) {
	for _, m := range gone {
		c.Heap.Sharing.Leave(m.mem)
	}
}

// Len returns the number of mappings.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}
