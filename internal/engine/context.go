// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/base/idset"
	"gompi/internal/base/list"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
	"gompi/internal/engine/shmcoll"
)

// communicators are those of a process, with what is known of former and of future
// ones.
type communicators struct {
	contexts map[wire.ContextID]*Context
	meetings []*Context // in which processes wait to meet
	freed    idset.FreedContexts
	news     []*news  // of communicators to come, oldest first
	lender   *Context // see Lend; nil: none
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
	keys   [wire.NumTraffic]match.Key // source 0, tag 0
	mine   match.Key                  // on PlaneP2P; source is this rank, tag 0

	// Guarded by the engine.
	peers   []*Peer  // by rank in Targets, nil until used
	few     [4]*Peer // peers, if they are so few
	local   []*Peer  // by rank in Members; nil if that is Targets
	faults  *faults  // nil as long as all is well
	bad     faults   // that, once it is not
	collSeq uint64
	starts  []uint64 // of each persistent collective, by its place
	places  places
	// ringFrom is the number of the first of these that may use memory of all; -1:
	// there is none.
	ringFrom int
	// partTags are the tags on PlanePart that senders of this process have
	// taken.
	partTags partTags
	// numbered are the calls of NumberColl that have not started, oldest first.
	numbered []int32
	pending  int       // operations that were started before the context was freed
	leavers  []*waiter // who wait for the end of those
	// What has not ended: see Request.hang.
	ops, anys list.List[Request]
	from      []list.List[Request] // by rank in Targets; nil until used
	colls     list.List[coll]
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
	refused      bool  // this rank cannot use what all were given
	readState    readState
	room         atomic.Int64
	reads        atomic.Bool
	// lent is the memory of the lender, kept since this rank voted for it.
	lent *shmcoll.Heap
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
	why     error     // it was revoked, if that is known
}

func (c *Context) inter() bool { return c.local != nil }

// Targets are the processes that messages go to: the remote group of an
// intercommunicator.
func (c *Context) Targets() wire.Members {
	if c.inter() {
		return c.Remote
	}
	return c.Members
}

// seatFor finds the seat of a process.
func (c *Context) seatFor(p wire.ProcID) (seat, bool) {
	if i := c.Targets().Index(p); i >= 0 {
		return seat(i), true
	}
	if c.inter() {
		if i := c.Members.Index(p); i >= 0 {
			return ^seat(i), true
		}
	}
	return 0, false
}

// exists reports whether a seat that another process names is one of c's.
func (c *Context) exists(s seat) bool {
	if s.local() {
		return int(s.rank()) < len(c.local)
	}
	return int(s) < len(c.peers)
}

func (c *Context) procAt(s seat) wire.ProcID {
	if s.local() {
		return c.Members.At(int(s.rank()))
	}
	return c.Targets().At(int(s))
}

// known is where the peer of a seat is noted, nil until it is used.
func (c *Context) known(s seat) **Peer {
	if s.local() {
		return &c.local[s.rank()]
	}
	return &c.peers[s]
}

// seats iterates over all seats but the caller's own.
func (c *Context) seats(yield func(seat) bool) {
	for i := range c.peers {
		if (c.inter() || i != c.Rank) && !yield(seat(i)) {
			return
		}
	}
	for i := range c.local {
		if i != c.Rank && !yield(^seat(i)) {
			return
		}
	}
}

// stepPlane is the plane of a collective's step.
func (c *Context) stepPlane(remote bool) wire.TrafficClass {
	if c.inter() && !remote {
		return wire.TrafficCollLocal
	}
	return wire.TrafficColl
}

// wireKey is the key of a frame that concerns the context but no message.
func (c *Context) wireKey(pl wire.TrafficClass, tag int32) match.Key {
	return c.keys[pl].With(c.rank32, tag)
}
