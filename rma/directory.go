// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/kernel"
	"gompi/internal/engine/remote"
	"gompi/mpi"
)

// In a dynamic window each rank has a directory that the others read: words of
// 8 bytes, little-endian.
//
//	0   version: odd while the rest changes
//	1   slots in the table
//	2   description of the table's region
//
// The table has for each slot the address, the length, and the description of
// the attached memory's region; an address of 0 is a free slot. Addresses are
// given out once, so that what others remember of memory that is gone cannot
// be taken for what came after it.
const (
	descWords      = remote.DescBytes / 8
	directoryWords = 2 + descWords
	directoryBytes = 8 * directoryWords
	slotWords      = 2 + descWords
	slotBytes      = 8 * slotWords

	firstSlots   = 16
	mostSlots    = 1 << 24
	addressAlign = 4096
	maxAddress   = math.MaxInt64 / 2
)

// directory is the caller's own.
type directory struct {
	mu      sync.Mutex
	next    int64 // address to give out
	version uint64
	slots   []slot
	table   *remote.Region
	outworn []*remote.Region // tables that others may be reading
}

// slot is memory that is attached, at 0 if there is none.
type slot struct {
	at     int64
	region *remote.Region
}

// attach enters memory. An error may be *wrong, as the error handler must not
// find the directory locked.
func (d *directory) attach(c *core, mem []byte) (Address, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fail := func(err error) (Address, error) { return 0, &wrong{mpi.ErrRMAAttach, err} }
	if c.freed.Load() {
		return 0, &wrong{mpi.ErrWin, errFreed}
	}
	// The same place in a page as in memory: elements are aligned alike.
	at := d.next + addressAlign + addressOf(mem)%addressAlign
	if at > maxAddress-int64(len(mem)) {
		return fail(fmt.Errorf("no address is left"))
	}
	r, err := c.space.Expose(mem, 0)
	if err != nil {
		return fail(err)
	}
	k := slices.IndexFunc(d.slots, func(s slot) bool { return s.at == 0 })
	if k < 0 {
		k = len(d.slots)
		if err := d.grow(c); err != nil {
			r.Close()
			return fail(err)
		}
	}
	d.next = at + int64(len(mem)) + addressAlign - 1
	d.next -= d.next % addressAlign
	d.slots[k] = slot{at, r}
	if err := d.write(c, k); err != nil {
		return 0, err
	}
	return Address(at), nil
}

// detach removes memory. Errors are as those of attach.
func (d *directory) detach(c *core, at Address) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := slices.IndexFunc(d.slots, func(s slot) bool { return at != 0 && s.at == int64(at) })
	if k < 0 {
		return &wrong{mpi.ErrRMAAttach, fmt.Errorf("no memory is attached at address %d", at)}
	}
	d.slots[k].region.Close()
	d.slots[k] = slot{}
	return d.write(c, k)
}

// close gives up what is attached. lost: others may still use it.
func (d *directory) close(lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.slots {
		drop(s.region, lost)
	}
	for _, r := range append(d.outworn, d.table) {
		drop(r, lost)
	}
	d.slots, d.table, d.outworn = nil, nil, nil
}

// grow makes a larger table.
func (d *directory) grow(c *core) error {
	n := max(firstSlots, 2*len(d.slots))
	if n > mostSlots {
		return fmt.Errorf("%d pieces of memory are attached", len(d.slots))
	}
	r, err := c.space.Allocate(int64(n)*slotBytes, 0)
	if err != nil {
		return err
	}
	if d.table != nil {
		d.outworn = append(d.outworn, d.table)
	}
	old := len(d.slots)
	d.table, d.slots = r, append(d.slots, make([]slot, n-old)...)
	for k := range old {
		if err := d.enter(c, k); err != nil {
			return err
		}
	}
	desc := r.Desc()
	words := append([]uint64{uint64(n)}, descToWords(&desc)...)
	return d.change(c, func() error { return c.store(c.region, 1, words) })
}

// write enters slot k for the others to see.
func (d *directory) write(c *core, k int) error {
	return d.change(c, func() error { return d.enter(c, k) })
}

// change does f while the version is odd.
func (d *directory) change(c *core, f func() error) error {
	d.version++
	err := c.store(c.region, 0, []uint64{d.version})
	if err == nil {
		err = f()
	}
	d.version++
	if err == nil {
		err = c.store(c.region, 0, []uint64{d.version})
	}
	return err
}

// enter writes slot k of the table.
func (d *directory) enter(c *core, k int) error {
	words := make([]uint64, slotWords)
	if s := d.slots[k]; s.at != 0 {
		words[0], words[1] = uint64(s.at), uint64(len(s.region.Mem()))
		desc := s.region.Desc()
		copy(words[2:], descToWords(&desc))
	}
	return c.store(d.table, k*slotWords, words)
}

// store writes words of a region of this process, each at once for those who
// read it.
func (c *core) store(r *remote.Region, word int, v []uint64) error {
	desc := r.Desc()
	t, f := c.space.Reach(c.engine.Self(), &desc)
	if f == nil {
		b := mpi.BufOf(v).Core()
		f = t.Accumulate(b, remote.Layout{Off: 8 * int64(word), Type: b.Type, Count: int64(len(v))}, kernel.Replace)
		t.Close()
	}
	return c.fault(opAttach, mpi.ProcNull, f)
}

