// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync/atomic"

	"gompi/internal/fault"
	"gompi/internal/match"
	"gompi/internal/ring"
	"gompi/internal/serials"
	"gompi/internal/wire"
)

// communicators are those of a process, with what is known of former and of future
// ones.
type communicators struct {
	contexts map[wire.ContextID]*Context
	meetings []*Context // in which processes wait to meet
	freed    serials.Set
	sites    map[site]string // where calls that wait came from
	freeing  int             // freed contexts on which operations are pending
	news     []*news         // of communicators to come, oldest first
}

// Context is a communicator as the engine sees it: an ordered list of
// processes under an id. Immutable but for the fields guarded by the engine.
type Context struct {
	ID      wire.ContextID
	Members wire.Members // the local group of an intercommunicator
	Remote  wire.Members // the other group of an intercommunicator, else empty
	Rank    int          // this process's place in Members
	Owner   any          // the layer above's view of it; immutable after NewContext

	e      *Engine
	rank32 int32
	keys   [wire.NumPlanes]match.Key // source 0, tag 0
	mine   match.Key                 // on PlaneP2P; source is this rank, tag 0

	// Guarded by the engine.
	peers   []*Peer  // by rank in Targets, nil until used
	few     [4]*Peer // peers, if they are so few
	local   []*Peer  // by rank in Members; nil if that is Targets
	faults  *faults  // nil as long as all is well
	bad     faults   // that, once it is not
	collSeq uint64
	starts  []uint64 // of each persistent collective, by its number
	// ringFrom is the number of the first of these that may use memory of all; -1:
	// there is none.
	ringFrom int
	// partTags are the tags on PlanePart that senders of this process have
	// taken.
	partTags uint32
	// numbered are the calls of NumberColl that have not started, oldest first.
	numbered []int32
	pending  int       // operations that were started before the context was freed
	leavers  []*waiter // who wait for the end of those
	// What has not ended: see Request.hang.
	ops, anys ring.List[Request]
	from      []ring.List[Request] // by rank in Targets; nil until used
	colls     ring.List[coll]
	// inside is the collective in which a goroutine blocks, tag its tag, and
	// givenUp why another rank gave it up, if none of its parts could be told.
	inside  *Request
	tag     int32
	givenUp *fault.Fault
	// board is memory that all ranks share, once boardState says so; voted is that
	// memory as long as it is not known whether all do. room and reads are what
	// operations may count on as long as nothing is decided.
	board, voted *board
	boardState   boardState
	shareFrom    int32 // the number of the first call that may ask for memory
	readState    readState
	room         atomic.Int64
	reads        atomic.Bool
	// node is what the ranks of this host have, if there are several and others:
	// see Divide. whole is the communicator of which this is such a part.
	node  *nodePart
	whole *Context
	line  *line // nil: no call has needed it
}

// faults is what stands against using a context.
type faults struct {
	revoked bool
	freed   bool
	away    int       // how many of Targets have failed, left or cannot be reached: see losses
	cut     int       // how many of all cannot be reached
	failed  int       // how many of all have failed
	acked   int       // how many of these the application has acknowledged
	early   []givenUp // collectives that others gave up before they were started here
	why     error     // it was revoked, if that was this process's own doing
}

// NewContext registers a communicator. Self must be a member. Messages that
// came early for it have waited.
func (e *Engine) NewContext(id wire.ContextID, members wire.Members, owner any) (*Context, error) {
	c, err := e.newContext(id, members, owner)
	if err != nil {
		return nil, err
	}
	c.offerBoard()
	return c, e.register(c, nil)
}

