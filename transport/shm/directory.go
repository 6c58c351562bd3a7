// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"cmp"
	"fmt"
	"slices"

	"gompi/internal/base/wire"
	"gompi/internal/host/segment"
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

// directory is this process's list of the fast boxes that lead to it.
type directory struct {
	fd      int
	own     *headWords
	mem     []byte
	entries []entry
	grid    grid

	seen     uint32           // published, when we last looked
	scanned  uint32           // entries looked at once
	reserved int64            // bytes of the directory that have memory
	holes    []uint32         // scanned, and in nobody's use, or not yet to be used
	late     map[uint32]*late // of holes, by entry
	alarm    alarm
}

func (d *directory) open(fd, bell int, own *headWords, g grid) error {
	m, err := segment.Map(fd, dirBase, dirBytes, true)
	if err != nil {
		return fmt.Errorf("shm: directory: %w", err)
	}
	d.fd, d.own, d.mem, d.entries, d.grid, d.reserved = fd, own, m, viewDirectory(m), g, segment.InitialBytes-dirBase
	d.alarm.own, d.alarm.bell = own, bell
	return nil
}

func (d *directory) close() {
	d.alarm.close()
	segment.Unmap(d.mem)
}

// changed reports whether scan may find something. Polled all the time.
func (d *directory) changed() bool { return d.own.published.Load() != d.seen }

// again makes the next Poll scan: an entry that had to wait may be usable.
func (d *directory) again() {
	if len(d.holes) > 0 {
		d.seen--
	}
}

// vacate makes an entry free whose fast box reads as zeros.
func (d *directory) vacate(i, generation uint32) {
	d.entries[i].job.Store(0)
	d.entries[i].word.Store(uint64(useOf(generation+1, entryFree, 0)))
	d.holes = append(d.holes, i)
	d.own.free.Store(i + 1)
}

// scanDirectory takes in the fast boxes that have become ready.
func (t *Transport) scanDirectory() {
	d := &t.dir
	d.seen = t.own.published.Load()
	for claimed := min(t.own.claimed.Load(), d.grid.n); d.scanned < claimed; d.scanned++ {
		// Reading a page that its claimer has not reserved would make the
		// kernel allocate it, and kill us where memory is out.
		if end := (int64(d.scanned) + 1) * entryBytes; end > d.reserved {
			if t.memory.Reserve(d.fd, dirBase+d.reserved, pageBytes) != nil {
				d.seen-- // no memory now: look again
				break
			}
			d.reserved += pageBytes
		}
		d.holes = append(d.holes, d.scanned)
	}
	if seen := d.ready(nil); len(seen) > 0 {
		// A peer's earlier connection may have become ready behind this look, and
		// before a later one that it has found.
		for _, x := range earliest(d.ready(seen)) {
			t.takeIn(x)
		}
	}
	t.reapRetired()
}

// comer is an entry that is ready, read once.
type comer struct {
	entry            uint32
	use              use
	proc             wire.ProcID
	shape            shape
	nonceAddr, nonce uint64
	turn             uint64
}

// ready lists the holes that are ready; of the processes in only, if that is not
// nil, and others are looked at again. It notes one that is free for those who
// look for one.
func (d *directory) ready(only []comer) (list []comer) {
	for _, i := range d.holes {
		e := &d.entries[i]
		u := use(e.word.Load())
		if u.state() != entryReady {
			if u.state() == entryFree && d.own.free.Load() == 0 {
				d.own.free.Store(i + 1)
			}
			continue
		}
		if d.late[i].abandoned(u) {
			continue
		}
		x := comer{i, u, wire.ProcID{Job: wire.JobID(e.job.Load()), Serial: u.serial()}, shape{e.slots, e.data, e.eager}, e.nonceAddr, e.nonce, e.turn}
		if only == nil || slices.ContainsFunc(only, func(y comer) bool { return y.proc == x.proc }) {
			list = append(list, x)
		} else {
			d.seen--
		}
	}
	return list
}

