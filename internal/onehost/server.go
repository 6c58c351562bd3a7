// SPDX-License-Identifier: Apache-2.0

// Package onehost is the control plane of a job on one host: its head, and the
// agent of the host, which is number 0, in one process.
package onehost

import (
	"fmt"
	"sync"
	"time"

	"gompi/internal/agent"
	"gompi/internal/control"
	"gompi/internal/head"
	"gompi/internal/wire"
)

// Config is what the launcher gives to its server. The functions are
// called without any lock of the server held and may call its methods except
// Close. All but Start and MaxProcs are called one at a time and in order, by
// one goroutine: they should not block. Any function may be nil.
type Config struct {
	// Job must not be 0.
	Job    wire.JobID
	Secret [32]byte
	// Settings, FaultTolerant and KillGrace are handed to every process.
	Settings      map[string]string
	FaultTolerant bool
	KillGrace     time.Duration
	// UsableCPUs is what the processes of this host may use together.
	UsableCPUs int
	// MaxProcs is the GOMAXPROCS for a process when localProcs (at least
	// 1) share the host; it must be pure. nil: 0, leave it alone.
	MaxProcs func(localProcs int) int
	// Start launches processes for a Spawn, on a goroutine of its own. On an
	// error none of them counts as started and none may run on; those that
	// had been started are reported with Exited all the same. nil: Spawn is
	// refused.
	Start func(procs []control.StartProc) error
	// Aborted: a process asked for the end of the job.
	Aborted func(by wire.ProcID, code int, msg string)
	// Reap: nobody uses p's pid any more; the exited child may be waited
	// for. Called once for every process whose Exited was called.
	Reap func(p wire.ProcID)
	// Joined and Finalized: p has said hello, has left in order.
	Joined, Finalized func(p wire.ProcID)
	// Lost: the connection of p has ended a while ago (LostWait; 0: a second),
	// though p has not left in order, and Exited was not called. If its child
	// runs on, the answer is Server.Lost. nil: p counts as dead without more
	// ado.
	Lost     func(p wire.ProcID)
	LostWait time.Duration
	// Dropped: the server ended p's connection because p broke the protocol
	// or did not read; p should be killed.
	Dropped func(p wire.ProcID, why string)
}

// Server joins a head and an agent. Its methods may be called from any goroutine.
type Server struct {
	cfg  Config
	done chan struct{} // closed by Close

	calls  callQueue
	spawns sync.WaitGroup

	// mu guards what follows. It is held only for computation.
	mu     sync.Mutex
	head   *head.Head
	agent  *agent.Agent
	ln     *agent.Listener
	closed bool
	// across, if not nil, makes what arrives of what one of head and agent
	// tells the other.
	across func(control.Message) control.Message
}

// turn is a step as a lock: Unlock carries out what follows.
type turn struct{ *Server }

func (t turn) Lock()   { t.mu.Lock() }
func (t turn) Unlock() { t.flush(); t.mu.Unlock() }

// NewServer starts to listen at Address(cfg.Job). The caller must Close it.
func NewServer(cfg Config) (*Server, error) {
	hc := head.Config{
		Job: cfg.Job, Secret: cfg.Secret, Settings: cfg.Settings, FaultTolerant: cfg.FaultTolerant, KillGrace: cfg.KillGrace,
		UsableCPUs: cfg.UsableCPUs, MaxProcs: cfg.MaxProcs, Spawns: cfg.Start != nil,
		Aborted: cfg.Aborted, Joined: cfg.Joined, Finalized: cfg.Finalized,
	}
	if err := hc.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, done: make(chan struct{}), head: head.New(hc, 1), agent: agent.New(cfg.Job, 0, cfg.Reap)}
	// Whoever connects at once waits for the end of this step.
	s.mu.Lock()
	defer s.mu.Unlock()
	ln, err := agent.Listen(s.agent, agent.ListenerConfig{Step: turn{s}, Tool: s.tool, Lost: cfg.Lost, LostWait: cfg.LostWait, Dropped: cfg.Dropped})
	if err != nil {
		return nil, err
	}
	s.ln = ln
	s.calls.start()
	return s, nil
}

// Addr is the value for GOMPI_CONTROL.
func (s *Server) Addr() string { return control.Address(s.cfg.Job) }

// Token is what p, which was reserved, shows when it is started: the value for
// GOMPI_TOKEN. Only the agent's half of a launcher needs it.
func (s *Server) Token(p wire.ProcID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent.Token(p)
}

