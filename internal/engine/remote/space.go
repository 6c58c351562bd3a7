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

// domain is how atomic operations on a region exclude each other: its owner
// decides, and all obey. docs/design/024-locks.md.
type domain uint8

const (
	// domainCPU: all who reach the region load and store. Few numbers of 4 and 8
	// bytes are changed by instructions of the processor during a visit, all
	// else under the guard.
	domainCPU domain = iota + 1
	// domainGuard: some copy. Everything is changed under the guard.
	domainGuard
)

// Space is the remote memory of one process: the regions that others access,
// and what there is to know of each of the others. Safe for any goroutine.
type Space struct {
	e    *engine.Engine
	self wire.ProcID

	heap     shmem.Heap
	cache    shmem.Cache
	pieces   sync.Pool // of *pieces
	runLists sync.Pool // of *runList
	// room makes sure that memory of the heap can be used: heapRoom, but in tests.
	room func(mem []byte) error
	// Waits and Tables are the layer above's: what its waits and its windows
	// need, to be used again.
	Waits, Tables sync.Pool
	spares        sync.Pool // of *Region: those that were closed
	// departed holds the processes that have ended, or never were, as long as
	// the engine remembers them. A map is replaced, never changed.
	departed atomic.Pointer[map[wire.ProcID]*fault.Fault]
	turn     turn // guardTurn

	// The rest is guarded by the engine's lock.

	regions []*Region     // by handle
	posts   []*posts      // by index, nil: free
	spare   []uint32      // handles that are free
	wonders []wire.ProcID // of whom wonder has asked, the latest last
	peers   map[wire.ProcID]*peer
	locks   lockService
	marks   marks
	// syncFrame is where frames of synchronisation are put together.
	syncFrame [lockFrameBytes]byte
	waits     *replyWait // to use again
	frame     [engine.FrameMax]byte
	groups    [maxGroups]group

	// onlyServed makes every target of another process a served one: for tests.
	onlyServed bool
}

// peer is another process, as remote memory sees it. Guarded by the engine's
// lock.
type peer struct {
	proc wire.ProcID
	down *fault.Fault // it has ended, or no frame reaches it
	out  outgoing     // what this process asks of it
	// What goes to it in all ways, out among them, nil where there is none yet; and
	// the requests for some of that.
	posts    *posts
	lines    [numLines]*line
	promises []promise
	in       incoming // what it asks of this process

	targets int // of its regions, open here
}

// Of returns the space of an engine, making it at first use.
func Of(e *engine.Engine) *Space {
	return e.Remote(func() engine.RemoteServer { return newSpace(e) }).(*Space)
}

// newSpace is called with the engine's lock held.
func newSpace(e *engine.Engine) *Space {
	s := &Space{e: e, self: e.Self(), peers: map[wire.ProcID]*peer{}, room: heapRoom}
	s.heap.Sharing, s.cache.Heap = e, &s.heap
	s.turn = s.guardTurn
	s.pieces.New = func() any { return new(pieces) }
	s.runLists.New = func() any { return new(runList) }
	return s
}

// peerOf finds or makes the record of a process. The lock is held.
func (s *Space) peerOf(p wire.ProcID) *peer {
	q := s.peers[p]
	if q == nil {
		q = &peer{proc: p}
		q.out.s, q.out.p, q.out.carrier = s, q, &q.out
		q.lines[byFrames] = &q.out.line
		s.peers[p] = q
	}
	return q
}

// hold notes that there is one more target of a process: no communicator need
// have it, and still its end is to be known. The lock is held.
func (s *Space) hold(p *peer) {
	if p.targets++; p.targets == 1 {
		s.e.Ask(p.proc)
	}
}

// letGo ends a hold. The lock is held.
func (s *Space) letGo(p *peer) {
	if p.targets--; p.targets == 0 {
		s.e.Unask(p.proc)
	}
}

// Leave implements engine.RemoteServer. What an access finds after it is
// somebody else's.
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
	// Whoever comes now counts itself out at once, so the phase need not change.
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

// Cut implements engine.RemoteServer. The process lives: what it holds by words
// in memory it holds still.
func (s *Space) Cut(proc wire.ProcID, f *fault.Fault) { s.noFrames(s.peerOf(proc), f) }

// noFrames ends what goes by frames from and to a process.
func (s *Space) noFrames(p *peer, f *fault.Fault) {
	p.down = f
	s.closePosts(p)
	s.dropLines(p, f)
	s.downLocks(p.proc, f)
	p.in = incoming{}
}

// gone is the fault of a process that has ended, nil if it has not. The lock
// need not be held.
func (s *Space) gone(p wire.ProcID) *fault.Fault {
	all := s.departed.Load()
	if all == nil {
		return nil
	}
	return (*all)[p]
}

// register gives a region its handle. The lock is held.
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

// unregister takes a region's handle back. The lock is held.
func (s *Space) unregister(r *Region) {
	s.regions[r.handle] = nil
	s.spare = append(s.spare, r.handle)
}

// regionOf finds the region that another process names, nil if there is none.
// The lock is held.
func (s *Space) regionOf(handle uint32, nonce uint64) *Region {
	if int64(handle) >= int64(len(s.regions)) {
		return nil
	}
	if r := s.regions[handle]; r != nil && r.nonce == nonce {
		return r
	}
	return nil
}
