// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/engine"
	"gompi/internal/engine/shmem"
)

// domain is how atomic operations on a region exclude each other. Its owner decides, and
// all others obey. docs/design/024-locks.md.
type domain uint8

const (
	// domainCPU: all processes that reach the region load and store. The processor changes
	// a few numbers of 4 or 8 bytes by atomic instructions during a visit. All other
	// changes are made under the guard.
	domainCPU domain = iota + 1
	// domainGuard: some processes copy. All changes are made under the guard.
	domainGuard
)

// Space is the remote memory of one process: the regions that others access, and what is
// known of each other process. It is safe for any goroutine.
type Space struct {
	e    *engine.Engine
	self wire.ProcID

	heap     shmem.Heap
	cache    shmem.Cache
	pieces   sync.Pool // of *pieces
	runLists sync.Pool // of *runList
	// room makes heap memory usable. It is heapRoom, except in tests.
	room func(mem []byte) error
	// Waits and Tables are recycled objects of the layer above, for its waits and windows.
	Waits, Tables sync.Pool
	spares        sync.Pool // of *Region, after Close
	// departed has the processes that have ended or never existed, as long as the engine
	// remembers them. The map is replaced, never changed.
	departed atomic.Pointer[map[wire.ProcID]*fault.Fault]
	turn     waitFunc // it is guardTurn

	// The engine's lock guards all fields below.

	regions []*Region     // by handle
	posts   []*postQueue  // by index; nil where free
	spare   []uint32      // handles that are free
	queried []wire.ProcID // processes that queryFate has asked about, the latest last
	peers   map[wire.ProcID]*peer
	locks   lockService
	marks   marks
	// syncFrame is memory for frames of synchronisation.
	syncFrame [lockFrameBytes]byte
	waits     *replyWait // recycled
	frame     [engine.FrameMax]byte
	groups    [maxGroups]group

	// onlyServed makes every target of another process use frames, for tests.
	onlyServed bool
}

// peer is another process as remote memory sees it. The engine's lock guards it.
type peer struct {
	proc wire.ProcID
	down *fault.Fault // it has ended, or frames do not reach it
	out  outgoing     // requests of this process
	// Its queues by path, out among them, nil where there is none; and the requests of
	// Request for some of their operations.
	posts    *postQueue
	lines    [numLines]*opQueue
	promises []flushRequest
	in       incoming // its requests to this process

	targets int // its regions that are open here
}

// Of returns the space of an engine, which it makes at first use.
func Of(e *engine.Engine) *Space {
	return e.Remote(func() engine.RemoteServer { return newSpace(e) }).(*Space)
}

// newSpace must be called with the engine's lock held.
func newSpace(e *engine.Engine) *Space {
	s := &Space{e: e, self: e.Self(), peers: map[wire.ProcID]*peer{}, room: heapRoom}
	s.heap.Sharing, s.cache.Heap = e, &s.heap
	s.turn = s.guardTurn
	s.pieces.New = func() any { return new(pieces) }
	s.runLists.New = func() any { return new(runList) }
	return s
}

// peerOf returns the record of a process, which it makes at first use. The caller holds the
// lock.
func (s *Space) peerOf(p wire.ProcID) *peer {
	q := s.peers[p]
	if q == nil {
		q = &peer{proc: p}
		q.out.s, q.out.p, q.out.carrier = s, q, &q.out
		q.lines[byFrames] = &q.out.opQueue
		s.peers[p] = q
	}
	return q
}

// hold counts a target of a process. The process's end must be known even if no
// communicator has it. The caller holds the lock.
func (s *Space) hold(p *peer) {
	if p.targets++; p.targets == 1 {
		s.e.Ask(p.proc)
	}
}

// letGo ends a hold. The caller holds the lock.
func (s *Space) letGo(p *peer) {
	if p.targets--; p.targets == 0 {
		s.e.Unask(p.proc)
	}
}

// Leave implements engine.RemoteServer. Accesses after it find memory that belongs to the
// program.
func (s *Space) Leave(user context.Context) {
	s.e.Lock()
	for _, r := range s.regions {
		if r != nil && r.published {
			r.ctl.head.generation.Store(0)
		}
	}
	s.e.Unlock()
	c := s.marks.own.Load()
	if c == nil {
		return
	}
	// A process that comes now ends its access at once, so the phase need not change.
	for phase := range uint64(2) {
		if s.awaitMarks("Finalize", user, c, phase) != nil {
			return
		}
	}
}

// Close implements engine.RemoteServer.
func (s *Space) Close() {
	s.closeMarks()
	s.cache.Close()
	s.heap.Close()
}

// Down implements engine.RemoteServer.
func (s *Space) Down(proc wire.ProcID, f *fault.Fault) {
	p := s.peerOf(proc)
	all := map[wire.ProcID]*fault.Fault{proc: f}
	if old := s.departed.Load(); old != nil {
		maps.Copy(all, *old)
	}
	s.departed.Store(&all)
	s.noFrames(p, f)
	if f.Class != fault.Unreachable {
		s.clearMarks(proc)
	}
	s.cache.Gone(proc)
}

// Forget implements engine.RemoteServer.
func (s *Space) Forget(proc wire.ProcID) {
	delete(s.peers, proc)
	if old := s.departed.Load(); old != nil && (*old)[proc] != nil {
		all := maps.Clone(*old)
		delete(all, proc)
		s.departed.Store(&all)
	}
	s.dropMark(proc)
}

// Cut implements engine.RemoteServer. The process lives: it keeps what it holds by words in
// memory.
func (s *Space) Cut(proc wire.ProcID, f *fault.Fault) { s.noFrames(s.peerOf(proc), f) }

// noFrames ends everything that goes by frames from and to a process.
func (s *Space) noFrames(p *peer, f *fault.Fault) {
	p.down = f
	s.closePosts(p)
	s.dropQueues(p, f)
	s.downLocks(p.proc, f)
	p.in = incoming{}
}

// gone returns the fault of a process that has ended, or nil. It needs no lock.
func (s *Space) gone(p wire.ProcID) *fault.Fault {
	all := s.departed.Load()
	if all == nil {
		return nil
	}
	return (*all)[p]
}

// register gives a region its handle. The caller holds the lock.
func (s *Space) register(r *Region) {
	if n := len(s.spare); n > 0 {
		r.handle = s.spare[n-1]
		s.spare = s.spare[:n-1]
	} else {
		r.handle = uint32(len(s.regions))
		s.regions = append(s.regions, nil)
	}
	s.regions[r.handle] = r
	for r.nonce == 0 {
		r.nonce = rand.Uint64()
	}
}

// unregister takes a region's handle away. The caller holds the lock.
func (s *Space) unregister(r *Region) {
	s.regions[r.handle] = nil
	s.spare = append(s.spare, r.handle)
}

// regionOf returns the region that another process names, or nil. The caller holds the
// lock.
func (s *Space) regionOf(handle uint32, nonce uint64) *Region {
	if int64(handle) >= int64(len(s.regions)) {
		return nil
	}
	if r := s.regions[handle]; r != nil && r.nonce == nonce {
		return r
	}
	return nil
}
