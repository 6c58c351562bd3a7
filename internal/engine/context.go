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

// FreeContext ends a communicator: messages for it are dropped from now on.
// Pending operations end with Freed, except transfers under way, which finish.
func (e *Engine) FreeContext(c *Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.contexts[c.ID] == nil {
		return
	}
	t := c.makeTrouble()
	t.freed = true
	delete(e.contexts, c.ID)
	e.freed.add(c.ID)
	e.failContext(c, &Fault{Class: Freed, Peer: -1})
	for _, a := range e.table.DropContext(c.ID.Creator, c.ID.Serial) {
		u := a.Val
		if u.env.kind == kindRTS {
			e.control(u.peer, u.env.key, kindRefuse, 0, u.env.aux)
		} else if u.env.flags&flagSync != 0 {
			e.control(u.peer, u.env.key, kindAck, 0, u.env.aux)
		}
		e.release(u)
	}
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

// dest returns the peer of a destination rank.
func (c *Context) dest(rank int32) (*Peer, *Fault) {
	if c.trouble != nil || c.e.closed {
		if f := c.opFault(); f != nil {
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

// opFault is what stands against any operation at all.
func (c *Context) opFault() *Fault {
	switch t := c.trouble; {
	case t != nil && t.freed:
		return &Fault{Class: Freed, Peer: -1}
	case t != nil && t.revoked:
		return &Fault{Class: Revoked, Peer: -1}
	case c.e.closed:
		return &Fault{Class: Closed, Peer: -1}
	}
	return nil
}

// recvFault is what stands against receiving from a rank, which may be Any.
// A receive from anybody fails while a failure is unacknowledged: the message
// it waits for may be the dead one's (the reading of ULFM).
func (c *Context) recvFault(rank int32, pl wire.Plane) *Fault {
	if pl == wire.PlaneFault && (c.trouble == nil || !c.trouble.freed) && !c.e.closed {
		return nil
	}
	if f := c.opFault(); f != nil {
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

// serialSet holds the ids of freed contexts, as intervals of serials for each
// creator.
type serialSet struct {
	m map[wire.ProcID][]serialRange
}

type serialRange struct{ lo, hi uint32 } // inclusive

func (s *serialSet) find(rs []serialRange, n uint32) (int, bool) {
	return slices.BinarySearchFunc(rs, n, func(r serialRange, n uint32) int {
		switch {
		case r.hi < n:
			return -1
		case r.lo > n:
			return 1
		}
		return 0
	})
}

func (s *serialSet) add(id wire.ContextID) {
	if s.m == nil {
		s.m = map[wire.ProcID][]serialRange{}
	}
	rs, n := s.m[id.Creator], id.Serial
	i, ok := s.find(rs, n)
	if ok {
		return
	}
	left := i > 0 && rs[i-1].hi+1 == n
	right := i < len(rs) && rs[i].lo == n+1
	switch {
	case left && right:
		rs[i-1].hi = rs[i].hi
		rs = slices.Delete(rs, i, i+1)
	case left:
		rs[i-1].hi = n
	case right:
		rs[i].lo = n
	default:
		rs = slices.Insert(rs, i, serialRange{n, n})
	}
	s.m[id.Creator] = rs
}

func (s *serialSet) has(id wire.ContextID) bool {
	_, ok := s.find(s.m[id.Creator], id.Serial)
	return ok
}
