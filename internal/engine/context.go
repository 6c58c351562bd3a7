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

// communicators are the communicators of a process: those that exist, and what
// is known of freed and future ones.
type communicators struct {
	contexts map[wire.ContextID]*Context
	meetings []*Context // in which processes wait in Meet
	freed    idset.FreedContexts
	notices  []*notice // of future communicators, oldest first
	lender   *Context  // the provider of preallocated blocks (Lend); nil: none
}

// Context is a communicator as the engine sees it: an ordered list of
// processes under an id.
type Context struct {
	// Immutable.
	ID      wire.ContextID
	Members wire.Members // the local group of an intercommunicator
	Remote  wire.Members // the other group of an intercommunicator, else empty
	Rank    int          // of this process in Members
	Owner   any          // the communicator of the layer above

	e      *Engine
	rank32 int32
	keys   [wire.NumTraffic]match.Key // by traffic class: source 0, tag 0
	mine   match.Key                  // of TrafficP2P: this rank as source, tag 0

	// The engine's lock guards all fields below.

	// Peers by member, nil until they are used.
	peers    []*Peer  // by rank in Targets
	fewPeers [4]*Peer // memory of peers, if these are so few
	local    []*Peer  // by rank in Members; nil if that is Targets

	// Failures. faults is nil as long as there is none, so the fast path looks
	// at one word.
	faults    *faults
	faultsMem faults // what faults points to

	// Numbers of collective calls (coll_number.go) and of partitions.
	collSeq uint64
	starts  []uint64 // of each persistent collective, by its place
	places  persistentPlaces
	// ringFrom is the place of the first persistent collective with a slot ring;
	// -1: none has one.
	ringFrom      int
	partitionTags tagPool // tags on TrafficPart of this process's senders
	// numbered are the calls of NumberColl that have not started, oldest first.
	numbered []int32

	// The end of a freed context: pending counts operations that had started
	// before, drainers wait for their end.
	pending  int
	drainers []*waiter

	// Operations that have not ended: see Request.hang.
	ops, anys list.List[Request]
	from      []list.List[Request] // by rank in Targets; nil until used
	colls     list.List[coll]

	// The collective in which a goroutine blocks, its tag, and the fault with
	// which another rank gave it up while no part of it could be told.
	blocking *Request
	tag      int32
	givenUp  *fault.Fault

	// Shared memory. area is set if all ranks have it (areaMade); voted is the
	// memory before that is known. room and reads are what calls may rely on:
	// promises before the decision, facts after it.
	area, voted *area
	areaState   areaState
	shareFrom   int32 // the number of the first call that may ask for memory
	refused     bool  // this rank cannot use the memory that all were given
	readState   readState
	room        atomic.Int64
	reads       atomic.Bool
	// lentHeap is the provider's memory, kept since this rank voted for it.
	lentHeap *shmcoll.Heap
	// host is the part on this host of a communicator of several hosts (Divide);
	// nil: none. whole is the communicator of which this context is such a part.
	host  *hostPart
	whole *Context
	queue *collQueue // nil until a call needs it
}

// faults is what keeps operations from using a context.
type faults struct {
	revoked bool
	freed   bool
	away    int       // members of Targets that will not answer any more: see losses
	cut     int       // members that cannot be reached
	failed  int       // members that have failed
	acked   int       // failures that the application has acknowledged
	early   []givenUp // collectives that others gave up before they started here
	why     error     // the reason of the revocation, if it is known
}

func (c *Context) inter() bool { return c.local != nil }

// Targets returns the processes that messages go to: the remote group of an
// intercommunicator.
func (c *Context) Targets() wire.Members {
	if c.inter() {
		return c.Remote
	}
	return c.Members
}

// memberFor returns the member of a process.
func (c *Context) memberFor(p wire.ProcID) (member, bool) {
	if i := c.Targets().Index(p); i >= 0 {
		return member(i), true
	}
	if c.inter() {
		if i := c.Members.Index(p); i >= 0 {
			return ^member(i), true
		}
	}
	return 0, false
}

// exists reports whether a member that another process names belongs to c.
func (c *Context) exists(s member) bool {
	if s.local() {
		return int(s.rank()) < len(c.local)
	}
	return int(s) < len(c.peers)
}

func (c *Context) procAt(s member) wire.ProcID {
	if s.local() {
		return c.Members.At(int(s.rank()))
	}
	return c.Targets().At(int(s))
}

// known returns the place of a member's peer, which is nil until it is used.
func (c *Context) known(s member) **Peer {
	if s.local() {
		return &c.local[s.rank()]
	}
	return &c.peers[s]
}

// others iterates over all members but this process.
func (c *Context) others(yield func(member) bool) {
	for i := range c.peers {
		if (c.inter() || i != c.Rank) && !yield(member(i)) {
			return
		}
	}
	for i := range c.local {
		if i != c.Rank && !yield(^member(i)) {
			return
		}
	}
}

// stepPlane returns the traffic class of a collective's step.
func (c *Context) stepPlane(remote bool) wire.TrafficClass {
	if c.inter() && !remote {
		return wire.TrafficCollLocal
	}
	return wire.TrafficColl
}

// wireKey returns the key of a frame that concerns the context and no message.
func (c *Context) wireKey(pl wire.TrafficClass, tag int32) match.Key {
	return c.keys[pl].With(c.rank32, tag)
}
