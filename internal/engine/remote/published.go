// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine/shmem"
	"gompi/internal/host/dirty"
)

// A Key is what other processes need to know of a published region: its
// description, and where the owner's marks are.
type Key [KeyBytes]byte

// KeyBytes is the size of a Key.
const KeyBytes = DescBytes + shmem.NameBytes

// Publish makes memory of this process a region that other processes access as
// Accessors with the key that it fills, until Retire. The memory is the caller's,
// on the heap.
func (s *Space) Publish(mem []byte, key *Key) (*Region, error) { return s.publish(mem, key, false) }

// PublishLive is Publish of memory that is only read, while this process goes on writing
// to it: live.go. The error may be that this system cannot copy such memory.
func (s *Space) PublishLive(mem []byte, key *Key) (*Region, error) {
	if err := dirty.CanCopy(); err != nil {
		return nil, err
	}
	return s.publish(mem, key, true)
}

func (s *Space) publish(mem []byte, key *Key, live bool) (*Region, error) {
	marks, err := s.markBlock()
	if err != nil {
		return nil, err
	}
	r, err := s.newRegion(mem, 0)
	if err != nil {
		return nil, err
	}
	r.live = live
	r = s.exposed(r)
	s.e.Lock()
	r.published = true
	s.e.Unlock()
	copy(key[:], r.desc[:])
	at := marks.block.Name()
	at.Put(key[DescBytes:])
	return r, nil
}

// Accessor is a published region as this process accesses it. Safe for any
// goroutine.
type Accessor struct {
	t          *Target
	generation uint32
	mark       *mark // nil: the owner serves it
}

// Open makes an accessor of a published region. It may block.
func (s *Space) Open(k *Key) (*Accessor, *fault.Fault) {
	desc := Desc(k[:DescBytes])
	d, err := desc.decode()
	if err != nil {
		return nil, &fault.Fault{Class: fault.Unreachable, Peer: -1, Err: err}
	}
	t, f := s.Reach(d.proc, &desc)
	if f != nil {
		return nil, f
	}
	a := &Accessor{t: t, generation: d.control.Generation}
	if t.ctl != nil && !t.path.framed() {
		at := shmem.GetName(k[DescBytes:], d.proc)
		a.mark = s.markOf(d.proc, &at)
	}
	if a.mark == nil {
		t.path, t.mem, t.memory = t.path.unmarked(), nil, nil
	}
	return a, nil
}

// Bytes is the size of the region.
func (a *Accessor) Bytes() int64 { return a.t.size }

// Proc is the process whose region it is.
func (a *Accessor) Proc() wire.ProcID { return a.t.proc }

// Live reports whether the owner writes to the region while it is read: then it may not
// be written.
func (a *Accessor) Live() bool { return a.t.isLive }

// Close gives the accessor up.
func (a *Accessor) Close() {
	a.t.Close()
	if a.mark != nil {
		a.t.s.returnMark(a.t.proc)
	}
}

// Put copies src to the region. It is done at return.
func (a *Accessor) Put(src buffer.Buf, to Layout, user context.Context) *fault.Fault {
	return a.access((*Target).Put, src, to, user)
}

// Get copies from the region to dst. It is done at return.
func (a *Accessor) Get(dst buffer.Buf, from Layout, user context.Context) *fault.Fault {
	return a.access((*Target).Get, dst, from, user)
}

// access copies between b and the region, with the accessor's mark set if it
// has one: then the owner waits for it.
func (a *Accessor) access(copy func(*Target, buffer.Buf, Layout) *fault.Fault, b buffer.Buf, at Layout, user context.Context) *fault.Fault {
	if a.mark == nil {
		return a.flushed(copy(a.t, b, at), user)
	}
	w, ok := a.mark.enter(a.t.s, a.t.proc, a.t.ctl, a.generation)
	if !ok {
		return a.refused(b)
	}
	f := copy(a.t, b, at)
	a.mark.leave(a.t.s, a.t.proc, w)
	return f
}

// refused is the fault of an access to a region that is gone, or whose owner
// is.
func (a *Accessor) refused(b buffer.Buf) *fault.Fault {
	if f := a.t.s.gone(a.t.proc); f != nil {
		return f
	}
	return refused(fault.Closed, 0, b.Bytes(), a.t.size)
}

// flushed waits for an access that the owner serves.
func (a *Accessor) flushed(f *fault.Fault, user context.Context) *fault.Fault {
	if f != nil {
		return f
	}
	return a.t.Flush(user)
}