func (e *Engine) newContext(id wire.ContextID, members wire.Members, owner any) (*Context, error) {
	rank := members.Index(e.cfg.Self)
	if rank < 0 {
		return nil, fmt.Errorf("process %v is not a member of %v", e.cfg.Self, id)
	}
	if err := sizeFits(members); err != nil {
		return nil, err
	}
	c := &Context{ID: id, Members: members, Rank: rank, Owner: owner, e: e, rank32: int32(rank), boardState: boardNever, readState: readsKnown, ringFrom: -1}
	if c.peers = c.few[:]; members.Len() > len(c.few) {
		c.peers = make([]*Peer, members.Len())
	}
	c.peers = c.peers[:members.Len()]
	for pl := range c.keys {
		c.keys[pl] = match.NewKey(id, wire.Plane(pl), 0, 0)
	}
	c.mine = c.keys[wire.PlaneP2P].With(c.rank32, 0)
	return c, nil
}

func sizeFits(m wire.Members) error {
	if m.Len() > match.MaxSource {
		return fmt.Errorf("%d processes are more than the %d a communicator can hold", m.Len(), match.MaxSource)
	}
	return nil
}

// register makes a communicator known, which was made from parent; nil: from none
// with its members.
func (e *Engine) register(c, parent *Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.contexts[c.ID] != nil {
		return fmt.Errorf("communicator %v exists already", c.ID)
	}
	if e.freed.Has(c.ID) {
		return fmt.Errorf("communicator %v was freed: its messages cannot be told from those of a second one", c.ID)
	}
	e.contexts[c.ID] = c
	c.countLost()
	if parent == nil || e.contexts[parent.ID] != parent || !c.Members.Equal(parent.Members) {
		e.hold(c) // else their end is asked for, or remembered
	}
	e.hear(c)
	return nil
}

func (c *Context) makeFaults() *faults {
	c.faults = &c.bad
	if c.node != nil {
		c.node.ctx.makeFaults() // who looks there looks here, too
	}
	return c.faults
}

// lose counts a member that will answer no more, or, if it was cut off before,
// that has ended. What became of it the engine knows, once for all contexts.
func (c *Context) lose(s seat, class fault.Class, wasCut bool) {
	t := c.makeFaults()
	switch {
	case wasCut:
		t.cut--
	case !s.local():
		t.away++
	}
	switch class {
	case fault.Unreachable:
		t.cut++
	case fault.ProcFailed:
		t.failed++
	}
}

// losses iterates over the members that will answer no more, in the order in
// which it was learnt. The faults are of no seat: see faultAt.
func (c *Context) losses(yield func(seat, *fault.Fault) bool) {
	for _, l := range c.e.lost {
		if s, ok := c.seatFor(l.proc); ok && !yield(s, l.f) {
			return
		}
	}
}

// lossOf is losses of one member; nil if it may answer.
func (c *Context) lossOf(s seat) *fault.Fault {
	if c.faults == nil {
		return nil
	}
	p := *c.known(s)
	if p == nil {
		proc := c.procAt(s)
		if p = c.e.peers[proc]; p == nil {
			if d := c.e.dead[proc]; d != nil {
				return d.fault()
			}
			return nil
		}
	}
	if p.state == peerDown {
		return p.down
	}
	return nil
}

// lastDeath is the fault of the member whose failure was learnt last.
func (c *Context) lastDeath() (last *fault.Fault) {
	for s, f := range c.losses {
		if f.Class == fault.ProcFailed {
			last = faultAt(f, s)
		}
	}
	return last
}

// faultAt is f as the fault of a seat.
func faultAt(f *fault.Fault, s seat) *fault.Fault {
	g := *f
	g.Peer, g.Local = s.rank(), s.local()
	if l, ok := f.Err.(left); ok {
		g.Err = left{s.rank(), l.how}
	}
	return &g
}

// dest returns the peer of a destination rank for a new operation.
func (c *Context) dest(rank int32) (*Peer, *fault.Fault) {
	if c.faults != nil && c.faults.freed {
		return nil, c.opFault()
	}
	return c.reach(seat(rank))
}

// reach is dest for a step of an operation that has been started.
func (c *Context) reach(s seat) (*Peer, *fault.Fault) {
	if c.faults != nil || c.e.closed {
		if f := c.stepFault(); f != nil {
			return nil, f
		}
	}
	p := c.peer(s)
	if p.state == peerDown {
		return nil, faultAt(p.down, s)
	}
	return p, nil
}

