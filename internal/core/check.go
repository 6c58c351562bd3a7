// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"
	"sync"

	"gompi/collectives"
	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/engine"
)

// Checker holds the costly checks of GOMPI_CHECK=1: no buffer is used by two
// operations of which one writes it, the ranks of a collective call agree
// (agree), and no user operation calls the library. Without them a communicator has no checker.
type Checker struct {
	mu     sync.Mutex
	uses   []*Use
	comms  map[*Comm]string // that were not freed, and where they were made
	inside insideOps
}

// Use is one operation with its buffers.
type Use struct {
	op        fault.Call
	comm      string
	peer, tag int
	reads     []buffer.Buf
	writes    []buffer.Buf
	h         engine.Handle // null as long as the call that starts it runs
	engine    *engine.Engine
	site      string    // where the program has started it, if it does not block
	held      []uint64  // hashes of reads then
	landed    []landing // of writes
}

// BufUse is the use of buffers to read and to write.
func BufUse(op fault.Call, peer, tag int, reads, writes []buffer.Buf) Use {
	return Use{op: op, peer: peer, tag: tag, reads: reads, writes: writes}
}

func (u *Use) String() string {
	s := string(u.op) + " on " + u.comm
	if u.peer >= 0 {
		s += fmt.Sprintf(", peer %d", u.peer)
	}
	if u.tag >= 0 {
		s += fmt.Sprintf(", tag %d", u.tag)
	}
	return s
}

// over reports whether the request that holds the buffers has been completed.
func (u *Use) over() bool { return !u.h.IsNull() && !u.engine.Alive(u.h) }

// SendUse is the use of a send, RecvUse that of a receive, CollUse that of a
// collective call.
func SendUse(a *engine.SendArgs) Use {
	return Use{op: a.Op, peer: int(a.Dest), tag: int(a.Tag), reads: []buffer.Buf{a.Buf}}
}

func RecvUse(a *engine.RecvArgs) Use {
	return Use{op: a.Op, peer: int(a.Source), tag: int(a.Tag), writes: []buffer.Buf{a.Buf}}
}

func CollUse(a *engine.CollArgs) Use {
	u := Use{op: a.Op, peer: -1, tag: -1}
	switch {
	case a.InBlocks != nil:
		// The call's own list ends with it, the buffers are in use until Wait.
		u.reads, u.writes = a.InBlocks, slices.Clone(a.OutBlocks)
	case a.Args.Op == collectives.OpBcast && a.Args.Root == a.Args.Rank && !a.Args.RootRemote:
		u.reads = []buffer.Buf{a.Out}
	default:
		u.reads, u.writes = a.Parts()
	}
	return u
}

// Book books the buffers of an operation, or says who else uses them.
func (k *Checker) Book(c *Comm, u Use) (*Use, *fault.Fault) {
	u.comm, u.engine = c.Name(), c.Engine
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.uses[:0]
	var clash *Use
	for _, v := range k.uses {
		if v.over() {
			continue
		}
		kept = append(kept, v)
		if clash == nil && (overlap(u.writes, v.writes) || overlap(u.writes, v.reads) || overlap(u.reads, v.writes)) {
			clash = v
		}
	}
	clear(k.uses[len(kept):])
	k.uses = kept
	if clash != nil {
		return nil, wrong(fault.InUse, "its %d bytes overlap the %d bytes of %v, which is not complete", u.bytes(), clash.bytes(), clash)
	}
	k.uses = append(k.uses, &u)
	return &u, nil
}

// bytes is how much the operation reads or writes, whichever is more.
func (u *Use) bytes() int64 {
	var n [2]int64
	for i, bufs := range [...][]buffer.Buf{u.reads, u.writes} {
		for _, b := range bufs {
			n[i] += b.Bytes()
		}
	}
	return max(n[0], n[1])
}

// overlap reports whether a buffer of one list shares a byte with one of the other.
func overlap(a, b []buffer.Buf) bool {
	for _, x := range a {
		if slices.ContainsFunc(b, x.Overlaps) {
			return true
		}
	}
	return false
}

// Until leaves the buffers booked until a request is completed.
func (k *Checker) Until(u *Use, h engine.Handle) {
	if h.IsNull() {
		k.End(u)
		return
	}
	k.mu.Lock()
	u.h = h
	k.mu.Unlock()
}

// End gives the buffers of a blocking call back.
func (k *Checker) End(u *Use) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, v := range k.uses {
		if v == u {
			last := len(k.uses) - 1
			k.uses[i] = k.uses[last]
			k.uses[last] = nil
			k.uses = k.uses[:last]
			return
		}
	}
}

// The calls with their buffers booked.

// Send is engine.Send.
func (k *Checker) Send(c *Comm, a *engine.SendArgs) *fault.Fault {
	u, f := k.Book(c, SendUse(a))
	if f != nil {
		return f
	}
	defer k.End(u)
	return c.Engine.Send(c.Ctx, a)
}

// Isend is engine.Isend.
func (k *Checker) Isend(c *Comm, a *engine.SendArgs) (engine.Handle, *fault.Fault) {
	return k.Started(c, SendUse(a), func(*Use) engine.Handle { return c.Engine.Isend(c.Ctx, a) })
}

// Pair is engine.Pair.
func (k *Checker) Pair(c *Comm, op fault.Call, s *engine.SendArgs, r *engine.RecvArgs, none engine.Status) (engine.Handle, *fault.Fault) {
	u := BufUse(op, -1, -1, nil, nil)
	if s != nil {
		u.peer, u.tag, u.reads = int(s.Dest), int(s.Tag), []buffer.Buf{s.Buf}
	}
	if r != nil {
		u.writes = []buffer.Buf{r.Buf}
	}
	return k.Started(c, u, func(u *Use) engine.Handle {
		if r != nil {
			r.Buf = u.Land(r.Buf)
		}
		return c.Engine.Pair(c.Ctx, op, s, r, none)
	})
}

// Recv is engine.Recv.
func (k *Checker) Recv(c *Comm, a *engine.RecvArgs, st *engine.Status) *fault.Fault {
	u, f := k.Book(c, RecvUse(a))
	if f != nil {
		*st = engine.Status{Source: -1, Tag: -1}
		return f
	}
	defer k.End(u)
	return c.Engine.Recv(c.Ctx, a, st)
}

// Irecv is engine.Irecv.
func (k *Checker) Irecv(c *Comm, a *engine.RecvArgs) (engine.Handle, *fault.Fault) {
	return k.Started(c, RecvUse(a), func(u *Use) engine.Handle {
		a.Buf = u.Land(a.Buf)
		return c.Engine.Irecv(c.Ctx, a)
	})
}

// Imrecv is engine.Imrecv.
func (k *Checker) Imrecv(c *Comm, m *engine.Message, a *engine.RecvArgs) (engine.Handle, *fault.Fault) {
	u := BufUse(a.Op, -1, -1, nil, []buffer.Buf{a.Buf})
	return k.Started(c, u, func(u *Use) engine.Handle {
		a.Buf = u.Land(a.Buf)
		return c.Engine.Imrecv(c.Ctx, m, a)
	})
}

// Started leaves the buffers booked until what start gives is completed, and looks then
// whether the program has written them meanwhile.
func (k *Checker) Started(c *Comm, use Use, start func(u *Use) engine.Handle) (engine.Handle, *fault.Fault) {
	u, f := k.Book(c, use)
	if f != nil {
		return engine.Handle{}, f
	}
	u.hash()
	h := start(u)
	u.watch(h)
	k.Until(u, h)
	return h, nil
}
