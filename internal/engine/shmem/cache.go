// SPDX-License-Identifier: Apache-2.0

package shmem

import (
	"fmt"
	"sync"

	"gompi/internal/base/wire"
)

// Cache is what one process has mapped of others: each arena once, for all its
// users. Safe for any goroutine. The zero value with Heap set is empty.
type Cache struct {
	// Heap is the memory of the process itself, which needs no mapping.
	Heap *Heap

	mu     sync.Mutex
	all    map[arenaKey]*Mapping
	idle   []*Mapping // that nobody used any more, and that are not kept
	closed bool       // the process ends: what nobody uses goes
}

// arenaKey names an arena as somebody has described it: who lies about one
// harms none but its own users.
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

	// Guarded by the cache's mu.

	mapped bool // ready is closed, or about to be
	users  int
	dead   bool // its owner is
}

// Map finds or makes the mapping of the arena of a block, and counts a user of it
// until Unmap. mem is the block. Memory of this process has no mapping: m is nil.
// It may block.
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

// enter makes a mapping that has one user. mu is held.
func (c *Cache) enter(k arenaKey) *Mapping {
	m := &Mapping{key: k, ready: make(chan struct{}), users: 1}
	if c.all == nil {
		c.all = map[arenaKey]*Mapping{}
	}
	c.all[k] = m
	return m
}

// Unmap ends a Map: no pointer into the block is used any more. The engine's
// lock is not held.
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

// UnmapLater is Unmap by who may hold the engine's lock: what nobody uses any
// more goes at the next Unmap or Sweep.
func (c *Cache) UnmapLater(m *Mapping) {
	c.mu.Lock()
	c.leave(m)
	c.mu.Unlock()
}

// leave takes a user away. mu is held.
func (c *Cache) leave(m *Mapping) {
	if m.users--; m.users == 0 && !c.keeps(m) {
		c.idle = append(c.idle, m)
	}
}

// keeps reports whether a mapping stays without users. mu is held.
func (c *Cache) keeps(m *Mapping) bool { return m.key.kept && !m.dead && !c.closed }

// Gone tells that a process has ended. What is mapped of it goes with its last
// user, or at the next Sweep. The engine's lock may be held.
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

// Sweep unmaps what nobody uses any more. The engine's lock is not held.
func (c *Cache) Sweep() {
	c.mu.Lock()
	gone := c.unused()
	c.mu.Unlock()
	c.unmap(gone)
}

// Close tells that this process ends: what is mapped goes with its last user.
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

// unused takes out of the cache what went idle and was not found again since. mu
// is held.
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

// Len is the number of mappings.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}
