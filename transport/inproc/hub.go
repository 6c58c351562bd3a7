// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"fmt"
	"sync"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Hub connects the processes that can reach one another. Its methods are safe from any
// goroutine.
type Hub struct {
	mu sync.Mutex // guards the fields below and the ends of every transport in it
	// procs holds the open processes.
	procs map[wire.ProcID]*Transport
	// shared holds the memory of Share that is in use. lastKey is the last number that Share or
	// Register has given out.
	shared  map[shareKey][]byte
	lastKey uint64
	blocks  map[sharedKey]*sharedBlock
	// exposed holds the memory of Register by key.
	exposed map[uint64][]byte
}

// NewHub returns a hub without processes.
func NewHub() *Hub {
	return &Hub{
		procs:   make(map[wire.ProcID]*Transport),
		shared:  make(map[shareKey][]byte),
		blocks:  make(map[sharedKey]*sharedBlock),
		exposed: make(map[uint64][]byte),
	}
}

// Open starts the process env.Self. It needs env.Wake. It fails if a process with this id is
// open.
func (h *Hub) Open(env transport.Env) (*Transport, error) {
	if env.Self.IsZero() || env.Wake == nil {
		return nil, fmt.Errorf("inproc: open %v: the Env needs Self and Wake", env.Self)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.procs[env.Self] != nil {
		return nil, fmt.Errorf("inproc: open %v: it is open already", env.Self)
	}
	t := &Transport{hub: h, env: env, ends: make(map[wire.ProcID]*end)}
	h.procs[env.Self] = t
	return t, nil
}

// Kill makes a process dead for all others, as kill -9 would. Its messages are delivered; then
// every process connected to it gets EvDown, and no process can connect to it any more. Its own
// transport may still be called: there every peer goes down, so that the rank's goroutine ends.
// Kill does nothing for a process that is not open.
func (h *Hub) Kill(proc wire.ProcID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.procs[proc]; t != nil {
		h.remove(t)
	}
}

// Has reports whether a process is open: neither closed nor killed.
func (h *Hub) Has(proc wire.ProcID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.procs[proc] != nil
}

// remove ends all pairs of t. The caller holds mu.
func (h *Hub) remove(t *Transport) {
	if h.procs[t.env.Self] != t {
		return // killed before
	}
	delete(h.procs, t.env.Self)
	for _, e := range t.ends {
		e.finish(transport.ErrPeerGone, transport.ErrPeerGone)
	}
}

// end ends one pair.
func (h *Hub) end(e *end, here, there error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.finish(here, there)
}

// connect returns t's end towards proc, and makes the pair if there is none.
func (h *Hub) connect(t *Transport, proc wire.ProcID) (*end, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// An end whose pair has ended keeps its place only while the engine holds its slot.
	if e := t.ends[proc]; e != nil && (e.slot != noSlot || !e.over.Load()) {
		return e, nil
	}
	peer := h.procs[proc]
	if peer == nil || h.procs[t.env.Self] != t {
		return nil, transport.ErrUnreachable
	}
	there, back := &link{}, &link{}
	e := &end{owner: t, in: back, out: there, slot: noSlot}
	if peer == t {
		e.in, e.peer = there, e
	} else {
		e.peer = &end{owner: peer, peer: e, in: there, out: back, slot: noSlot, unannounced: true}
		peer.ends[t.env.Self] = e.peer
		e.peer.ring()
	}
	t.ends[proc] = e
	return e, nil
}

// forget removes an end from which no further event can come.
func (h *Hub) forget(e *end) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := e.proc(); e.owner.ends[p] == e {
		delete(e.owner.ends, p)
	}
}
