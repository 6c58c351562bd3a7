// SPDX-License-Identifier: Apache-2.0

// Package server is the control plane of a job: its head and the agent of a host in one process
// (NewServer), or each in its own process with a link between them (NewHead, NewAgent). A Server adds
// to these two state machines the lock, the goroutines, the sockets and the clock, and carries out
// what they decide. It also answers the requests of gompictl (tool.go).
package server

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/agent"
	"gompi/internal/control/head"
	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
)

// JobConfig is the configuration of the head.
type JobConfig = head.Config

// HostConfig is the functions that an agent calls. They may be nil. Config says how they are
// called.
type HostConfig struct {
	// Reap is called when no process uses the pid of p any more, so that the launcher may wait for
	// the exited child. It is called once for every process whose Exited was called.
	Reap func(p wire.ProcID)
	// Lost is called when the connection of p has ended LostWait ago (0 is a second), although p
	// has not finalized, and Exited was not called. If the child of p runs on, the answer is
	// Server.Lost. nil: p counts as dead at once.
	Lost     func(p wire.ProcID)
	LostWait time.Duration
	// Dropped is called when the server has ended the connection of p, because p broke the protocol
	// or did not read, or because the head is lost. p should be killed.
	Dropped func(p wire.ProcID, why string)
}

// Config is what the launcher gives to its server. The functions are called without a lock of the
// server, and may call its methods except Close. One goroutine calls all but Start, Launch, Now and
// MaxProcs, one at a time and in order: they should not block. Any function may be nil.
type Config struct {
	JobConfig // but Spawns, Launches and Signals, which Start, Launch and Signal say
	HostConfig
	// Start starts processes for a Spawn, on a goroutine of its own. On an error, which may be a
	// *protocol.NotStarted, none of them counts as started and none may run on. The launcher calls
	// Exited also for those that had been started. nil: a Spawn is refused.
	Start func(procs []protocol.StartProc) error
	// Launch starts the newcomers of a change, on a goroutine of its own, and returns when all are
	// forked. An error is as with Start, and the change is rolled back. nil: a change that needs
	// newcomers is refused.
	Launch func(l *Launch) error
	// Discard is called when the change of these newcomers does not happen, or when their spawn has
	// failed. They hear of it and end by themselves; the launcher kills those that still run after
	// DiscardGrace. However they end, it is no failure of the job. Discard may come during Launch,
	// which then starts no more of them and returns an error. The launcher calls Exited for all
	// that were forked.
	Discard func(procs []wire.ProcID)
	// Signal sends a signal to processes for another process. nil: that is refused.
	Signal func(procs []wire.ProcID, signal int)
	// Kept is called when the change of these newcomers is committed. They are members like any
	// others, and their ends count as those of others.
	Kept func(procs []wire.ProcID)
	// Leave is called when these processes leave by a change that is committed. However they end,
	// it is no failure.
	Leave func(procs []wire.ProcID)
	// Stay is called when the change by which these processes would have left does not happen.
	Stay func(procs []wire.ProcID)
	// Terminate is called when these leaving processes are late. The launcher ends them, by SIGTERM
	// and then by SIGKILL, and says so.
	Terminate func(procs []wire.ProcID)
	// Main is called when gompi://main changes, with its members in order, also those that have
	// died. The callee owns the list.
	Main func(procs []wire.ProcID)
	// HostLost is called when the agent of a host is gone, and with it all that ran there.
	HostLost func(host uint32, why string)
}

// Server is a head, an agent, or both. Its methods may be called from any goroutine. AddJob,
// Ending, Snapshot, State and Stacks need a head; Addr, Token, Started, Joined, Heard, Exited, Lost
// and Stdin need an agent.
type Server struct {
	job  wire.JobID
	host uint32 // the agent's
	cfg  Config
	done chan struct{} // closed by Close

	calls callQueue
	work  sync.WaitGroup // spawns, answers to what the other end asks, what takes the agent long

	// mu guards the following. It is held only for computation.
	mu     sync.Mutex
	closed bool
	head   *head.Head // nil: it is at the other end of up
	down   downLinks
	abroad map[*head.Neighbor]*link.Link
	spares spares
	agent  *agent.Agent // nil: the agents are at the other ends of down
	ln     *agent.Listener
	up     upLink
	alarm  alarm
	// across, if it is not nil, passes each message between head and agent over the wire, in tests.
	across func(protocol.Message) protocol.Message
}

