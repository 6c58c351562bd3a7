// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync"

	"gompi/internal/base/wire"
	"gompi/internal/control/collmem"
	"gompi/transport"
)

// Shares reports whether this process can share memory with other processes of its host.
func (e *Engine) Shares() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sharer() != nil
}

// errNone is the error if no transport can share memory.
func (e *Engine) errNone() error {
	if e.closed {
		return fmt.Errorf("%w: the process was finalized", transport.ErrUnavailable)
	}
	return fmt.Errorf("%w: no transport of this process shares memory", transport.ErrUnavailable)
}

// beginSharing returns the sharer for a call that does not hold the engine's lock, because
// the operating system may take long. The caller must end the use with sharing.RUnlock. No
// transport is closed before that.
func (e *Engine) beginSharing() (transport.Sharer, error) {
	e.sharing.RLock()
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sharer()
	if s == nil || e.closed {
		return nil, e.errNone()
	}
	return s, nil
}

// Share gives out n zeroed bytes that processes of this host can Join until Unshare. place
// names them.
func (e *Engine) Share(n int) (mem []byte, place uint64, err error) {
	s, err := e.beginSharing()
	defer e.sharing.RUnlock()
	if err != nil {
		return nil, 0, err
	}
	return s.Share(n)
}

// Unshare takes back memory of Share after all that joined have left it.
func (e *Engine) Unshare(mem []byte, place uint64) {
	s, err := e.beginSharing()
	defer e.sharing.RUnlock()
	if err != nil {
		e.Leave(mem)
		return
	}
	s.Unshare(mem, place)
}

// Join maps memory that another process of this host has shared, until Leave. place and n
// came from that process and are not trusted. It may block.
func (e *Engine) Join(p wire.ProcID, place uint64, n int) ([]byte, error) {
	e.mu.Lock()
	if e.sharer() == nil || e.closed {
		defer e.mu.Unlock()
		return nil, e.errNone()
	}
	e.mu.Unlock()
	c, err := e.fetchContact(p)
	if err != nil {
		return nil, err
	}
	s, err := e.beginSharing()
	defer e.sharing.RUnlock()
	if err != nil {
		closeContact(c)
		return nil, err
	}
	return s.Join(c, place, n)
}

// common maps the memory that the members of a communicator share, until leaveCommon. The
// caller must not hold the lock.
func (e *Engine) common(c *Context, s transport.Sharer) (mem []byte, x wire.ArenaRange, err error) {
	ranks, handed := c.Members.Len(), s.Preallocated()
	n := collmem.HeapBytes(ranks, handed)
	x.File = -1
	if handed {
		if x, err = e.cfg.Control.Common(c.ID, c.Members, n, collmem.AreaBytes(ranks), s.HeldArenas()); err != nil {
			return nil, x, err
		}
	}
	s, err = e.beginSharing()
	defer e.sharing.RUnlock()
	if err == nil {
		mem, err = s.Attach(transport.SharedKey{Context: c.ID, First: c.Members.At(0), Ranks: ranks}, n, x)
	} else {
		closeContact(wire.Contact{SameHost: true, Segment: x.File, Bell: -1})
	}
	if err != nil && handed {
		e.cfg.Control.LeaveCommon(x)
	}
	return mem, x, err
}

// given is common for memory that the agent has given to all members, as members of a set.
func (c *Context) given(set uint32, x wire.ArenaRange) ([]byte, error) {
	e := c.e
	x.File = -1
	s, err := e.beginSharing()
	defer e.sharing.RUnlock()
	if err != nil {
		return nil, err
	}
	ranks := c.Members.Len()
	mem, err := s.Attach(transport.SharedKey{Context: c.ID, First: c.Members.At(0), Ranks: ranks}, collmem.HeapBytes(ranks, true), x)
	if err == nil && !collmem.Claim(mem, c.Rank, set) {
		s.Leave(mem)
		err = fmt.Errorf("%v: what was given to rank %d was taken back", c.ID, c.Rank)
	}
	return mem, err
}

// leaveCommon ends the use of memory of common. This process does not touch it any more.
func (e *Engine) leaveCommon(s transport.Sharer, mem []byte, x wire.ArenaRange) {
	s.Leave(mem)
	if s.Preallocated() {
		e.cfg.Control.LeaveCommon(x) // without a connection the agent keeps the extent until this process ends
	}
}

// Leave ends a Join, or a Share whose memory other processes go on using.
func (e *Engine) Leave(mem []byte) { e.sharer().Leave(mem) }

// Register lets processes of this host that know the key access b, which is on the heap,
// until Unregister. They need proof as well to reach this process. ok is false if no
// transport can do that.
func (e *Engine) Register(b []byte) (key uint64, proof [2]uint64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.singleCopy()
	if x == nil || e.closed {
		return 0, proof, false
	}
	proof[0], proof[1] = x.Proof()
	return x.Register(b), proof, true
}

// Unregister ends a Register. Accesses that have begun may go on.
func (e *Engine) Unregister(key uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.singleCopy().Unregister(key)
	}
}

