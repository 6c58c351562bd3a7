// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine/shmem"
	"gompi/internal/host/cgroup"
	"gompi/internal/host/segment"
	"gompi/transport"
)

// Line is the alignment of allocated memory, in bytes.
const Line = transport.ShareAlign

// maxBytes bounds the size of allocated memory. Beyond it no machine has addresses, and Go
// panics.
const maxBytes = 1 << 46

// Region is memory of this process that others may access, until Close.
type Region struct {
	s      *Space
	mem    []byte
	domain domain
	ctl    *control // its block belongs to this process
	block  control
	handle uint32
	nonce  uint64
	desc   Desc

	exposed bool
	key     uint64

	published bool        // accessors check its generation and have marks
	live      bool        // others read it while it is written: see PublishLive
	shared    shmem.Block // the block of mem, if mem is memory of the heap that others map
	posted    []byte      // key with which devices reach it, if they can

	// Synchronisation: see SetMembers.
	members wire.Members
	parties lockParties

	// Guarded by the engine's lock.

	users             int  // goroutines that serve with its guard
	damaged           bool // the guard cannot be taken: requests that wait for it are refused
	closed, abandoned bool
}

// Expose makes memory of this process a region, with words in its control block. The memory
// belongs to the caller. It must be on the heap and stay there until Close.
func (s *Space) Expose(mem []byte, words int) (*Region, error) {
	r, err := s.newRegion(mem, words)
	if err != nil {
		return nil, err
	}
	return s.exposed(r), nil
}

func (s *Space) exposed(r *Region) *Region {
	d := r.describe()
	s.expose(r, d)
	if !r.live {
		s.post(r, d)
	}
	return s.open(r, d)
}

// Allocate makes a region of n zeroed bytes, with words in its control block. Processes of
// this host map it if possible. If memory cannot be shared it is on Go's heap.
func (s *Space) Allocate(n int64, words int) (*Region, error) {
	return s.AllocateAligned(n, words, Line)
}

// AllocateAligned is Allocate for memory that begins at a multiple of align, a power of two
// that is at least Line.
func (s *Space) AllocateAligned(n int64, words, align int) (*Region, error) {
	if n < 0 || n > maxBytes {
		return nil, fmt.Errorf("%d bytes cannot be allocated", n)
	}
	r := s.blankRegion()
	if err := s.memory(r, int(n), align); err != nil {
		return nil, err
	}
	if err := s.addControl(r, words); err != nil {
		s.freeMemory(r, false)
		return nil, err
	}
	d := r.describe()
	if r.shared.None() {
		s.expose(r, d)
	} else {
		d.share(r.shared.Name())
	}
	s.post(r, d)
	return s.open(r, d), nil
}

// askRoom is the size from which it pays to spend some 200 us on asking whether this
// process can have the memory at all: Go does not return from an allocation that fails.
const askRoom = 16 << 20

// memory allocates the memory of a region. It is on Go's heap if no transport shares
// memory, or align is larger than a page.
func (s *Space) memory(r *Region, n, align int) error {
	if n == 0 {
		return nil
	}
	if n >= askRoom {
		if most, err := cgroup.MemoryLimit(int64(n)); err != nil {
			return err
		} else if int64(n) > most {
			return fmt.Errorf("%d bytes cannot be allocated: this process can have %d at most", n, most)
		}
	}
	b, err := s.heap.Take(int64(n), align > Line)
	switch {
	case err == nil && beginsAt(b.Mem(), align):
		r.mem, r.shared = b.Mem(), b
		return nil
	case err == nil:
		s.heap.Put(b, false)
	case !errors.Is(err, transport.ErrUnavailable):
		return err
	}
	mem := shmem.Aligned(n, align)
	if n >= segment.HeapStep {
		if err := s.room(mem); err != nil {
			return err
		}
	}
	r.mem = mem
	return nil
}

func heapRoom(mem []byte) error {
	var m segment.Memory
	defer m.Close()
	return m.PopulateHeap(mem)
}

// freeMemory frees the memory of a region. used says that others may still access it.
func (s *Space) freeMemory(r *Region, used bool) {
	if !r.shared.None() {
		s.heap.Put(r.shared, used)
	}
}

// Within makes a region of this process of bytes [off, off+n) of memory that a process of
// this host has allocated. t must be closed after it.
func (s *Space) Within(t *Target, off, n int64, words int) (*Region, error) {
	if off < 0 || n < 0 || off > t.size-n {
		return nil, &AccessError{fault.RMARange, off, n, t.size}
	}
	if (t.shared.Total == 0 || t.mem == nil) && n > 0 {
		return nil, fmt.Errorf("memory of process %v is not shared with this one", t.proc)
	}
	var mem []byte
	if n > 0 {
		mem = t.mem[off:][:n:n]
	}
	r, err := s.newRegion(mem, words)
	if err != nil {
		return nil, err
	}
	d := r.describe()
	if n > 0 {
		part := t.shared
		part.Off, part.Bytes = part.Off+off, n
		d.share(part)
	}
	return s.open(r, d), nil
}

// newRegion makes a region that is not registered yet.
func (s *Space) newRegion(mem []byte, words int) (*Region, error) {
	r := s.blankRegion()
	r.mem = mem
	return r, s.addControl(r, words)
}

