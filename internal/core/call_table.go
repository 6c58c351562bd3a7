// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"sync"

	"gompi/collectives"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
)

// CallTable compares the collective calls of ranks that are goroutines of one process:
// operation, root, reduction, length. Unlike GOMPI_CHECK it needs no messages, so calls
// take the same paths as without it. It does not see calls on intercommunicators, nor
// calls on the fast path of shared memory. The zero CallTable is empty; any goroutine may
// use it.
type CallTable struct {
	mu    sync.Mutex
	comms map[commKey]map[callNumber]seenCall
}

// commKey is a communicator of several ranks. Groups without a common process may share
// a context id, so the first member tells them apart.
type commKey struct {
	ctx   wire.ContextID
	first wire.ProcID
}

// callNumber is a call of all ranks of a communicator.
type callNumber struct {
	number     int64
	persistent bool
}

// seenCall is the form in which the first rank made a call that not all ranks have made.
// It goes with the last rank's call, or when the first rank frees the communicator: other
// ranks may have made the call in shared memory, where nothing is compared.
type seenCall struct {
	callShape
	rank int // of the first one
	seen int // ranks
}

// callShape is the part of a call in which all ranks must agree.
type callShape struct {
	op     collectives.Op
	name   fault.Call
	root   int    // -1: it has none
	kernel string // "": it reduces nothing
	apart  bool   // its reduction does not commute: other algorithms
	bytes  int64  // of a block, 0 where they differ
	counts uint64 // a hash of all counts, where they must be equal
}

func shapeOf(a *engine.CollArgs) callShape {
	x := &a.Args
	s := callShape{op: x.Op, name: a.Op, root: -1}
	if direction(x.Op) != "" {
		s.root = x.Root
	}
	if a.Kernel != nil {
		s.kernel, s.apart = a.KernelName, !a.Commutative
	}
	switch x.Op {
	case collectives.OpBarrier, collectives.OpGatherv, collectives.OpScatterv, collectives.OpAlltoallv:
	case collectives.OpAllgatherv, collectives.OpReduceScatter:
		for _, n := range x.Counts {
			s.counts = (s.counts ^ uint64(n*a.Unit)) * 1099511628211 // FNV, by words
		}
	default:
		if x.Op < collectives.OpNeighborAllgather {
			s.bytes = x.Count * a.Unit
		}
	}
	return s
}

// String returns the call in words.
func (s callShape) String() string {
	text := string(s.name)
	if s.bytes > 0 {
		text += fmt.Sprintf(" of %d bytes", s.bytes)
	}
	if s.root >= 0 {
		text += fmt.Sprintf(" %s root %d", direction(s.op), s.root)
	}
	if s.kernel != "" {
		text += " with " + s.kernel
	}
	if s.apart {
		text += ", not commutative"
	}
	return text
}

// compare returns a fault if the call of this rank differs from that of the first rank that
// made it.
func (t *CallTable) compare(c *Comm, a *engine.CollArgs, number int64, persistent bool) *fault.Fault {
	if c.Both != nil || c.Size == 1 {
		return nil
	}
	k, n, mine := keyOf(c), callNumber{number, persistent}, shapeOf(a)
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.freed.Load() || c.Ctx.Ended() { // the engine says what is wrong
		return nil
	}
	calls := t.comms[k]
	first, ok := calls[n]
	if !ok {
		if t.comms == nil {
			t.comms = map[commKey]map[callNumber]seenCall{}
		}
		if calls == nil {
			calls = map[callNumber]seenCall{}
			t.comms[k] = calls
		}
		calls[n] = seenCall{mine, c.Rank, 1}
		return nil
	}
	if first.seen++; first.seen == c.Size {
		delete(calls, n)
	} else {
		calls[n] = first
	}
	if mine == first.callShape {
		return nil
	}
	counts := ""
	if mine.counts != first.counts && mine.op == first.op {
		counts = ", with other counts"
	}
	f := wrong(fault.Mismatch, "rank %d calls %q, rank %d calls %q%s", c.Rank, mine, first.rank, first.callShape, counts)
	f.Peer = int32(first.rank)
	return f
}

func keyOf(c *Comm) commKey { return commKey{c.Ctx.ID, c.Ctx.Members.At(0)} }

// gone drops the calls of a communicator that this rank, which frees it, made first, and the
// map when it is empty. Until then an empty map stays: calls would allocate another.
func (t *CallTable) gone(c *Comm) {
	k := keyOf(c)
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := t.comms[k]
	for n, first := range calls {
		if first.rank == c.Rank {
			delete(calls, n)
		}
	}
	if len(calls) == 0 {
		delete(t.comms, k)
	}
}

// run is Comm.Run with the calls compared.
func (t *CallTable) run(c *Comm, a *engine.CollArgs) *fault.Fault {
	if f := t.compare(c, a, c.Ctx.NextColl(), false); f != nil {
		return c.refuse(a, f)
	}
	c.chooseBlocking(a)
	return c.Engine.Collective(c.Ctx, a)
}

// start is Comm.Start with the calls compared.
func (t *CallTable) start(c *Comm, a *engine.CollArgs) (engine.Handle, *fault.Fault) {
	if f := t.compare(c, a, c.Ctx.NextColl(), false); f != nil {
		return engine.Handle{}, c.refuse(a, f)
	}
	c.chooseStarted(a)
	return c.Engine.Icollective(c.Ctx, a), nil
}