// AddJob reserves one process for each command line: a serial, a token, a
// segment with its bell. Together they are a new world, whose set it returns.
// The caller starts them and reports each with Started and Exited, also those
// that it fails to start. On an error, which is a *segment.NoMemoryError if
// memory is short, nothing is reserved.
func (s *Server) AddJob(argv [][]string) ([]control.StartProc, wire.Set, error) {
	return s.add(argv, nil)
}

// add is AddJob, for a Spawn if there is one.
func (s *Server) add(argv [][]string, spawn *head.Spawn) ([]control.StartProc, wire.Set, error) {
	if len(argv) < 1 || len(argv) > control.MaxSpawn {
		return nil, wire.Set{}, fmt.Errorf("cannot start %d processes at once, only 1 to %d", len(argv), control.MaxSpawn)
	}
	places, err := agent.NewProcs(len(argv)) // without the lock: memory is slow
	if err != nil {
		return nil, wire.Set{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		agent.Release(places)
		return nil, wire.Set{}, control.ErrClosed
	}
	set, err := s.head.Join(argv, spawn, 0, s.agent.Reserve(places))
	s.flush()
	if err != nil {
		return nil, wire.Set{}, err
	}
	procs := make([]control.StartProc, len(argv))
	for i, p := range set.Members.All() {
		procs[i] = control.StartProc{Proc: p, Argv: argv[i], Rank: i, Size: len(argv)}
	}
	return procs, set, nil
}

// Started reports the pid of the launcher's child for p. Until then nobody is
// put in contact with p. If p turns out to be another process (a child of a
// wrapper), its memory is not copied directly.
func (s *Server) Started(p wire.ProcID, pid int) {
	s.step(func() { s.agent.Started(p, pid) })
}

// Exited reports that p's child has ended (or could not be started). The
// caller must not wait for the child before Reap. How is a short text for
// people, clean means exit status 0. Everybody who needs p is told. A second
// call for the same process does nothing.
func (s *Server) Exited(p wire.ProcID, how string, clean bool) {
	s.step(func() {
		s.ln.Found(p)
		s.agent.Exited(p, how, clean)
	})
}

// Lost says that the program that joined as p is gone without having left in
// order, while the child runs on, in answer to Config.Lost. Everybody is
// told that p has died. Its exit is to be reported as always.
func (s *Server) Lost(p wire.ProcID, how string) {
	s.step(func() { s.agent.Lost(p, how) })
}

// Ending tells every process that the job is ending and ends all that they
// wait for. Nobody can join any more. Deaths are still announced.
func (s *Server) Ending(why string) {
	s.step(func() { s.head.End(why) })
}

// Snapshot lists the processes of the job by serial: those that live, and of
// those that have ended the ones that a process set still names.
func (s *Server) Snapshot() []control.ProcInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.Snapshot()
}

// State is how far a process is; Exited, too, of one that nothing is known of any
// more.
func (s *Server) State(p wire.ProcID) control.ProcState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.State(p)
}

// Close ends all connections, runs the callbacks that are due and frees
// everything. Process exits are not waited for.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	s.mu.Unlock()
	err := s.ln.Close()
	s.spawns.Wait()
	s.calls.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agent.Close()
	return err
}

// step lets head or agent learn something, and carries out what follows from it.
func (s *Server) step(f func()) {
	turn{s}.Lock()
	defer turn{s}.Unlock()
	f()
}

// flush lets head and agent learn what the other has told, and carries out what
// follows; mu is held. Nothing here blocks.
func (s *Server) flush() {
	for more := true; more; {
		more = s.agent.Report(s.report)
		more = s.head.Flush(s.effect) || more
		more = s.agent.Flush(s.deed) || more
	}
}

func (s *Server) report(r *control.Report) {
	if s.across != nil {
		r = s.across(r).(*control.Report)
	}
	s.head.Take(r)
}

func (s *Server) effect(e *head.Effect) {
	switch {
	case e.Call != nil:
		s.calls.add(e.Call)
	case e.Spawn != nil:
		if r := e.Spawn; !s.closed {
			s.spawns.Go(func() { s.spawn(r) })
		}
	default:
		o := &e.Order
		if s.across != nil {
			o = s.across(o).(*control.Order)
		}
		s.agent.Take(o)
	}
}

func (s *Server) deed(d *agent.Deed) {
	if d.Call != nil {
		s.calls.add(d.Call)
	} else {
		s.ln.Do(d)
	}
}

func (s *Server) spawn(r *head.Spawn) {
	argv := make([][]string, r.N)
	for i := range argv {
		argv[i] = r.Argv
	}
	procs, set, err := s.add(argv, r)
	if err == nil {
		err = s.cfg.Start(procs)
	}
	s.step(func() { s.head.Spawned(r, set, err) })
}
