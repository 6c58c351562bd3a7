// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gompi/internal/segment"
	"gompi/internal/wire"
	"gompi/transport"
)

// Connect makes a lane to the peer in the peer's segment, unless there is one.
// It owns the contact's descriptors from the call on: the segment's is closed
// on return, the bell's by Release. Lack of memory in the peer's segment is an
// error that says how much was needed. The peer need not have opened its
// transport yet.
func (t *Transport) Connect(ct wire.Contact) (transport.Slot, error) {
	defer closeFD(ct.Segment)
	if !ct.SameHost || ct.Segment < 0 || ct.Bell < 0 {
		closeFD(ct.Bell)
		return 0, fmt.Errorf("shm: process %v gave no segment: %w", ct.Proc, transport.ErrUnreachable)
	}
	if t.dir.changed() {
		t.scanDirectory()
	}
	c := t.byProc[ct.Proc]
	if c != nil && c.state != connUp && !c.untold {
		closeFD(ct.Bell)
		return c.slot, fmt.Errorf("shm: process %v: %w", ct.Proc, c.err)
	}
	if c != nil && c.out.lane != nil {
		closeFD(ct.Bell)
		return c.slot, nil
	}
	out, err := t.attach(ct)
	if err != nil {
		closeFD(ct.Bell)
		return 0, fmt.Errorf("shm: %w", err)
	}
	if c == nil {
		c = t.newConn(ct.Proc)
	}
	c.out, c.pid = out, ct.PID
	c.out.back = c.in
	t.events.forget(func(e *transport.Event) bool { return e.Slot == c.slot && e.Kind == transport.EvUp })
	c.out.edge = newEdge(t.env.Self, ct.Proc)
	if c.untold {
		c.untold = false
		c.out.last(kindCut)
	}
	return c.slot, nil
}

// attach gets a range and a directory entry in the peer's segment. If we die
// anywhere in here the peer sees an entry that never becomes ready.
func (t *Transport) attach(ct wire.Contact) (outRing, error) {
	headMem, err := mapHead(ct.Segment, ct.Proc)
	if err != nil {
		return outRing{}, err
	}
	head := viewHead(headMem)
	o, err := t.makeLane(ct.Segment, head)
	if err != nil {
		segment.Unmap(headMem)
		return outRing{}, err
	}
	o.headMem, o.head, o.bell = headMem, head, ct.Bell
	wake(head, ct.Bell)
	return o, nil
}

func (t *Transport) makeLane(fd int, head *headWords) (outRing, error) {
	g := t.shape
	// What is claimed is not given back: nothing is, while memory is short.
	if err := t.memory.Check(pageBytes + g.firstBytes()); err != nil {
		return outRing{}, err
	}
	i := head.claimed.Add(1) - 1
	if i >= dirCap {
		head.claimed.Store(dirCap) // or it would wrap one day
		return outRing{}, fmt.Errorf("directory of %d connections is full: %w", dirCap, transport.ErrUnavailable)
	}
	n := g.bytes()
	span, err := segment.Span(fd)
	if err != nil {
		return outRing{}, err
	}
	at, ok := claimBytes(&head.bump, uint64(n), uint64(max(0, span-lanes)))
	if !ok || at%pageBytes != 0 {
		return outRing{}, fmt.Errorf("no room for %d bytes after %d of %d: %w", n, at, span-lanes, transport.ErrUnavailable)
	}
	off := int64(lanes) + int64(at)
	entryOff := int64(dirBase) + int64(i)*entryBytes
	entryPage := entryOff &^ (pageBytes - 1)
	if err := t.memory.Reserve(fd, entryPage, pageBytes); err != nil {
		return outRing{}, err
	}
	if err := t.memory.Reserve(fd, off, g.firstBytes()); err != nil {
		return outRing{}, err
	}
	dirMem, err := segment.Map(fd, entryPage, pageBytes, true)
	if err != nil {
		return outRing{}, err
	}
	defer segment.Unmap(dirMem)
	m, err := segment.Map(fd, off, n, true)
	if err != nil {
		return outRing{}, err
	}
	e := viewEntry(dirMem[entryOff-entryPage:])
	e.job, e.serial = uint64(t.env.Self.Job), t.env.Self.Serial
	e.off, e.slots, e.data, e.eager = uint64(off), g.slots, g.data, g.eager
	e.nonceAddr, e.nonce = addrOfWord(&t.nonce), t.nonce
	e.state.Store(entryReady)
	head.published.Add(1)
	return newOutRing(m, g), nil
}

// claimBytes takes n bytes from a bump allocator, if they end at most at limit.
// Anyone may have written the number.
func claimBytes(bump *atomic.Uint64, n, limit uint64) (at uint64, ok bool) {
	for {
		at = bump.Load()
		if at > limit || n > limit-at {
			return at, false
		}
		if bump.CompareAndSwap(at, at+n) {
			return at, true
		}
	}
}

// Fail tells that the peer's process is dead.
func (t *Transport) Fail(s transport.Slot) {
	c := t.conn(s)
	if c == nil || c.state == connDown {
		return
	}
	c.gone = true
	t.fail(c, transport.ErrPeerGone)
}

// Cut ends the connection to a living peer and tells it.
func (t *Transport) Cut(s transport.Slot, why error) {
	c := t.conn(s)
	if c == nil || c.state == connDown {
		return
	}
	c.untold = false // if it was cut before: there is no way to tell the peer
	t.cut(c, why)
}

func (t *Transport) cut(c *conn, why error) {
	if c.state != connUp {
		return
	}
	c.deaf, c.untold = true, c.out.lane == nil
	c.out.last(kindCut)
	t.fail(c, why)
}

// fail begins the end of a connection: Poll still delivers what came whole
// (not after a breach of protocol), ends the transfers, then says EvDown.
func (t *Transport) fail(c *conn, err error) {
	if c.state != connUp {
		return
	}
	c.state, c.err = connFailing, err
	t.chores.failing = append(t.chores.failing, c)
	t.chores.busy = true
}

// Release forgets a peer. A living one is told, and sees EvDown.
func (t *Transport) Release(s transport.Slot) {
	c := t.conn(s)
	if c == nil {
		return
	}
	t.drop(c)
	t.chores.failing = filter(t.chores.failing, func(x *conn) bool { return x != c })
	t.events.forget(func(e *transport.Event) bool { return e.Slot == s })
	t.detach(c)
	if t.byProc[c.proc] == c {
		delete(t.byProc, c.proc)
	}
	t.conns[s] = nil
	t.dir.again()
	t.bury()
}

// detach leaves both lanes of a peer.
func (t *Transport) detach(c *conn) {
	if in := c.in; in != nil {
		t.removeRing(in)
		c.in, c.out.back = nil, nil
		// Payloads of the last Poll may lie in it.
		if c.gone || c.bye || in.lane.closed.Load() != 0 {
			t.doomed = append(t.doomed, retired{in.mem, in.off})
		} else {
			t.zombies = append(t.zombies, retired{in.mem, in.off})
		}
	}
	if c.out.lane != nil {
		if !c.gone {
			c.out.bye()
		}
		c.out.detach()
		c.out = outRing{}
	}
}

func closeFD(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}

func appendOnce(s []*conn, c *conn) []*conn {
	for _, x := range s {
		if x == c {
			return s
		}
	}
	return append(s, c)
}
