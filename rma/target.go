// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/data/buffer"
	"gompi/internal/data/kernel"
	"gompi/internal/engine/remote"
	"gompi/internal/host/mem"
	"gompi/mpi"
)

// target is the memory of one rank as this process reaches it. Immutable but
// for what guards itself.
type target struct {
	mem        []byte // if it is mapped; else the accesses go by way of Target
	unit, last int64  // of offsets: bytes, and the largest one
	atomics    bool   // the processor's are those of the memory's atomicity domain
	// open holds the epochs that admit accesses, and counts accesses under way in
	// steps of oneAccess.
	open atomic.Uint64

	*remote.Target // own
	own            remote.Target
	rank           int
	size           int64
	first          sync.Mutex // held by the first access after LockAll

	pieces *pieces // of a dynamic window, else nil
}

// reach finds a rank's memory, on first use with the help of the operating
// system.
func (c *core) reach(op fault.Call, rank int) (*target, error) {
	if err := c.checkRank(op, rank); err != nil {
		return nil, err
	}
	if t := c.targets[rank].Load(); t != nil {
		return t, nil
	}
	c.reachMu.Lock()
	defer c.reachMu.Unlock()
	if t := c.targets[rank].Load(); t != nil {
		return t, nil
	}
	if c.freed.Load() {
		return nil, c.gone(op)
	}
	unit, bytes, desc := c.table.told(rank)
	t := &target{rank: rank, unit: unit}
	t.Target = &t.own
	if f := c.space.ReachInto(t.Target, c.ctx.Members.At(rank), desc); f != nil {
		return nil, c.fault(op, rank, f)
	}
	t.SetRank(c.ctx, int32(rank))
	t.size = t.Bytes()
	switch {
	case c.flavor == FlavorDynamic:
		t.pieces = new(pieces)
	case t.size != bytes:
		t.Close()
		return nil, fail(c.comm, mpi.ErrUnreachable, op, rank, t.size, bytes, "bytes", fmt.Errorf("its memory is not what it said"))
	default:
		t.mem, t.atomics, t.last = t.Mapped(), t.CPU(), t.size/t.unit
	}
	if c.ending.Load() {
		t.open.Store(ending)
	}
	if t.mem == nil {
		c.distant = append(c.distant, t)
	}
	c.targets[rank].Store(t)
	return t, nil
}

// oneAccess is what an access under way adds to target.open.
const oneAccess = 1 << 8

// leave ends an access.
func (t *target) leave() { t.open.Add(^uint64(oneAccess - 1)) }

// quiesce refuses new accesses, and returns when those under way are over; with
// an error if w's context ends before, and all is as it was.
func (w *Window) quiesce(op fault.Call) error {
	c := w.core
	c.reachMu.Lock()
	c.ending.Store(true)
	c.reachMu.Unlock()
	for r := range c.targets {
		t := c.targets[r].Load()
		if t == nil {
			continue
		}
		t.open.Or(ending)
		for n := 0; t.open.Load() >= oneAccess; n++ {
			if err := w.pause(op, n); err != nil {
				c.resume()
				return err
			}
		}
	}
	return nil
}

// resume undoes quiesce.
func (c *core) resume() {
	c.reachMu.Lock()
	defer c.reachMu.Unlock()
	c.ending.Store(false)
	for r := range c.targets {
		if t := c.targets[r].Load(); t != nil {
			t.open.And(^ending)
		}
	}
}

// pause is a turn of a wait for another goroutine of the caller's, n counts
// them: it lets others run, and soon sleeps. The error is that w's context has
// ended.
func (w *Window) pause(op fault.Call, n int) error {
	if n < quiesceYields {
		runtime.Gosched()
	} else {
		time.Sleep(quiescePause)
	}
	return w.expired(op)
}

const (
	quiesceYields = 32
	quiescePause  = 50 * time.Microsecond
)

// far are the targets whose accesses may have to be waited for.
func (c *core) far() []*target {
	c.reachMu.Lock()
	defer c.reachMu.Unlock()
	return c.distant
}

// mapped is where an offset of a target lies that is mapped and that the
// window's epochs admit; nil: ask admit. The caller leaves the target.
func (w *Window) mapped(rank, offset int) (t *target, off int64) {
	if w == nil || w.user != nil || uint(rank) >= uint(len(w.core.targets)) {
		return nil, 0
	}
	t = w.core.targets[rank].Load()
	if t == nil || uint64(offset) > uint64(t.last) || t.mem == nil {
		return nil, 0
	}
	if s := t.open.Add(oneAccess); s&ending != 0 || (s|w.core.admitted.Load())&anyEpoch == 0 {
		t.leave()
		return nil, 0
	}
	return t, int64(offset) * t.unit
}

// putNow does a Put into memory that is mapped.
func (w *Window) putNow(b *buffer.Buf, rank, offset int) bool {
	t, off := w.mapped(rank, offset)
	if t == nil {
		return false
	}
	defer t.leave()
	if b.Bytes() > int64(len(t.mem))-off || b.Type.Err != nil {
		return false
	}
	mem.Copy(t.mem[off:], b.Slice())
	return true
}

// getNow does a Get from memory that is mapped.
func (w *Window) getNow(b *buffer.Buf, rank, offset int) bool {
	t, off := w.mapped(rank, offset)
	if t == nil {
		return false
	}
	defer t.leave()
	if b.Bytes() > int64(len(t.mem))-off || b.Type.Err != nil {
		return false
	}
	mem.Copy(b.Slice(), t.mem[off:])
	return true
}

// combineNow does a GetAccumulate in memory that is mapped, if the processor
// can; result may have no elements.
func (w *Window) combineNow(op fault.Call, b, result *buffer.Buf, rank, offset int, with mpi.Op) (did bool, err error) {
	t, off := w.mapped(rank, offset)
	if t == nil {
		return false, nil
	}
	defer t.leave()
	k, ok := with.Core()
	if !t.atomics || !ok || k == kernel.NoOp {
		return false, nil
	}
	did, f := t.Combine(off, b.Type.Kind, k, b.Slice(), result.Slice())
	return did, w.core.fault(op, rank, f)
}
