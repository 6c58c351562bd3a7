// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
	"gompi/transport"
)

// Connect makes a fast box to the peer in the peer's segment, unless there is one. It owns
// the contact's descriptors: the segment's is closed on return, the bell's by Release. If
// the peer's segment lacks memory, the error says how much was needed. The peer need not
// have opened its transport yet.
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
	if c != nil && c.state != connUp && !c.cutPending {
		closeFD(ct.Bell)
		return c.slot, fmt.Errorf("shm: process %v: %w", ct.Proc, c.err)
	}
	if c != nil && c.out.box != nil {
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
	t.joinDuplex(c)
	t.events.forget(func(e *transport.Event) bool { return e.Slot == c.slot && e.Kind == transport.EvUp })
	c.out.edge = newEdge(t.env.Self, ct.Proc)
	if c.cutPending {
		c.cutPending = false
		c.out.last(kindCut)
	}
	return c.slot, nil
}

// attach allocates a directory entry and its fast box in the peer's segment. If this
// process dies inside it, the entry stays claimed until the peer learns of the death.
func (t *Transport) attach(ct wire.Contact) (outRing, error) {
	headMem, err := mapHead(ct.Segment, ct.Proc)
	if err != nil {
		return outRing{}, err
	}
	head := viewHead(headMem)
	o, err := t.makeBox(ct.Segment, head)
	if err != nil {
		segment.Unmap(headMem)
		return outRing{}, err
	}
	o.headMem, o.head, o.bell = headMem, head, ct.Bell
	wake(head, ct.Bell)
	return o, nil
}

// makeBox checks for memory before it claims an entry: to claim one and release it again is
// useless while memory is short.
func (t *Transport) makeBox(fd int, head *headWords) (o outRing, err error) {
	err = t.memory.Take(pageBytes+t.shape.firstBytes(), func(int64) (err error) {
		o, err = t.makeBoxTaken(fd, head)
		return err
	})
	return o, err
}

const _ = uint(segment.ReserveStep - pageBytes - boxSlots - maxSlots*slotBytes - firstData) // one piece

func (t *Transport) makeBoxTaken(fd int, head *headWords) (outRing, error) {
	span, err := segment.Span(fd)
	if err != nil {
		return outRing{}, err
	}
	grid := gridOf(span, t.shape)
	dirMem, err := segment.Map(fd, dirBase, dirBytes, true)
	if err != nil {
		return outRing{}, err
	}
	defer segment.Unmap(dirMem)
	entries := viewDirectory(dirMem)
	i, u, err := t.claim(fd, head, entries, grid.n)
	if err != nil {
		return outRing{}, err
	}
	e := &entries[i]
	g := t.shape.within(span)
	o, err := t.fillBox(fd, grid.box(i), e, u, g)
	if err != nil {
		if segment.Release(fd, grid.box(i), g.bytes()) == nil {
			e.job.Store(0)
			e.word.CompareAndSwap(uint64(u), uint64(useOf(u.generation(), entryFree, 0)))
			head.free.CompareAndSwap(0, i+1)
		}
		return outRing{}, err
	}
	if !e.word.CompareAndSwap(uint64(u), uint64(useOf(u.generation(), entryReady, u.serial()))) {
		segment.Unmap(o.mem)
		return outRing{}, fmt.Errorf("directory entry %d was taken back: %w", i, transport.ErrUnavailable)
	}
	head.published.Add(1)
	return o, nil
}

// fillBox gives memory to a claimed fast box, maps it and writes its entry.
func (t *Transport) fillBox(fd int, off int64, e *entry, u use, g shape) (outRing, error) {
	if err := segment.ReserveTaken(fd, off, g.firstBytes()); err != nil {
		return outRing{}, err
	}
	m, err := segment.Map(fd, off, g.bytes(), true)
	if err != nil {
		return outRing{}, err
	}
	e.slots, e.data, e.eager = g.slots, g.data, g.eager
	e.nonceAddr, e.nonce = addrOfWord(&t.nonce), t.nonce
	t.turns++
	e.turn = t.turns
	return newOutRing(m, g, u, t.thresholds), nil
}

// claimTries bounds how often other processes may be faster.
const claimTries = 64