func descToWords(d *remote.Desc) []uint64 {
	w := make([]uint64, descWords)
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(d[8*i:])
	}
	return w
}

func descOfWords(w []uint64) (d remote.Desc) {
	for i := range descWords {
		binary.LittleEndian.PutUint64(d[8*i:], w[i])
	}
	return d
}

// pieces are what this process knows of another rank's attached memory.
type pieces struct {
	mu      sync.Mutex
	version uint64
	all     []piece // in the order of their addresses
}

// piece is attached memory of another rank.
type piece struct {
	*remote.Target
	at   int64
	desc remote.Desc
}

// find finds the memory that holds all of the addresses [lo, hi).
func (x *pieces) find(w *Window, op fault.Call, t *target, lo, hi int64) (piece, bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if version, ok := t.directoryVersion(); ok && version != x.version {
		if err := x.refresh(w, op, t); err != nil {
			return piece{}, false, err
		}
	}
	if p, ok := x.look(lo, hi); ok {
		return p, true, nil
	}
	if err := x.refresh(w, op, t); err != nil {
		return piece{}, false, err
	}
	p, ok := x.look(lo, hi)
	return p, ok, nil
}

// directoryVersion reads the version if that costs nothing.
func (t *target) directoryVersion() (version uint64, ok bool) {
	if !t.CPU() {
		return 0, false
	}
	return remote.LoadWord(t.Mapped(), 0)
}

func (x *pieces) look(lo, hi int64) (piece, bool) {
	k, found := slices.BinarySearchFunc(x.all, lo, func(p piece, at int64) int { return int(min(max(p.at-at, -1), 1)) })
	if !found {
		k--
	}
	if k < 0 || hi > x.all[k].at+x.all[k].Bytes() {
		return piece{}, false
	}
	return x.all[k], true
}

// pending are the pieces with accesses that are not complete.
func (x *pieces) pending(how completion) (list []piece) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.all {
		if how.pending(p.Target) {
			list = append(list, p)
		}
	}
	return list
}

// refresh reads the directory of a rank. What is known already stays.
func (x *pieces) refresh(w *Window, op fault.Call, t *target) error {
	head := make([]uint64, directoryWords)
	for {
		if err := w.load(op, t.rank, t.Target, head); err != nil {
			return err
		}
		version := head[0]
		if version == 0 {
			return nil // nothing was ever attached
		}
		var table []uint64
		if version%2 == 0 {
			var err error
			if table, err = w.loadTable(op, t, head); err != nil {
				return err
			}
			if err := w.load(op, t.rank, t.Target, head[:1]); err != nil {
				return err
			}
		}
		if version%2 == 0 && head[0] == version {
			x.version = version
			x.adopt(w, t, table)
			return nil
		}
		if _, err := w.usable(op); err != nil {
			return err
		}
	}
}

// loadTable reads the table that a directory names.
func (w *Window) loadTable(op fault.Call, t *target, head []uint64) ([]uint64, error) {
	c := w.core
	slots := head[1]
	desc := descOfWords(head[2:])
	if slots > mostSlots {
		return nil, fail(c.comm, mpi.ErrUnreachable, op, t.rank, -1, -1, "", fmt.Errorf("its directory has %d slots", slots))
	}
	rt, f := c.space.Reach(t.Proc(), &desc)
	if f != nil {
		return nil, c.fault(op, t.rank, f)
	}
	rt.SetRank(c.ctx, int32(t.rank))
	defer rt.Close()
	if rt.Bytes() != int64(slots)*slotBytes {
		return nil, fail(c.comm, mpi.ErrUnreachable, op, t.rank, rt.Bytes(), int64(slots)*slotBytes, "bytes of directory", nil)
	}
	table := make([]uint64, slots*slotWords)
	return table, w.load(op, t.rank, rt, table)
}

// load reads words from the beginning of a target, each at once.
func (w *Window) load(op fault.Call, rank int, t *remote.Target, into []uint64) error {
	b := mpi.BufOf(into)
	f := t.GetAccumulate(buffer.Buf{}, b.Core(), remote.Layout{Type: b.Core().Type, Count: int64(len(into))}, kernel.NoOp)
	if f == nil {
		f = t.Flush(w.user)
	}
	return w.core.fault(op, rank, f)
}

// adopt makes x what a table says. Memory that cannot be reached has just been
// detached.
func (x *pieces) adopt(w *Window, t *target, table []uint64) {
	known := map[remote.Desc]piece{}
	for _, p := range x.all {
		known[p.desc] = p
	}
	var all []piece
	for s := range slices.Chunk(table, slotWords) {
		at, desc := int64(s[0]), descOfWords(s[2:])
		if at <= 0 {
			continue
		}
		p, ok := known[desc]
		if !ok {
			rt, f := w.core.space.Reach(t.Proc(), &desc)
			if f != nil {
				continue
			}
			rt.SetRank(w.core.ctx, int32(t.rank))
			p = piece{rt, at, desc}
		}
		delete(known, desc)
		if p.at == at && p.Bytes() == int64(s[1]) && at <= maxAddress-p.Bytes() {
			all = append(all, p)
		}
	}
	for _, p := range known {
		p.Close()
	}
	slices.SortFunc(all, func(p, q piece) int { return int(min(max(p.at-q.at, -1), 1)) })
	x.all = all
}

// close gives all up.
func (x *pieces) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.all {
		p.Close()
	}
	x.all = nil
}
