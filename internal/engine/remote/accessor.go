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

// A Key is what other processes need to access a published region: its description, and the
// place of the owner's marks.
type Key [KeyBytes]byte

// KeyBytes is the size of a Key.
const KeyBytes = DescBytes + shmem.NameBytes

// Publish makes memory of this process a region that other processes access as Accessors
// until Retire. It fills their key. The memory belongs to the caller and must be on the
// heap.
func (s *Space) Publish(mem []byte, key *Key) (*Region, error) { return s.publish(mem, key, false) }

// PublishLive is Publish for memory that others only read while this process goes on
// writing to it: see live_region.go. It fails if this system cannot copy such memory.
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

// Accessor is a published region as this process accesses it. It is safe for any goroutine.
type Accessor struct {
	t          *Target
	generation uint32
	mark       *mark // nil: the owner serves it
}

// Open makes an Accessor of a published region. It may block.
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

// Bytes returns the size of the region.
func (a *Accessor) Bytes() int64 { return a.t.size }

// Proc returns the process whose region it is.
func (a *Accessor) Proc() wire.ProcID { return a.t.proc }

// Live reports whether the owner writes to the region while others read it. Then others
// must not write.
func (a *Accessor) Live() bool { return a.t.isLive }

// Close ends the use of the Accessor.
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

// access copies between b and the region. If the accessor has a mark it is set meanwhile,
// so that the owner waits.
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

// refused returns the fault of an access to a region that is gone, or whose owner is.
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