// turn is a step as a lock. Unlock carries out the effects of the step.
type turn struct{ *Server }

func (t turn) Lock()   { t.mu.Lock() }
func (t turn) Unlock() { t.flush(); t.mu.Unlock() }

// NewServer starts to listen at Address(cfg.Job). The caller must Close it.
func NewServer(cfg Config) (*Server, error) {
	s, err := newHead(cfg, make([]*link.Link, 1))
	if err != nil {
		return nil, err
	}
	return s, s.listen(agent.New(cfg.Job, 0, cfg.Reap))
}

// NewHead makes a head without an agent. Each link leads to the agent of one host; the caller runs
// it afterwards. The caller closes the links, and then the Server.
func NewHead(cfg Config, hosts []*link.Link) (*Server, error) {
	s, err := newHead(cfg, hosts)
	if err == nil {
		s.calls.start()
	}
	return s, err
}

// NewAgent makes the agent of a host, which listens at Address(job). Its head is at the other end
// of up, which the caller runs afterwards. The caller closes up, and then the Server.
func NewAgent(job wire.JobID, host uint32, cfg HostConfig, up *link.Link) (*Server, error) {
	s := &Server{job: job, host: host, cfg: Config{HostConfig: cfg}, done: make(chan struct{})}
	s.obey(up)
	return s, s.listen(agent.New(job, host, cfg.Reap))
}

func newHead(cfg Config, hosts []*link.Link) (*Server, error) {
	cfg.Spawns, cfg.Launches, cfg.Signals = cfg.Start != nil, cfg.Launch != nil, cfg.Signal != nil
	if cfg.Now == nil {
		start := time.Now()
		cfg.Now, cfg.Epoch = func() time.Duration { return time.Since(start) }, start
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{job: cfg.Job, cfg: cfg, done: make(chan struct{}), head: head.New(cfg.JobConfig, len(hosts)), abroad: map[*head.Neighbor]*link.Link{}}
	s.reach(hosts)
	return s, nil
}

// listen opens the agent's socket.
func (s *Server) listen(a *agent.Agent) error {
	s.agent = a
	// A process that connects at once waits for the end of this step.
	s.mu.Lock()
	defer s.mu.Unlock()
	lc := agent.ListenerConfig{Step: turn{s}, Tool: s.tool, Lost: s.cfg.Lost, LostWait: s.cfg.LostWait, Dropped: s.cfg.Dropped}
	if l := s.up.link; l != nil {
		lc.Tool, lc.Far = s.askHead, true
	} else {
		lc.Neighbor = s.greeted
	}
	var err error
	if s.ln, err = agent.Listen(a, lc); err == nil {
		s.calls.start()
	}
	return err
}

// Addr returns the value of GOMPI_CONTROL.
func (s *Server) Addr() string { return protocol.Address(s.job, s.host) }

// Token returns the value of GOMPI_TOKEN for a process that was reserved. Only the agent's half of
// a launcher needs it.
func (s *Server) Token(p wire.ProcID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Job == 0 {
		return s.agent.SpareToken(p.Serial)
	}
	return s.agent.Token(p)
}

// AddJob reserves one process for each command line, on the hosts that have room (head.Place): a
// serial, a token, and a segment with its bell. Together they are a new world, whose set it
// returns. The caller starts them and calls Started and Exited for each, also for those that it
// fails to start. On an error nothing is reserved. The error is a *segment.NoMemoryError if memory
// is short.
func (s *Server) AddJob(argv [][]string) ([]protocol.StartProc, wire.Set, error) {
	if len(argv) < 1 || len(argv) > protocol.MaxSpawn {
		return nil, wire.Set{}, fmt.Errorf("cannot start %d processes at once, only 1 to %d", len(argv), protocol.MaxSpawn)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, wire.Set{}, protocol.ErrClosed
	}
	places, err := s.head.Place(len(argv))
	s.mu.Unlock()
	if err != nil {
		return nil, wire.Set{}, err
	}
	if err := s.reserveAll(places); err != nil {
		s.step(func() { s.head.Unplace(places) })
		return nil, wire.Set{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, wire.Set{}, protocol.ErrClosed
	}
	set, err := s.head.Join(argv, places)
	s.flush()
	if err != nil {
		return nil, wire.Set{}, err
	}
	procs := make([]protocol.StartProc, len(argv))
	for i, p := range set.Members.All() {
		procs[i] = protocol.StartProc{Proc: p, Argv: argv[i], Rank: i, Size: len(argv), Host: set.Hosts.At(i)}
	}
	return procs, set, nil
}

// reserveAll reserves the slots that the head has chosen, on all hosts at once. On an error it
// gives them back.
func (s *Server) reserveAll(places []head.Place) error {
	errs := make([]error, len(places))
	var wg sync.WaitGroup
	for i := range places[1:] {
		wg.Go(func() { errs[i+1] = s.reserveFor(&places[i+1]) })
	}
	errs[0] = s.reserveFor(&places[0])
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			s.step(func() { s.head.Unreserve(places) })
			for i := range places {
				places[i].Reservation = 0
			}
			return err
		}
	}
	return nil
}

