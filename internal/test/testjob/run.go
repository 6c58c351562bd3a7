// SPDX-License-Identifier: Apache-2.0

package testjob

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/control/server"
	"gompi/mpi"
)

// ending is the early end of a Run, before all ranks have returned.
type ending struct {
	begun   atomic.Bool
	stopped chan struct{} // closed when all ranks are killed
	kill    func()
}

// begin ends the test. first reports whether this is the first call.
func (e *ending) begin() (first bool) {
	if !e.begun.CompareAndSwap(false, true) {
		return false
	}
	go func() {
		defer close(e.stopped)
		e.kill()
	}()
	return true
}

// ranks are the ranks of a Run. They come and go by changes.
type ranks struct {
	job *Job
	tb  testing.TB
	f   func(t *Rank, world *mpi.Comm)
	end ending

	mu      sync.Mutex
	all     map[wire.ProcID]*Rank // ranks that are not finalized or killed
	running int                   // number of functions, and of finalizations of leavers
	over    bool                  // all functions have returned
	done    chan struct{}

	// kills are the goroutines of terminate. They close descriptors, so the job closes after them.
	kills sync.WaitGroup
}

// Run is mpitest.Run with an option Within. t is the TB under the ranks' mpitest.T.
func Run(tb testing.TB, n int, f func(t *Rank, world *mpi.Comm), opts ...Option) {
	tb.Helper()
	s := &ranks{job: New(tb, opts...), tb: tb, f: f, all: map[wire.ProcID]*Rank{}, done: make(chan struct{})}
	s.end.stopped, s.end.kill = make(chan struct{}), s.stop
	s.job.OnChange(Changes{Launch: s.launch, Discard: s.discard, Leave: s.leave, Terminate: s.terminate, Main: s.mainIs})
	s.job.OnSpawn(s.spawned)
	first := s.first(n)
	for _, t := range first {
		go s.run(t)
	}
	s.await()
	s.kills.Wait()
	if tb.Failed() {
		s.end.begin()
		select {
		case <-s.end.stopped:
		case <-time.After(10 * time.Second):
			tb.Fatal("a process cannot be killed: a goroutine may have panicked inside the library")
		}
		for _, t := range s.all {
			s.job.Kill(t.proc)
		}
		tb.FailNow()
	}
	// Finalize together, as real processes do: one rank may need another's answer to leave.
	var wg sync.WaitGroup
	for _, t := range s.all {
		wg.Go(func() { s.finalize(t) })
	}
	wg.Wait()
	if tb.Failed() {
		tb.FailNow()
	}
}

// first makes the ranks of the beginning.
func (s *ranks) first(n int) []*Rank {
	s.tb.Helper()
	list := make([]*Rank, n)
	for i, sp := range s.job.Add(n) {
		t := s.rank(sp.Proc, fmt.Sprintf("rank %d", i))
		var err error
		if t.proc, err = s.job.Boot(sp); err != nil {
			for _, q := range list[:i] {
				s.job.Kill(q.proc)
			}
			s.tb.Fatalf("rank %d: %v", i, err)
		}
		list[i] = t
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = n
	for _, t := range list {
		s.all[t.id] = t
	}
	return list
}

// await returns when all functions have returned or were ended.
func (s *ranks) await() {
	s.tb.Helper()
	timer := time.NewTimer(s.job.cfg.deadline)
	defer timer.Stop()
	select {
	case <-s.done:
		return
	case <-timer.C:
	}
	s.tb.Errorf("the ranks have not returned after %v:\n%s", s.job.cfg.deadline, s.job.RollCall())
	s.end.begin()
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
		buf := make([]byte, 1<<20)
		s.tb.Fatalf("ranks do not even return after their process was killed:\n%s", buf[:runtime.Stack(buf, true)])
	}
}

func (s *ranks) rank(id wire.ProcID, name string) *Rank {
	t := &Rank{TB: s.tb, of: s, id: id, f: s.f}
	t.rename(name)
	return t
}

// run is the goroutine of a rank.
func (s *ranks) run(t *Rank) {
	defer s.returned(t)
	defer func() {
		if r := recover(); r != nil {
			s.tb.Errorf("%s: panic: %v\n%s", *t.name.Load(), r, debug.Stack())
			s.end.begin()
		}
	}()
	t.f(t, t.proc.World())
}

// returned finalizes a rank that is not finalized together with the others.
func (s *ranks) returned(t *Rank) {
	s.job.returned(t.id)
	t.proc.Core().Process().Returned()
	s.mu.Lock()
	t.returned = true
	leaves, unwanted := t.leaves || t.start.Size > 0 && t.proc.Core().Process().Change == nil, t.unwanted
	s.mu.Unlock()
	switch {
	case unwanted:
		s.kill([]wire.ProcID{t.id})
	case leaves && s.claim(t):
		s.finalize(t)
	}
	s.ended()
}

// ended counts the end of a function, or of a finalization.
func (s *ranks) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; s.running == 0 {
		s.over = true
		close(s.done)
	}
}