// opFault is what stands against starting any operation at all.
func (c *Context) opFault() *fault.Fault {
	if c.faults != nil && c.faults.freed {
		return &fault.Fault{Class: fault.Comm, Peer: -1}
	}
	return c.stepFault()
}

// stepFault is what stands against going on with any operation.
func (c *Context) stepFault() *fault.Fault {
	switch {
	case c.faults != nil && c.faults.revoked:
		return &fault.Fault{Class: fault.Revoked, Peer: -1, Err: c.faults.why}
	case c.e.closed:
		return &fault.Fault{Class: fault.Finalized, Peer: -1}
	}
	return nil
}

// recvFault is what stands against starting to receive from a rank, which may
// be Any.
func (c *Context) recvFault(rank int32, pl wire.Plane) *fault.Fault {
	if c.faults != nil && c.faults.freed {
		return c.opFault()
	}
	return c.awaitFault(rank, pl)
}

// awaitFault is what stands against waiting for a message of a rank. A receive
// from anybody fails while a failure is unacknowledged: the message it waits
// for may be the dead one's (the reading of ULFM).
func (c *Context) awaitFault(rank int32, pl wire.Plane) *fault.Fault {
	if pl == wire.PlaneFault && !c.e.closed {
		return nil
	}
	if f := c.stepFault(); f != nil {
		return f
	}
	t := c.faults
	if t == nil {
		return nil
	}
	if rank != match.Any {
		s := seatOf(pl, rank)
		if f := c.lossOf(s); f != nil {
			return faultAt(f, s)
		}
		return nil
	}
	if t.failed > t.acked {
		n := 0
		var last *fault.Fault
		for s, f := range c.losses {
			if f.Class != fault.ProcFailed {
				continue
			}
			if n++; n > t.acked && !s.local() {
				last = faultAt(f, s)
			}
		}
		if last != nil {
			return last
		}
	}
	others := len(c.peers)
	if !c.inter() {
		others--
	}
	if t.away == others {
		return c.lastSender()
	}
	return nil
}

// unreached is that a member lives and cannot be reached, nil if there is none.
func (c *Context) unreached() *fault.Fault {
	for s, f := range c.losses {
		if f.Class == fault.Unreachable {
			return faultAt(f, s)
		}
	}
	return nil
}

// lastSender is why nobody is left who could send: first that somebody has left,
// as failures were acknowledged.
func (c *Context) lastSender() *fault.Fault {
	for _, class := range [...]fault.Class{fault.Unreachable, fault.Left, fault.ProcFailed} {
		for s, f := range c.losses {
			if !s.local() && f.Class == class {
				return faultAt(f, s)
			}
		}
	}
	return nil
}

// Failed returns the ranks known to have failed, those of the remote group of
// an intercommunicator, in the order in which this process learnt of it.
func (c *Context) Failed() []int { return c.failed(false) }

// FailedLocal is Failed for the local group of an intercommunicator.
func (c *Context) FailedLocal() []int { return c.failed(c.inter()) }

func (c *Context) failed(local bool) []int {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.faults == nil {
		return nil
	}
	var out []int
	for s, f := range c.losses {
		if f.Class == fault.ProcFailed && s.local() == local {
			out = append(out, int(s.rank()))
		}
	}
	return out
}

// AckFailed acknowledges all failures known now: receives from any source
// work again. It returns how many there are.
func (c *Context) AckFailed() int {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.faults == nil {
		return 0
	}
	c.faults.acked = c.faults.failed
	return c.faults.acked
}

// Freed reports whether the communicator was freed on this process.
func (c *Context) Freed() bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.faults != nil && c.faults.freed
}

// Revoked reports whether the communicator was revoked.
func (c *Context) Revoked() bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.faults != nil && c.faults.revoked
}