func (s *Server) reserveFor(at *head.Place) (err error) {
	if at.Spare {
		return nil // it has its place
	}
	at.Reservation, err = s.reserveOn(at.Host, at.Count)
	return err
}

// reserve reserves slots on this host.
func (s *Server) reserve(n int) (reservation uint32, err error) {
	places, err := agent.NewProcs(n) // without the lock: memory is slow
	if err != nil {
		return 0, protocol.Hinted(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		agent.Release(places)
		return 0, protocol.ErrClosed
	}
	return s.agent.Reserve(places), nil
}

// Started tells the pid of the launcher's child for p. Until then no process gets a Contact for p.
// If p turns out to be another process, such as a child of a wrapper, its memory is not copied
// directly.
func (s *Server) Started(p wire.ProcID, pid int) {
	s.step(func() { s.agent.Started(p, pid) })
}

// Joined reports whether p, a process of this host, has joined.
func (s *Server) Joined(p wire.ProcID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent.Joined(p)
}

// Heard reports whether all frames of p, a process of this host whose child has ended, are read:
// the last one may be that it finalizes. If they are not, then is called within seconds, as the
// functions of Config are. The caller calls Exited after that.
func (s *Server) Heard(p wire.ProcID, then func()) (heard bool) {
	s.step(func() { heard = s.ln.Heard(p, then) })
	return heard
}

// Exited tells that p's child has ended, or could not be started. The caller must not wait for the
// child before Reap. How is a short text for people; clean means exit status 0. All processes that
// need p get an event. A second call for the same process does nothing.
func (s *Server) Exited(p wire.ProcID, how string, clean bool) {
	s.step(func() {
		s.ln.Found(p)
		s.agent.Exited(p, how, clean)
	})
}

// Ended tells the exit status of p, before its Exited, for a process that has started p and asks
// how it ends. It needs a head.
func (s *Server) Ended(p wire.ProcID, status int) {
	s.step(func() { s.head.Ended(p, status) })
}

// Lost answers Config.Lost: the program that joined as p is gone without having finalized, while
// the child runs on. All processes that need p hear that it has died. The caller calls Exited as
// always.
func (s *Server) Lost(p wire.ProcID, how string) {
	s.step(func() { s.agent.Lost(p, how) })
}

// Stdin makes a descriptor the standard input of p, a process of this host. The server owns it from
// now on.
func (s *Server) Stdin(p wire.ProcID, fd int) {
	s.step(func() { s.agent.Stdin(p, fd) })
}

// Ending tells every process that the job is ending, and refuses all requests that wait. No process
// can join any more. Events of ends still come.
func (s *Server) Ending(why string) {
	s.step(func() { s.head.End(why) })
}

// Snapshot lists the processes of the job by serial: those that live, and those that have ended and
// are still in a process set.
func (s *Server) Snapshot() []protocol.ProcInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.Snapshot()
}

