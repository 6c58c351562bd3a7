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

// directory is a process's list of the fast boxes that lead to it.
type directory struct {
	fd      int
	own     *headWords
	mem     []byte
	entries []entry
	grid    grid

	seen       uint32               // published, at the last scan
	scanned    uint32               // entries that were scanned once
	reserved   int64                // bytes of the directory that have memory
	holes      []uint32             // scanned entries that are free, or not ready to be used
	mapRetries map[uint32]*mapRetry // by entry, of holes
	alarm      alarm
}

func (d *directory) open(fd, bell int, own *headWords, g grid) error {
	m, err := segment.Map(fd, dirBase, dirBytes, true)
	if err != nil {
		return fmt.Errorf("shm: directory: %w", err)
	}
	d.fd = fd
	d.own = own
	d.mem = m
	d.entries = viewDirectory(m)
	d.grid = g
	d.reserved = segment.InitialBytes - dirBase
	d.alarm.own, d.alarm.bell = own, bell
	return nil
}

func (d *directory) close() {
	d.alarm.close()
	segment.Unmap(d.mem)
}

// changed reports whether a scan may find something. Poll calls it every time.
func (d *directory) changed() bool { return d.own.published.Load() != d.seen }

// rescan makes the next Poll scan: an entry that had to wait may be usable.
func (d *directory) rescan() {
	if len(d.holes) > 0 {
		d.seen--
	}
}

// freeEntry frees an entry whose fast box reads as zeros.
func (d *directory) freeEntry(i, generation uint32) {
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
		// Reading a page that its claimer has not reserved would make the kernel allocate
		// it, and kill this process if memory is out.
		if end := (int64(d.scanned) + 1) * entryBytes; end > d.reserved {
			if t.memory.Reserve(d.fd, dirBase+d.reserved, pageBytes) != nil {
				d.seen-- // there is no memory now; look again
				break
			}
			d.reserved += pageBytes
		}
		d.holes = append(d.holes, d.scanned)
	}
	if seen := d.ready(nil); len(seen) > 0 {
		// An earlier connection of a process may have become ready after this scan passed
		// it, and before a later one that the scan has found.
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

// ready lists the holes that are ready. If only is not nil, it looks again, at the
// processes in only. It publishes a free entry for senders that look for one.
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
		if d.mapRetries[i].abandoned(u) {
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

// earliest keeps the first connection of each process.
func earliest(list []comer) []comer {
	slices.SortFunc(list, func(x, y comer) int {
		return cmp.Or(cmp.Compare(x.proc.Job, y.proc.Job), cmp.Compare(x.proc.Serial, y.proc.Serial), cmp.Compare(x.turn, y.turn))
	})
	return slices.CompactFunc(list, func(x, y comer) bool { return x.proc == y.proc })
}

// takeIn makes a ring of a fast box that is ready. A fast box that must wait stays a hole;
// one with impossible values is ignored.
func (t *Transport) takeIn(x comer) {
	d, proc, g := &t.dir, x.proc, x.shape
	c := t.byProc[proc]
	if c != nil && (c.in != nil || c.state != connUp) {
		// The peer has released this process and connects again before this process has
		// seen the end of the last connection.
		return
	}
	if d.mapRetries[x.entry].waits(x.use) {
		return
	}
	usable := g.valid() && g.bytes() <= d.grid.stride
	var m []byte
	if usable {
		var err error
		if m, err = segment.Map(t.env.Segment, d.grid.box(x.entry), g.bytes(), true); err != nil {
			t.retryMap(x, err)
			return
		}
	}
	delete(d.mapRetries, x.entry)
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

// connOf returns the connection to a process that has connected. A new one comes up.
func (t *Transport) connOf(proc wire.ProcID) *conn {
	c := t.byProc[proc]
	if c == nil {
		c = t.newConn(proc)
		t.events.push(transport.Event{Kind: transport.EvUp, Slot: c.slot, Proc: proc})
	}
	return c
}

// retired is a fast box in the own segment that this process has released.
type retired struct {
	proc  wire.ProcID // the process that sent on it
	mem   []byte
	entry uint32
	gen   uint32
}

// reapRetired finds the retired fast boxes that their senders have left.
func (t *Transport) reapRetired() {
	t.reapIf(func(z retired) bool { return viewBoxWords(z.mem).left(z.gen) })
}

func (t *Transport) reapIf(left func(z retired) bool) {
	keep := t.retired[:0]
	for _, z := range t.retired {
		if left(z) {
			t.reclaimable = append(t.reclaimable, z)
		} else {
			keep = append(keep, z)
		}
	}
	clear(t.retired[len(keep):])
	t.retired = keep
}

// freeReclaimable unmaps fast boxes whose senders have left and whose payloads are not
// valid any more. It returns their pages and frees their entries.
func (t *Transport) freeReclaimable() {
	for _, l := range t.reclaimable {
		segment.Unmap(l.mem)
		t.vacate(l.entry, l.gen, int64(len(l.mem)))
	}
	clear(t.reclaimable)
	t.reclaimable = t.reclaimable[:0]
}

// vacate frees a fast box of n bytes with its entry. A fast box that still shows its
// contents is not used again.
func (t *Transport) vacate(i, generation uint32, n int64) {
	if segment.Release(t.env.Segment, t.dir.grid.box(i), n) == nil {
		t.dir.freeEntry(i, generation)
	}
}

// Collect implements transport.Collector. It frees fast boxes that the ended process has
// not left, and entries that it has claimed and not finished, or that could not be mapped.
// An entry without a job may belong to a living process of another job, so it stays.
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
		if its && (u.state() == entryClaimed || u.state() == entryReady && d.mapRetries[i].abandoned(u)) {
			delete(d.mapRetries, i)
			t.vacate(i, u.generation(), d.grid.stride)
		} else {
			d.holes = append(d.holes, i)
		}
	}
}
