// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"gompi/internal/match"
	"gompi/internal/wire"
)

// Context is a communicator as the engine sees it: an ordered list of
// processes under an id. Immutable but for the fields guarded by the engine.
type Context struct {
	ID      wire.ContextID
	Members wire.Members
	Rank    int // this process's place in Members
	Owner   any // the layer above's view of it; immutable after NewContext

	e      *Engine
	rank32 int32
	keys   [wire.NumPlanes]match.Key // source 0, tag 0
	mine   [wire.NumPlanes]match.Key // source is this rank, tag 0

	// Guarded by the engine.
	peers   []*Peer  // by rank, nil until used
	trouble *trouble // nil as long as all is well
	collSeq uint32
	starts  []uint32 // of each persistent collective, by its number
	// partTags are the tags on PlanePart that senders of this process have
	// taken.
	partTags uint32
	watched  bool // the control plane tells when any member ends
	// numbered are the calls of NumberColl that have not started, oldest first.
	numbered []int32
	pending  int      // operations that were started before the context was freed
	inside   *Request // the collective in which a goroutine blocks
}

// trouble is what stands against using a context.
type trouble struct {
	revoked bool
	freed   bool
	gone    map[int32]*Fault // ranks that failed or left
	failed  []int32          // ranks that failed, in the order in which it was learnt
	acked   int              // how many of them the application has acknowledged
	early   map[int32]*Fault // collectives that others gave up before they were started here
}

// NewContext registers a communicator. Self must be a member. Messages that
// came early for it have waited.
func (e *Engine) NewContext(id wire.ContextID, members wire.Members, owner any) (*Context, error) {
	rank := members.Index(e.cfg.Self)
	if rank < 0 {
		return nil, fmt.Errorf("process %v is not a member of %v", e.cfg.Self, id)
	}
	if members.Len() > match.MaxSource {
		return nil, fmt.Errorf("%d processes are more than the %d a communicator can hold", members.Len(), match.MaxSource)
	}
	c := &Context{ID: id, Members: members, Rank: rank, Owner: owner, e: e, rank32: int32(rank), peers: make([]*Peer, members.Len())}
	for pl := range c.keys {
		c.keys[pl] = match.NewKey(id, wire.Plane(pl), 0, 0)
		c.mine[pl] = match.NewKey(id, wire.Plane(pl), c.rank32, 0)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.contexts[id] != nil {
		return nil, fmt.Errorf("communicator %v exists already", id)
	}
	if e.freed.has(id) {
		return nil, fmt.Errorf("communicator %v was freed: its messages cannot be told from those of a second one", id)
	}
	e.contexts[id] = c
	for proc, d := range e.dead {
		if r := members.Index(proc); r >= 0 {
			c.lose(int32(r), d.fault(proc), d.failed)
		}
	}
	e.hear(c)
	return c, nil
}

func (c *Context) makeTrouble() *trouble {
	if c.trouble == nil {
		c.trouble = &trouble{gone: map[int32]*Fault{}}
	}
	return c.trouble
}

// lose books that a rank will answer no more.
func (c *Context) lose(rank int32, f *Fault, failed bool) {
	t := c.makeTrouble()
	g := *f
	g.Peer = rank
	t.gone[rank] = &g
	if failed && !slices.Contains(t.failed, rank) {
		t.failed = append(t.failed, rank)
	}
}

// dest returns the peer of a destination rank for a new operation.
func (c *Context) dest(rank int32) (*Peer, *Fault) {
	if c.trouble != nil && c.trouble.freed {
		return nil, c.opFault()
	}
	return c.reach(rank)
}

// reach is dest for a step of an operation that has been started.
func (c *Context) reach(rank int32) (*Peer, *Fault) {
	if c.trouble != nil || c.e.closed {
		if f := c.stepFault(); f != nil {
			return nil, f
		}
		if f := c.trouble.gone[rank]; f != nil {
			return nil, f
		}
	}
	p := c.peers[rank]
	if p == nil {
		p = c.e.peerOf(c.Members.At(int(rank)))
		c.peers[rank] = p
	}
	if p.state == peerDown {
		return nil, p.fault(rank)
	}
	return p, nil
}

func (p *Peer) fault(rank int32) *Fault {
	f := *p.down
	f.Peer = rank
	return &f
}

// opFault is what stands against starting any operation at all.
func (c *Context) opFault() *Fault {
	if c.trouble != nil && c.trouble.freed {
		return &Fault{Class: Freed, Peer: -1}
	}
	return c.stepFault()
}

// stepFault is what stands against going on with any operation.
func (c *Context) stepFault() *Fault {
	switch {
	case c.trouble != nil && c.trouble.revoked:
		return &Fault{Class: Revoked, Peer: -1}
	case c.e.closed:
		return &Fault{Class: Closed, Peer: -1}
	}
	return nil
}

// recvFault is what stands against starting to receive from a rank, which may
// be Any.
func (c *Context) recvFault(rank int32, pl wire.Plane) *Fault {
	if c.trouble != nil && c.trouble.freed {
		return c.opFault()
	}
	return c.awaitFault(rank, pl)
}

// awaitFault is what stands against waiting for a message of a rank. A receive
// from anybody fails while a failure is unacknowledged: the message it waits
// for may be the dead one's (the reading of ULFM).
func (c *Context) awaitFault(rank int32, pl wire.Plane) *Fault {
	if pl == wire.PlaneFault && !c.e.closed {
		return nil
	}
	if f := c.stepFault(); f != nil {
		return f
	}
	t := c.trouble
	if t == nil {
		return nil
	}
	if rank != match.Any {
		return t.gone[rank]
	}
	if t.acked < len(t.failed) {
		return t.gone[t.failed[len(t.failed)-1]]
	}
	if len(t.gone) == c.Members.Len()-1 {
		for _, f := range t.gone {
			return f
		}
	}
	return nil
}

// Failed returns the ranks known to have failed, in the order in which this
// process learnt of it.
func (c *Context) Failed() []int {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.trouble == nil {
		return nil
	}
	out := make([]int, len(c.trouble.failed))
	for i, r := range c.trouble.failed {
		out[i] = int(r)
	}
	return out
}

// AckFailed acknowledges all failures known now: receives from any source
// work again. It returns how many there are.
func (c *Context) AckFailed() int {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.trouble == nil {
		return 0
	}
	c.trouble.acked = len(c.trouble.failed)
	return c.trouble.acked
}

// Revoked reports whether the communicator was revoked.
func (c *Context) Revoked() bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.trouble != nil && c.trouble.revoked
}
