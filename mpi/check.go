// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"slices"
	"sync"

	"gompi/collectives"
	"gompi/internal/buffer"
	"gompi/internal/calls"
	"gompi/internal/engine"
)

// checker holds the costly checks of GOMPI_CHECK=1: no buffer is used by two
// operations of which one writes it, the ranks of a collective call agree
// (agree), and no user operation calls the library. Without them a communicator has no checker.
type checker struct {
	mu     sync.Mutex
	uses   []*use
	inside insideOps
}

// use is one operation with its buffers.
type use struct {
	op        calls.Name
	comm      string
	peer, tag int
	reads     []buffer.Buf
	writes    []buffer.Buf
	h         engine.Handle // null as long as the call that starts it runs
	engine    *engine.Engine
}

func (u *use) String() string {
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
func (u *use) over() bool { return !u.h.IsNull() && !u.engine.Alive(u.h) }

func sendUse(a *engine.SendArgs) use {
	return use{op: a.Op, peer: int(a.Dest), tag: int(a.Tag), reads: []buffer.Buf{a.Buf}}
}

func recvUse(a *engine.RecvArgs) use {
	return use{op: a.Op, peer: int(a.Source), tag: int(a.Tag), writes: []buffer.Buf{a.Buf}}
}

func collUse(a *engine.CollArgs) use {
	u := use{op: a.Op, peer: ProcNull, tag: -1}
	switch {
	case a.InBlocks != nil:
		// The call's own list ends with it, the buffers are in use until Wait.
		u.reads, u.writes = a.InBlocks, slices.Clone(a.OutBlocks)
	case a.Args.Op == collectives.OpBcast && a.Args.Root == a.Args.Rank && !a.Args.RootRemote:
		u.reads = []buffer.Buf{a.Out}
	default:
		u.reads, u.writes = []buffer.Buf{a.In}, []buffer.Buf{a.Out}
	}
	return u
}

// begin books the buffers of an operation, or says who else uses them.
func (k *checker) begin(c *Comm, u use) (*use, error) {
	booked, err := k.book(c, u)
	if err != nil {
		return nil, c.raise(err)
	}
	return booked, nil
}

func (k *checker) book(c *Comm, u use) (*use, *Error) {
	u.comm, u.engine = c.Name(), c.core.Engine
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.uses[:0]
	var clash *use
	for _, v := range k.uses {
		if v.over() {
			continue
		}
		kept = append(kept, v)
		if clash == nil && (meet(u.writes, v.writes) || meet(u.writes, v.reads) || meet(u.reads, v.writes)) {
			clash = v
		}
	}
	clear(k.uses[len(kept):])
	k.uses = kept
	if clash != nil {
		return nil, c.newError(ErrInUse, u.op, u.peer, u.tag, -1, -1, "",
			fmt.Errorf("its %d bytes overlap the %d bytes of %v, which is not complete", u.bytes(), clash.bytes(), clash))
	}
	k.uses = append(k.uses, &u)
	return &u, nil
}

// bytes is how much the operation reads or writes, whichever is more.
func (u *use) bytes() int64 {
	var n [2]int64
	for i, bufs := range [...][]buffer.Buf{u.reads, u.writes} {
		for _, b := range bufs {
			n[i] += b.Bytes()
		}
	}
	return max(n[0], n[1])
}

// meet reports whether a buffer of one list shares a byte with one of the other.
func meet(a, b []buffer.Buf) bool {
	for _, x := range a {
		if slices.ContainsFunc(b, x.Overlaps) {
			return true
		}
	}
	return false
}

// until leaves the buffers booked until a request is completed.
func (k *checker) until(u *use, h engine.Handle) {
	if h.IsNull() {
		k.end(u)
		return
	}
	k.mu.Lock()
	u.h = h
	k.mu.Unlock()
}

// end gives the buffers of a blocking call back.
func (k *checker) end(u *use) {
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

func (k *checker) send(c *Comm, a *engine.SendArgs) error {
	u, err := k.begin(c, sendUse(a))
	if err != nil {
		return err
	}
	defer k.end(u)
	if f := c.core.Engine.Send(c.core.Ctx, a); f != nil {
		return c.errorOf(a.Op, a.Dest, a.Tag, f)
	}
	return nil
}

func (k *checker) isend(c *Comm, a *engine.SendArgs) Request {
	u, err := k.begin(c, sendUse(a))
	if err != nil {
		return c.failedRequest(a.Op, err)
	}
	h := c.core.Engine.Isend(c.core.Ctx, a)
	k.until(u, h)
	return Request{h}
}

func (k *checker) recv(c *Comm, a *engine.RecvArgs) (Status, error) {
	u, err := k.begin(c, recvUse(a))
	if err != nil {
		return emptyStatus(), err
	}
	defer k.end(u)
	var st engine.Status
	f := c.core.Engine.Recv(c.core.Ctx, a, &st)
	if f != nil {
		err = c.errorOf(a.Op, a.Source, a.Tag, f)
	}
	return statusOf(&st, a.Buf.Type.Size), err
}

func (k *checker) irecv(c *Comm, a *engine.RecvArgs) Request {
	u, err := k.begin(c, recvUse(a))
	if err != nil {
		return c.failedRequest(a.Op, err)
	}
	h := c.core.Engine.Irecv(c.core.Ctx, a)
	k.until(u, h)
	return Request{h}
}