// claim takes a free entry among the first n: one near an entry that was free lately, else
// one that was never used. Other processes write these numbers, so they are not trusted.
func (t *Transport) claim(fd int, head *headWords, entries []entry, n uint32) (i uint32, u use, err error) {
	const perPage = pageBytes / entryBytes
	for range claimTries {
		if h := head.free.Load(); h > 0 && h <= n {
			// The owner reads no entry from claimed on.
			used := min(n, head.claimed.Load())
			if i, u, err = t.claimAmong(fd, entries, (h-1)&^(perPage-1), perPage, used); err != nil || u != 0 {
				return i, u, err
			}
			head.free.CompareAndSwap(h, 0)
		}
		if i = head.claimed.Add(1) - 1; i >= n {
			head.claimed.Store(n) // or it would wrap one day
			break
		}
		if _, u, err = t.claimAmong(fd, entries, i, 1, n); err != nil || u != 0 {
			return i, u, err
		}
	}
	for first := uint32(0); first < n; first += perPage {
		if i, u, err = t.claimAmong(fd, entries, first, perPage, n); err != nil || u != 0 {
			return i, u, err
		}
	}
	return 0, 0, fmt.Errorf("directory of %d connections is full: %w", n, transport.ErrUnavailable)
}

// claimAmong takes one of count entries of a page, if it lies before end. A use of 0 means
// that none is free.
func (t *Transport) claimAmong(fd int, entries []entry, first, count, end uint32) (i uint32, u use, err error) {
	page := (dirBase + int64(first)*entryBytes) &^ (pageBytes - 1)
	if err := segment.ReserveTaken(fd, page, pageBytes); err != nil {
		return 0, 0, err
	}
	for i := first; i < min(first+count, end); i++ {
		w := &entries[i].word
		if old := use(w.Load()); old.state() == entryFree {
			u := useOf(old.generation(), entryClaimed, t.env.Self.Serial)
			if w.CompareAndSwap(uint64(old), uint64(u)) {
				entries[i].job.Store(uint64(t.env.Self.Job))
				return i, u, nil
			}
		}
	}
	return 0, 0, nil
}

// Fail says that the peer's process has died.
func (t *Transport) Fail(s transport.Slot) {
	c := t.conn(s)
	if c == nil || c.state == connDown {
		return
	}
	c.gone = true
	t.fail(c, transport.ErrPeerGone)
}

// Cut ends the connection to a living peer and tells the peer.
func (t *Transport) Cut(s transport.Slot, why error) {
	c := t.conn(s)
	if c == nil || c.state == connDown {
		return
	}
	c.cutPending = false // if it was cut before: this process cannot tell the peer
	t.cut(c, why)
}

func (t *Transport) cut(c *conn, why error) {
	if c.state != connUp {
		return
	}
	c.readClosed, c.cutPending = true, c.out.box == nil
	c.out.last(kindCut)
	t.fail(c, why)
}

// fail begins the end of a connection. Poll still delivers complete messages (not after a
// breach of protocol), ends the transfers, and reports EvDown last.
func (t *Transport) fail(c *conn, err error) {
	if c.state != connUp {
		return
	}
	c.state, c.err = connFailing, err
	t.work.failing = append(t.work.failing, c)
	t.work.busy = true
}

// Release drops a peer. A living one is told, and gets EvDown.
func (t *Transport) Release(s transport.Slot) {
	c := t.conn(s)
	if c == nil {
		return
	}
	t.drop(c)
	t.work.failing = filter(t.work.failing, func(x *conn) bool { return x != c })
	t.events.forget(func(e *transport.Event) bool { return e.Slot == s })
	t.detach(c)
	if t.byProc[c.proc] == c {
		delete(t.byProc, c.proc)
	}
	t.conns[s] = nil
	t.dir.rescan()
	t.reapRetired()
}

// detach leaves both fast boxes of a peer.
func (t *Transport) detach(c *conn) {
	if in := c.in; in != nil {
		t.removeRing(in)
		c.in, c.out.back = nil, nil
		// Payloads of the last Poll may lie in it.
		z := retired{c.proc, in.mem, in.entry, in.gen}
		if c.gone || in.box.left(in.gen) {
			t.reclaimable = append(t.reclaimable, z)
		} else {
			t.retired = append(t.retired, z)
		}
	}
	if c.out.box != nil {
		if !c.gone {
			c.out.bye()
		}
		if c.out.streaming {
			t.streamingRings--
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