// Comes reports whether p is a newcomer of a change that may still be committed. If it is not,
// Discard is called later.
func (s *Server) Comes(p wire.ProcID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.Comes(p)
}

// MayLeave reports whether p leaves by a change of which p may know more than the head. If p has
// ended, Config.Leave or Stay was called or will be.
func (s *Server) MayLeave(p wire.ProcID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.MayLeave(p)
}

// Sizes returns the size of each table of the head, and of the agent if it is here.
func (s *Server) Sizes() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.head.Sizes()
	if s.agent != nil {
		maps.Copy(m, s.agent.Sizes())
	}
	return m
}

// State returns the state of a process. It is Exited also for a process that the head has
// forgotten.
func (s *Server) State(p wire.ProcID) protocol.ProcState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.State(p)
}

// Done returns a channel that Close closes.
func (s *Server) Done() <-chan struct{} { return s.done }

// Close ends all connections, makes the calls that are due and frees everything. It does not wait
// for processes to exit.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	s.alarm.stop()
	s.mu.Unlock()
	var err error
	if s.ln != nil {
		err = s.ln.Close()
	}
	s.leaveNeighbors()
	s.work.Wait()
	s.calls.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agent != nil {
		s.agent.Close()
	}
	return err
}

// step changes head or agent, and carries out the effects.
func (s *Server) step(f func()) {
	turn{s}.Lock()
	defer turn{s}.Unlock()
	f()
}

// flush passes messages between head and agent, and carries out the effects, until there are none;
// mu is held. It does not block.
func (s *Server) flush() {
	for more := true; more; {
		more = false
		if s.agent != nil {
			more = s.agent.Report(s.report)
		}
		if s.head != nil {
			more = s.head.Flush(s.effect) || more
		}
		if s.agent != nil {
			more = s.agent.Flush(s.act) || more
		}
	}
	if s.head != nil && !s.closed {
		s.setAlarm()
	}
}

func (s *Server) report(r *protocol.Report) {
	switch {
	case s.head == nil:
		s.up.link.Send(r)
	case s.across != nil:
		s.head.Take(0, s.across(r).(*protocol.Report))
	default:
		s.head.Take(0, r)
	}
}

func (s *Server) effect(e *head.Effect) {
	switch {
	case e.Call != nil:
		s.calls.add(e.Call)
	case e.Launch != nil:
		l := e.Launch
		s.aside(func() { s.launch(l) })
	case e.Start != nil:
		g := e.Start
		s.aside(func() { s.start(g) })
	case e.Neighbor != nil:
		s.toNeighbor(e.Neighbor, e.Say)
	case e.Signal != 0:
		procs, n := e.Procs, e.Signal
		s.calls.add(func() { s.cfg.Signal(procs, n) })
	case e.Fate != 0:
		if f := s.fate(e.Fate); f != nil {
			procs := e.Procs
			s.calls.add(func() { f(procs) })
		}
	case s.agent == nil:
		if l := s.down.links[e.Host]; l != nil { // else it is lost
			l.Send(&e.Order)
		}
	case s.across != nil:
		s.agent.Take(s.across(&e.Order).(*protocol.Command))
	default:
		s.agent.Take(&e.Order)
	}
}

// aside runs what may take long on a goroutine of its own; mu is held.
func (s *Server) aside(f func()) {
	if !s.closed {
		s.work.Go(f)
	}
}

func (s *Server) act(d *agent.Action) {
	switch {
	case d.Call != nil:
		s.calls.add(d.Call)
	case d.Work == nil:
		s.ln.Do(d)
	case s.closed:
		d.Files.Release()
	default:
		w := *d
		s.aside(func() {
			err := w.Work()
			w.Files.Release()
			s.step(func() { w.Done(err) })
		})
	}
}