// ReachMemory returns the memory that another process of this host has registered, if this
// process can access it. The proof came from that process. It may block.
func (e *Engine) ReachMemory(p wire.ProcID, proof [2]uint64) (*Memory, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m := e.memories[p]; m != nil {
		return m, nil
	}
	x := e.singleCopy()
	if x == nil || e.closed {
		return nil, e.errNone()
	}
	// Keep the end of p meanwhile, though perhaps no communicator has it as a member: then
	// the pid in the contact is acknowledged.
	e.asked[p]++
	c, err := e.contact(p)
	d := e.dead[p]
	e.Unask(p)
	if err == nil && e.closed {
		closeContact(c)
		err = e.errNone()
	}
	if err != nil {
		return nil, err
	}
	if m := e.memories[p]; m != nil { // another goroutine has done it
		closeContact(c)
		return m, nil
	}
	if d != nil { // the contact may name another process by now
		closeContact(c)
		return nil, fmt.Errorf("%w: process %v %s", transport.ErrPeerGone, p, d.how)
	}
	mem, err := x.Reach(c, proof[0], proof[1])
	if err != nil {
		return nil, err
	}
	if e.memories == nil {
		e.memories = map[wire.ProcID]*Memory{}
	}
	m := &Memory{mem: mem}
	e.memories[p] = m
	return m, nil
}

// contact asks the control plane how to reach a process. It releases the lock meanwhile.
func (e *Engine) contact(p wire.ProcID) (wire.Contact, error) {
	e.mu.Unlock()
	c, err := e.fetchContact(p)
	e.mu.Lock()
	return c, err
}

// Memory is the registered memory of another process of this host. Any goroutine may use it
// without the engine's lock. A copy under way delays the acknowledgement of that process's
// end; only after that the process's name may be used again. After the end, or after this
// process was finalized, every access returns transport.ErrPeerGone.
type Memory struct {
	using sync.RWMutex // shared during copies
	gone  bool         // guarded by using; changed with the engine's lock held
	mem   transport.Memory
}

// lose ends all accesses.
func (m *Memory) lose() {
	m.using.Lock()
	m.gone = true
	m.using.Unlock()
}

// loseMemory ends the use of a process's memory. The caller holds the lock.
func (e *Engine) loseMemory(p wire.ProcID) {
	if m := e.memories[p]; m != nil {
		delete(e.memories, p)
		m.lose()
	}
}

// loseMemories is loseMemory for all processes: a finalized process acknowledges all ends.
func (e *Engine) loseMemories() {
	for p := range e.memories {
		e.loseMemory(p)
	}
}

// Bytes returns the memory itself if it is in this process's address space, else nil.
func (m *Memory) Bytes(key uint64) []byte {
	if d, ok := m.mem.(transport.Direct); ok {
		return d.Bytes(key)
	}
	return nil
}

// Writable reports whether Write and WriteRuns may be used.
func (m *Memory) Writable() bool { return m.mem.Writable() }

// Read fills dst, of any length, from byte off behind a key.
func (m *Memory) Read(dst []byte, key uint64, off int64) error {
	for {
		k := min(len(dst), transport.MaxRead)
		if err := m.read(dst[:k], key, off); err != nil {
			return err
		}
		if dst, off = dst[k:], off+int64(k); len(dst) == 0 {
			return nil
		}
	}
}

func (m *Memory) read(dst []byte, key uint64, off int64) error {
	m.using.RLock()
	defer m.using.RUnlock()
	if m.gone {
		return transport.ErrPeerGone
	}
	return m.mem.Read(dst, key, off)
}

// Write copies src, of any length, to byte off behind a key.
func (m *Memory) Write(src []byte, key uint64, off int64) error {
	for {
		k := min(len(src), transport.MaxRead)
		if err := m.write(src[:k], key, off); err != nil {
			return err
		}
		if src, off = src[k:], off+int64(k); len(src) == 0 {
			return nil
		}
	}
}

func (m *Memory) write(src []byte, key uint64, off int64) error {
	m.using.RLock()
	defer m.using.RUnlock()
	if m.gone {
		return transport.ErrPeerGone
	}
	return m.mem.Write(src, key, off)
}

// ReadRuns fills any number of runs, of any length, from behind a key.
func (m *Memory) ReadRuns(runs []transport.Run, key uint64) error {
	return m.eachBatch(runs, key, m.Read, m.mem.ReadRuns)
}

// WriteRuns copies any number of runs, of any length, to behind a key.
func (m *Memory) WriteRuns(runs []transport.Run, key uint64) error {
	return m.eachBatch(runs, key, m.Write, m.mem.WriteRuns)
}

// eachBatch copies runs: long ones by themselves, others together.
func (m *Memory) eachBatch(runs []transport.Run, key uint64,
	one func(b []byte, key uint64, off int64) error, several func([]transport.Run, uint64) error) error {
	for len(runs) > 0 {
		n, bytes := 0, 0
		for n < len(runs) && n < transport.MaxRuns && bytes+len(runs[n].Mem) <= transport.MaxRead {
			bytes += len(runs[n].Mem)
			n++
		}
		var err error
		if n < 2 {
			n = 1
			err = one(runs[0].Mem, key, runs[0].Off)
		} else {
			err = m.batch(runs[:n], key, several)
		}
		if err != nil {
			return err
		}
		runs = runs[n:]
	}
	return nil
}

func (m *Memory) batch(runs []transport.Run, key uint64, several func([]transport.Run, uint64) error) error {
	m.using.RLock()
	defer m.using.RUnlock()
	if m.gone {
		return transport.ErrPeerGone
	}
	return several(runs, key)
}
