// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"

	"gompi/internal/segment"
	"gompi/internal/wire"
	"gompi/transport"
)

// mapHead maps and checks the head page of a process's segment.
func mapHead(fd int, owner wire.ProcID) ([]byte, error) {
	m, err := segment.Map(fd, 0, pageBytes, true)
	if err != nil {
		return nil, fmt.Errorf("shm: head page: %w", err)
	}
	head := [segment.HeadShm]byte(m) // a copy: the peer may write there
	if err := segment.CheckHead(&head, owner); err != nil {
		segment.Unmap(m)
		return nil, fmt.Errorf("shm: %w: %w", transport.ErrProtocol, err)
	}
	return m, nil
}

// directory is this process's list of the lanes that lead to it.
type directory struct {
	fd      int
	own     *headWords
	mem     []byte
	entries []entry

	seen     uint32   // published, when we last looked
	scanned  uint32   // entries looked at once
	reserved int64    // bytes of the directory that have memory
	holes    []uint32 // scanned, but not ready or not yet to be used
}

func (d *directory) open(fd int, own *headWords) error {
	m, err := segment.Map(fd, dirBase, dirBytes, true)
	if err != nil {
		return fmt.Errorf("shm: directory: %w", err)
	}
	*d = directory{fd: fd, own: own, mem: m, entries: viewDirectory(m), reserved: segment.InitialBytes - dirBase}
	return nil
}

func (d *directory) close() { segment.Unmap(d.mem) }

// changed reports whether scan may find something. Polled all the time.
func (d *directory) changed() bool { return d.own.published.Load() != d.seen }

// again makes the next Poll scan: an entry that had to wait may be usable.
func (d *directory) again() {
	if len(d.holes) > 0 {
		d.seen--
	}
}

// scanDirectory takes in the lanes that have become ready.
func (t *Transport) scanDirectory() {
	d := &t.dir
	d.seen = t.own.published.Load()
	holes := d.holes
	d.holes = nil
	for _, i := range holes {
		t.lookAt(i)
	}
	for claimed := min(t.own.claimed.Load(), dirCap); d.scanned < claimed; d.scanned++ {
		// Reading a page that its claimer has not reserved would make the
		// kernel allocate it, and kill us where memory is out.
		if end := (int64(d.scanned) + 1) * entryBytes; end > d.reserved {
			if t.memory.Reserve(d.fd, dirBase+d.reserved, pageBytes) != nil {
				d.seen-- // no memory now: look again
				return
			}
			d.reserved += pageBytes
		}
		t.lookAt(d.scanned)
	}
	t.bury()
}

// lookAt takes entry i in. An entry that is not ready is kept for later: its
// sender may be dead or only slow. One that makes no sense is forgotten.
func (t *Transport) lookAt(i uint32) {
	e := &t.dir.entries[i]
	if e.state.Load() != entryReady {
		t.dir.holes = append(t.dir.holes, i)
		return
	}
	proc := wire.ProcID{Job: wire.JobID(e.job), Serial: e.serial}
	off, g := e.off, shape{e.slots, e.data, e.eager}
	nonceAddr, nonce := e.nonceAddr, e.nonce
	if !g.valid() || off < lanes || off%pageBytes != 0 || off > segment.SpanBytes-uint64(g.bytes()) {
		return
	}
	c := t.byProc[proc]
	if c != nil && (c.in != nil || c.state != connUp) {
		// The peer has released us and is back before we have seen the end
		// of its last connection.
		t.dir.holes = append(t.dir.holes, i)
		return
	}
	m, err := segment.Map(t.env.Segment, int64(off), g.bytes(), true)
	if err != nil {
		t.dir.holes = append(t.dir.holes, i)
		return
	}
	if c == nil {
		c = t.newConn(proc)
		t.events.push(transport.Event{Kind: transport.EvUp, Slot: c.slot, Proc: proc})
	}
	c.nonceAddr, c.nonce = nonceAddr, nonce
	c.in = newInRing(t, c, m, int64(off), g)
	c.out.back = c.in
	c.in.edge = newEdge(proc, t.env.Self)
	t.addRing(c.in)
}

// retired is a lane of our own segment that we have released.
type retired struct {
	mem []byte
	off int64
}

// bury finds the retired lanes that their senders have left.
func (t *Transport) bury() {
	keep := t.zombies[:0]
	for _, z := range t.zombies {
		if viewLaneWords(z.mem).closed.Load() != 0 {
			t.doomed = append(t.doomed, z)
		} else {
			keep = append(keep, z)
		}
	}
	clear(t.zombies[len(keep):])
	t.zombies = keep
}

// freeDoomed unmaps lanes and gives their pages back, when no payload in them
// is valid any more. The address space is not given out again, so a late
// writer harms nobody.
func (t *Transport) freeDoomed() {
	for _, l := range t.doomed {
		n := int64(len(l.mem))
		segment.Unmap(l.mem)
		segment.Release(t.env.Segment, l.off, n)
	}
	clear(t.doomed)
	t.doomed = t.doomed[:0]
}