// claim makes the caller the goroutine that ends the process of a rank, which has joined.
func (s *ranks) claim(t *Rank) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.finished || s.over || t.proc == nil {
		return false
	}
	t.finished = true
	delete(s.all, t.id)
	return true
}

func (s *ranks) finalize(t *Rank) {
	if err := s.job.Leave(t.proc); err != nil {
		s.tb.Errorf("%s: Finalize: %v", *t.name.Load(), err)
	}
}

// kill ends processes as a signal would. A process that has not joined yet ends when it joins.
func (s *ranks) kill(ids []wire.ProcID) {
	for _, t := range s.mark(ids, func(t *Rank) { t.unwanted = true }) {
		t.silent.Store(true)
		if s.claim(t) {
			s.job.Kill(t.proc)
		}
	}
}

// mark changes the records of the ranks among some processes that are not ended.
func (s *ranks) mark(ids []wire.ProcID, note func(t *Rank)) (list []*Rank) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if t := s.all[id]; t != nil {
			note(t)
			list = append(list, t)
		}
	}
	return list
}

// stop ends all processes in the middle of their work.
func (s *ranks) stop() {
	s.mu.Lock()
	var list []*mpi.Process
	for _, t := range s.all {
		if t.proc != nil {
			list = append(list, t.proc)
		}
	}
	s.mu.Unlock()
	for _, p := range list {
		p.Core().Process().Kill(nil)
	}
}

// launch starts newcomers.
func (s *ranks) launch(l *server.Launch) error {
	return s.later(l.Procs, func(sp *protocol.StartProc) (string, func(*Rank, *mpi.Comm)) {
		return fmt.Sprintf("new.%d", sp.Rank), s.f
	})
}

// spawned starts processes that ranks have spawned. Such a rank is finalized when its function
// returns.
func (s *ranks) spawned(procs []protocol.StartProc) error {
	for i := range procs {
		if sp := &procs[i]; s.program(sp) == nil {
			return &protocol.NotStarted{Proc: sp.Proc, Err: fmt.Errorf("no such program: %s", sp.Argv[0])}
		}
	}
	return s.later(procs, func(sp *protocol.StartProc) (string, func(*Rank, *mpi.Comm)) {
		return fmt.Sprintf("spawned process %d (rank %d of %d)", sp.Proc.Serial, sp.Rank, sp.Size), s.program(sp)
	})
}

// program returns the function of a spawned process, or nil if there is none.
func (s *ranks) program(sp *protocol.StartProc) func(*Rank, *mpi.Comm) {
	if f, ok := s.job.cfg.programs[sp.Argv[0]]; ok || sp.Argv[0] != firstProgram {
		return f
	}
	return s.f
}

// later starts processes while the job runs.
func (s *ranks) later(procs []protocol.StartProc, what func(*protocol.StartProc) (string, func(*Rank, *mpi.Comm))) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.end.begun.Load() {
		return fmt.Errorf("the ranks of the test have returned")
	}
	for _, sp := range procs {
		name, f := what(&sp)
		t := s.rank(sp.Proc, name)
		t.start, t.f = sp, f
		s.all[t.id] = t
		s.running++
		go func() {
			p, err := s.job.Boot(sp)
			if err != nil {
				s.job.exited(&sp, "not started: "+err.Error(), false)
				s.mu.Lock()
				delete(s.all, t.id)
				s.mu.Unlock()
				s.ended()
				return
			}
			s.mu.Lock()
			t.proc = p
			unwanted := t.unwanted || s.end.begun.Load()
			s.mu.Unlock()
			if unwanted {
				s.returned(t)
				return
			}
			s.run(t)
		}()
	}
	return nil
}

// discard gives newcomers some time to return by themselves, and then ends them.
func (s *ranks) discard(ids []wire.ProcID) {
	for _, t := range s.mark(ids, func(t *Rank) { t.unwanted = true }) {
		t.silent.Store(true)
	}
	time.AfterFunc(server.DiscardGrace, func() { s.kill(ids) })
}

// leave marks ranks that are finalized when their functions return. All others are finalized
// together.
func (s *ranks) leave(ids []wire.ProcID) {
	for _, t := range s.mark(ids, func(t *Rank) { t.leaves = true }) {
		s.mu.Lock()
		now := t.returned && !s.over
		if now {
			s.running++
		}
		s.mu.Unlock()
		if now {
			go func() {
				defer s.ended()
				if s.claim(t) {
					s.finalize(t)
				}
			}()
		}
	}
}

func (s *ranks) terminate(ids []wire.ProcID) {
	s.tb.Logf("%d ranks did not return in time after leaving", len(ids))
	s.kills.Go(func() { s.kill(ids) })
}

// mainIs names the ranks by their ranks in the main set.
func (s *ranks) mainIs(ids []wire.ProcID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range ids {
		if t := s.all[id]; t != nil {
			t.rename(fmt.Sprintf("rank %d", i))
		}
	}
}
