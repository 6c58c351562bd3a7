// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/wire"
)

// The messages of an intercommunicator go to its remote group, but for steps
// of collectives within the local one, which have a plane of their own:
// PlaneCollLocal. So the plane says which group a rank on the wire belongs to,
// as both count from 0.

// NewInterContext registers an intercommunicator between two groups that have
// no process in common. Self must be in local.
func (e *Engine) NewInterContext(id wire.ContextID, local, remote wire.Members, owner any) (*Context, error) {
	c, err := e.newContext(id, local, owner)
	if err != nil {
		return nil, err
	}
	if remote.Len() == 0 {
		return nil, fmt.Errorf("an intercommunicator has no remote group")
	}
	if err := sizeFits(remote); err != nil {
		return nil, err
	}
	c.Remote, c.local, c.peers = remote, c.peers, make([]*Peer, remote.Len())
	return c, e.register(c, nil)
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

// seat is a rank of either group: in Targets, or the complement of one in the
// local group of an intercommunicator.
type seat int32

// seatOf gives the seat of the rank that a message or receive on a plane names.
func seatOf(pl wire.Plane, rank int32) seat {
	if pl == wire.PlaneCollLocal {
		return ^seat(rank)
	}
	return seat(rank)
}

func (s seat) local() bool { return s < 0 }

func (s seat) rank() int32 {
	if s.local() {
		return int32(^s)
	}
	return int32(s)
}

// seat is that of the rank that r sends to or receives from.
func (r *Request) seat() seat { return seatOf(r.posted.Key.Plane(), r.rank) }

// peerSeat is that of the rank at the other end of r, which is matched if it is
// a receive.
func (r *Request) peerSeat() seat {
	if r.kind == reqRecv {
		return seatOf(r.posted.Key.Plane(), r.status.Source)
	}
	return r.seat()
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

func (c *Context) peer(s seat) *Peer {
	p := c.known(s)
	if *p == nil {
		*p = c.e.peerOf(c.procAt(s))
	}
	return *p
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
func (c *Context) stepPlane(remote bool) wire.Plane {
	if c.inter() && !remote {
		return wire.PlaneCollLocal
	}
	return wire.PlaneColl
}
