// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/data/buffer"
	"gompi/internal/engine"
	"gompi/internal/engine/shmem"
	"gompi/internal/host/mem"
)

// Target is a region as this process accesses it. Operations are safe for any goroutine.
// Operations of one goroutine on the same bytes keep the order that MPI 4.1 section 12.7.2
// requires of accumulates. Offsets are in bytes from the region's start.
type Target struct {
	s      *Space
	proc   wire.ProcID
	size   int64
	domain domain
	phase  uint8
	path   path

	mem     []byte     // if mapped
	shared  shmem.Name // its place, if it is shared, whether mapped here or not
	mapping *shmem.Mapping
	memory  *engine.Memory // if copied or readable
	key     uint64
	isLive  bool     // its owner writes while others read
	live    []byte   // if isLive, and in this address space
	ctl     *control // mapped, or that of the region itself; nil: served, and not mapped here
	block   control
	lock    atomic.Pointer[locker]

	// The names by which the owner and its answers know the target, and operations under
	// way. peer is nil if the region belongs to this process.
	peer   *peer
	handle uint32
	nonce  uint64

	// The rank for which it waits. Immutable in use.
	ctx  *engine.Context
	rank int32
	// Operations under way. The engine's lock guards them.
	open    bool
	flights [numLines]targetOps
}

// Mapped returns the memory if this process can load and store there. Otherwise, and if it
// has no bytes, it returns nil.
func (t *Target) Mapped() []byte { return t.mem }

// CPU reports whether FetchOp, CompareSwap and Combine may be used.
func (t *Target) CPU() bool { return t.mem != nil && t.domain == domainCPU }

// Bytes returns the size of the region.
func (t *Target) Bytes() int64 { return t.size }

// Proc returns the process whose region it is.
func (t *Target) Proc() wire.ProcID { return t.proc }

// Put copies src to the target. src belongs to the caller again after FlushLocal; it is at
// the target after Flush.
func (t *Target) Put(src buffer.Buf, to Layout) *fault.Fault {
	if n := src.Bytes(); t.mem != nil && to.plain(n, t.size) && !src.Strided() {
		mem.Copy(t.mem[to.Off:], src.Slice())
		return nil
	}
	n, f := t.check(src.Bytes(), to)
	if n == 0 || f != nil {
		return f
	}
	return t.path.put(src, to, n)
}

// Get copies from the target to dst. dst is valid, and belongs to the caller again, after
// FlushLocal.
func (t *Target) Get(dst buffer.Buf, from Layout) *fault.Fault {
	if n := dst.Bytes(); t.mem != nil && from.plain(n, t.size) && !dst.Strided() {
		mem.Copy(dst.Slice(), t.mem[from.Off:][:n])
		return nil
	}
	n, f := t.check(dst.Bytes(), from)
	if n == 0 || f != nil {
		return f
	}
	return t.path.get(dst, from, n)
}

// check returns how many bytes an access moves, and its fault.
func (t *Target) check(origin int64, at Layout) (n int64, f *fault.Fault) {
	if n, f = at.check(t.size); f != nil {
		return 0, f
	}
	if n != origin {
		return 0, refused(fault.Count, at.Off, n, origin)
	}
	return n, nil
}

// Close ends the use of the target. It does not wait for operations under way; they touch
// no memory of this process any more.
func (t *Target) Close() {
	if t.peer == nil {
		return
	}
	t.s.e.Lock()
	open := t.open
	t.open = false
	t.withdraw()
	if open {
		t.s.letGo(t.peer)
	}
	t.s.e.Unlock()
	if !open {
		return
	}
	t.s.cache.Unmap(t.mapping)
	if t.ctl != nil {
		t.s.unmapControl(t.ctl)
	}
}
