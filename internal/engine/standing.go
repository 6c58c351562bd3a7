// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
)

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
func (c *Context) recvFault(rank int32, pl wire.TrafficClass) *fault.Fault {
	if c.faults != nil && c.faults.freed {
		return c.opFault()
	}
	return c.awaitFault(rank, pl)
}

// awaitFault is what stands against waiting for a message of a rank. A receive
// from anybody fails while a failure is unacknowledged: the message it waits
// for may be the dead one's (the reading of ULFM).
func (c *Context) awaitFault(rank int32, pl wire.TrafficClass) *fault.Fault {
	if pl == wire.TrafficFault && !c.e.closed {
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

func (c *Context) peer(s seat) *Peer {
	p := c.known(s)
	if *p == nil {
		*p = c.e.peerOf(c.procAt(s))
	}
	return *p
}

// maxEarly bounds what is kept of collectives that were given up before they are
// started here.
const maxEarly = 1024

// givenUp are collectives with tags from to to, which one rank gave up.
type givenUp struct {
	from, to int32
	fault    *fault.Fault
}

// addEarly books that a collective was given up. It returns false if there is no
// room.
func (t *faults) addEarly(tag int32, f *fault.Fault) bool {
	next := -1
	for i := range t.early {
		switch g := &t.early[i]; {
		case tag >= g.from && tag <= g.to:
			return true
		case tag == g.to+1 && f.Class == g.fault.Class && f.Peer == g.fault.Peer:
			next = i
		}
	}
	switch {
	case next >= 0:
		t.early[next].to = tag
	case len(t.early) < maxEarly:
		t.early = append(t.early, givenUp{tag, tag, f})
	default:
		return false
	}
	return true
}

// takeEarly returns why a collective was given up, nil if it was not, and
// forgets it.
func (t *faults) takeEarly(tag int32) *fault.Fault {
	for i := range t.early {
		g := t.early[i]
		if tag < g.from || tag > g.to {
			continue
		}
		switch {
		case g.from == g.to:
			t.early = slices.Delete(t.early, i, i+1)
		case tag == g.from:
			t.early[i].from++
		default:
			t.early[i].to = tag - 1
			if tag < g.to { // as when it was numbered long ago
				t.early = append(t.early, givenUp{tag + 1, g.to, g.fault})
			}
		}
		return g.fault
	}
	return nil
}