// addControl gives a region its control block.
func (s *Space) addControl(r *Region, words int) error {
	r.s, r.domain, r.ctl = s, domainCPU, &r.block
	return s.initControl(r.ctl, words)
}

func (r *Region) describe() *description {
	return &description{
		proc: r.s.self, bytes: int64(len(r.mem)), live: r.live, phase: phaseOf(r.mem), control: r.ctl.block.Name(),
	}
}

// expose lets processes of this host copy from and to a region. It is in the domain of the
// guard then.
func (s *Space) expose(r *Region, d *description) {
	if len(r.mem) == 0 {
		return
	}
	var proof [2]uint64
	if r.key, proof, r.exposed = s.e.Register(r.mem); r.exposed {
		r.domain = domainGuard
		d.expose(r.key, proof)
	}
}

// open registers a region with the server.
func (s *Space) open(r *Region, d *description) *Region {
	s.e.Lock()
	s.register(r)
	s.e.Unlock()
	d.domain, d.handle, d.nonce = r.domain, r.handle, r.nonce
	r.desc = d.encode()
	return r
}

// Desc returns the description with which other processes Reach the region.
func (r *Region) Desc() Desc { return r.desc }

// Mem returns the memory.
func (r *Region) Mem() []byte { return r.mem }

// Close ends the region and frees its memory. All others must have closed their targets of
// it. The handle is refused from now on. The caller must not use r any more: another region
// may take its place.
func (r *Region) Close() { r.close(false) }

// Abandon is Close while others may still access the region. Memory that they have mapped
// stays until they leave it.
func (r *Region) Abandon() { r.close(true) }

func (r *Region) close(used bool) {
	s := r.s
	s.e.Lock()
	if r.closed {
		s.e.Unlock()
		return
	}
	r.closed, r.abandoned = true, used
	s.closeLocks(r)
	s.unregister(r)
	unused := r.users == 0
	if unused {
		s.freeControl(r.ctl, used)
	}
	s.e.Unlock()
	if r.exposed {
		s.e.Unregister(r.key)
	}
	s.hide(r)
	s.freeMemory(r, used)
	s.heap.Sweep()
	if unused && !used {
		s.spares.Put(r)
	}
}

// blankRegion returns a zero region.
func (s *Space) blankRegion() *Region {
	if r, ok := s.spares.Get().(*Region); ok {
		*r = Region{}
		return r
	}
	return new(Region)
}

// Reach makes a target of a region of process p, or of this process. It returns a fault if
// the description is wrong or p has ended. It may block.
func (s *Space) Reach(p wire.ProcID, b *Desc) (*Target, *fault.Fault) {
	t := new(Target)
	if f := s.ReachInto(t, p, b); f != nil {
		return nil, f
	}
	return t, nil
}

// ReachInto is Reach into t, which must be zero.
func (s *Space) ReachInto(t *Target, p wire.ProcID, b *Desc) *fault.Fault {
	d, err := b.decode()
	if err == nil && d.proc != p {
		err = fmt.Errorf("description of a region of process %v, not %v", d.proc, p)
	}
	if err != nil {
		return &fault.Fault{Class: fault.Unreachable, Peer: -1, Err: err}
	}
	t.s = s
	t.proc = p
	t.size = d.bytes
	t.domain = d.domain
	t.phase = d.phase
	t.handle = d.handle
	t.nonce = d.nonce
	t.shared, _ = d.sharedName()
	if p == s.self {
		return s.reachOwn(t)
	}
	t.isLive = d.live
	s.e.Lock()
	t.peer = s.peerOf(p)
	s.hold(t.peer)
	f := t.peer.down
	s.e.Unlock()
	if f == nil {
		f = s.choose(t, &d)
	}
	if t.open = f == nil; f != nil {
		s.e.Lock()
		s.letGo(t.peer)
		s.e.Unlock()
	}
	return f
}

// reachOwn makes t a target of a region of this process.
func (s *Space) reachOwn(t *Target) *fault.Fault {
	s.e.Lock()
	defer s.e.Unlock()
	r := s.regionOf(t.handle, t.nonce)
	if r == nil {
		return refused(fault.Closed, 0, 0, t.size)
	}
	t.size, t.domain, t.mem, t.ctl = int64(len(r.mem)), r.domain, r.mem, r.ctl
	t.path = mapped{t}
	if r.live {
		t.readLive()
	}
	return nil
}

// choose finds the path to a target. Without its control block, by which accesses exclude
// each other, only the owner and devices can access the memory. A fault means that the
// region is known to be gone.
func (s *Space) choose(t *Target, d *description) *fault.Fault {
	t.path = served{t}
	if s.onlyServed || t.proc.Job != s.self.Job {
		// In guard words, visits and marks a process is named by its serial in its job.
		return nil
	}
	switch err := s.mapControl(&t.block, &d.control); {
	case errors.Is(err, errStale):
		return refused(fault.Closed, 0, 0, d.bytes)
	case err == nil:
		t.ctl = &t.block
		if d.bytes == 0 {
			t.path = mapped{t}
		}
	}
	for kind, key, rest := d.keys.next(d.keys.all()); kind != 0 && d.bytes > 0; kind, key, rest = d.keys.next(rest) {
		if (t.ctl != nil || kind == keyPosted) && t.openKey(kind, key) {
			break
		}
	}
	return nil
}
