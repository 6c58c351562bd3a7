// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
)

func (c *Context) makeFaults() *faults {
	c.faults = &c.faultsMem
	if c.host != nil {
		c.host.ctx.makeFaults() // operations of the host part look here, too
	}
	return c.faults
}

// lose counts a member that will not answer any more. wasCut says that it was cut off
// before, and has now ended. The engine keeps the reason, once for all contexts.
func (c *Context) lose(s member, class fault.Class, wasCut bool) {
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

// losses iterates over the members that will not answer any more, in the order in which
// this process learnt it. The faults name no member: see faultAt.
func (c *Context) losses(yield func(member, *fault.Fault) bool) {
	for _, l := range c.e.lost {
		if s, ok := c.memberFor(l.proc); ok && !yield(s, l.f) {
			return
		}
	}
}

// lossOf returns the loss of one member, or nil if it may answer.
func (c *Context) lossOf(s member) *fault.Fault {
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

// lastDeath returns the fault of the member whose failure was learnt last.
func (c *Context) lastDeath() (last *fault.Fault) {
	for s, f := range c.losses {
		if f.Class == fault.ProcFailed {
			last = faultAt(f, s)
		}
	}
	return last
}

// faultAt returns f as the fault of a member.
func faultAt(f *fault.Fault, s member) *fault.Fault {
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
	return c.reach(member(rank))
}

// reach is dest for a step of an operation that has started.
func (c *Context) reach(s member) (*Peer, *fault.Fault) {
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

// opFault returns the fault that forbids any new operation, or nil.
func (c *Context) opFault() *fault.Fault {
	if c.faults != nil && c.faults.freed {
		return &fault.Fault{Class: fault.Comm, Peer: -1}
	}
	return c.stepFault()
}

// stepFault returns the fault that ends any operation under way, or nil.
func (c *Context) stepFault() *fault.Fault {
	switch {
	case c.faults != nil && c.faults.revoked:
		return &fault.Fault{Class: fault.Revoked, Peer: -1, Err: c.faults.why}
	case c.e.closed:
		return &fault.Fault{Class: fault.Finalized, Peer: -1}
	}
	return nil
}

// recvFault returns the fault that forbids a receive from a rank, which may be Any, or nil.
func (c *Context) recvFault(rank int32, pl wire.TrafficClass) *fault.Fault {
	if c.faults != nil && c.faults.freed {
		return c.opFault()
	}
	return c.awaitFault(rank, pl)
}

// awaitFault returns the fault that ends a wait for a message of a rank, or nil. A receive
// from any source fails while a failure is not acknowledged: the message may have been the
// dead process's (ULFM).
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
		s := memberOf(pl, rank)
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

// unreached returns the fault of a living member that cannot be reached, or nil.
func (c *Context) unreached() *fault.Fault {
	for s, f := range c.losses {
		if f.Class == fault.Unreachable {
			return faultAt(f, s)
		}
	}
	return nil
}

// lastSender returns the reason why no process is left that could send. It prefers members
// that have left: failures were acknowledged.
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

// Failed returns the ranks known to have failed, in the order in which this process learnt
// it. In an intercommunicator they are ranks of the remote group.
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

// AckFailed acknowledges all failures known now, so that receives from any source work
// again. It returns their number.
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

func (c *Context) peer(s member) *Peer {
	p := c.known(s)
	if *p == nil {
		*p = c.e.peerOf(c.procAt(s))
	}
	return *p
}

// maxEarly bounds the records of collectives that were given up before they started here.
const maxEarly = 1024

// givenUp records that one rank gave up the collectives with tags from to to.
type givenUp struct {
	from, to int32
	fault    *fault.Fault
}

// addEarly records that a collective was given up. It returns false if there is no room.
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

// takeEarly removes the record of a collective and returns its fault, or nil.
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
			if tag < g.to { // the call was numbered long ago
				t.early = append(t.early, givenUp{tag + 1, g.to, g.fault})
			}
		}
		return g.fault
	}
	return nil
}