// earliest leaves the first connection of each process.
func earliest(list []comer) []comer {
	slices.SortFunc(list, func(x, y comer) int {
		return cmp.Or(cmp.Compare(x.proc.Job, y.proc.Job), cmp.Compare(x.proc.Serial, y.proc.Serial), cmp.Compare(x.turn, y.turn))
	})
	return slices.CompactFunc(list, func(x, y comer) bool { return x.proc == y.proc })
}

// takeIn makes a ring of a fast box that is ready. One that has to wait stays a hole;
// one that makes no sense is forgotten.
func (t *Transport) takeIn(x comer) {
	d, proc, g := &t.dir, x.proc, x.shape
	c := t.byProc[proc]
	if c != nil && (c.in != nil || c.state != connUp) {
		// The peer has released us and is back before we have seen the end
		// of its last connection.
		return
	}
	if d.late[x.entry].waits(x.use) {
		return
	}
	usable := g.valid() && g.bytes() <= d.grid.stride
	var m []byte
	if usable {
		var err error
		if m, err = segment.Map(t.env.Segment, d.grid.box(x.entry), g.bytes(), true); err != nil {
			t.mapLater(x, err)
			return
		}
	}
	delete(d.late, x.entry)
	d.holes = slices.DeleteFunc(d.holes, func(i uint32) bool { return i == x.entry })
	if !usable {
		return
	}
	c = t.connOf(proc)
	c.nonceAddr, c.nonce = x.nonceAddr, x.nonce
	c.in = newInRing(t, c, m, x.entry, x.use, g)
	c.out.back = c.in
	t.joinDuplex(c)
	c.in.edge = newEdge(proc, t.env.Self)
	t.addRing(c.in)
}

// connOf is the connection to a process, which has called; a new one comes up.
func (t *Transport) connOf(proc wire.ProcID) *conn {
	c := t.byProc[proc]
	if c == nil {
		c = t.newConn(proc)
		t.events.push(transport.Event{Kind: transport.EvUp, Slot: c.slot, Proc: proc})
	}
	return c
}

// retired is a fast box of our own segment that we have released.
type retired struct {
	proc  wire.ProcID // who sent on it
	mem   []byte
	entry uint32
	gen   uint32
}

// reapRetired finds the retired fast boxes that their senders have left.
func (t *Transport) reapRetired() {
	t.reapIf(func(z retired) bool { return viewBoxWords(z.mem).left(z.gen) })
}

func (t *Transport) reapIf(left func(z retired) bool) {
	keep := t.zombies[:0]
	for _, z := range t.zombies {
		if left(z) {
			t.doomed = append(t.doomed, z)
		} else {
			keep = append(keep, z)
		}
	}
	clear(t.zombies[len(keep):])
	t.zombies = keep
}

// freeDoomed unmaps fast boxes, gives their pages back, and makes their entries free,
// when no payload in them is valid any more. Their senders touch them no more.
func (t *Transport) freeDoomed() {
	for _, l := range t.doomed {
		segment.Unmap(l.mem)
		t.vacate(l.entry, l.gen, int64(len(l.mem)))
	}
	clear(t.doomed)
	t.doomed = t.doomed[:0]
}

// vacate frees a fast box of n bytes with its entry. A fast box that still shows what was
// in it is not used again.
func (t *Transport) vacate(i, generation uint32, n int64) {
	if segment.Release(t.env.Segment, t.dir.grid.box(i), n) == nil {
		t.dir.vacate(i, generation)
	}
}

// Collect implements transport.Collector: fast boxes that the process has not left are
// free, and entries that it has claimed and not finished, or that could not be mapped. One whose
// claimer has not told its job yet may be that of another job's process, which lives: it
// stays.
func (t *Transport) Collect(proc wire.ProcID) {
	t.reapIf(func(z retired) bool { return z.proc == proc })
	t.scanDirectory()
	d := &t.dir
	holes := d.holes
	d.holes = nil
	for _, i := range holes {
		e := &d.entries[i]
		u := use(e.word.Load())
		its := u.serial() == proc.Serial && wire.JobID(e.job.Load()) == proc.Job
		if its && (u.state() == entryClaimed || u.state() == entryReady && d.late[i].abandoned(u)) {
			delete(d.late, i)
			t.vacate(i, u.generation(), d.grid.stride)
		} else {
			d.holes = append(d.holes, i)
		}
	}
}
