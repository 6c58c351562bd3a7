// SPDX-License-Identifier: Apache-2.0

// Package onehost is the control plane of a job: its head, and the agent of a host,
// in one process (NewServer), or each in its own with a connection between them
// (NewHead, NewAgent).
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

// JobConfig is what the head is told of its job.
type JobConfig = head.Config

// HostConfig is what an agent calls. The functions may be nil; see Config for how
// they are called.
type HostConfig struct {
	// Reap: nobody uses p's pid any more; the exited child may be waited
	// for. Called once for every process whose Exited was called.
	Reap func(p wire.ProcID)
	// Lost: the connection of p has ended a while ago (LostWait; 0: a second),
	// though p has not left in order, and Exited was not called. If its child
	// runs on, the answer is Server.Lost. nil: p counts as dead without more
	// ado.
	Lost     func(p wire.ProcID)
	LostWait time.Duration
	// Dropped: the server ended p's connection because p broke the protocol
	// or did not read, or the head is lost; p should be killed.
	Dropped func(p wire.ProcID, why string)
}

// Config is what the launcher gives to its server. The functions are
// called without any lock of the server held and may call its methods except
// Close. All but Start, Launch, Now and MaxProcs are called one at a time and in order, by
// one goroutine: they should not block. Any function may be nil.
type Config struct {
	JobConfig // but Spawns, Launches and Signals, which Start, Launch and Signal say
	HostConfig
	// Start launches processes for a Spawn, on a goroutine of its own. On an
	// error, which may be a *protocol.NotStarted, none of them counts as started and none
	// may run on; those that had been started are reported with Exited all the same. nil:
	// Spawn is refused.
	Start func(procs []protocol.StartProc) error
	// Launch starts the newcomers of a change, on a goroutine of its own, and
	// returns when all are forked, or why not: then it is as with Start, and the
	// change is rolled back. nil: a change that needs newcomers is refused.
	Launch func(l *Launch) error
	// Discard: the change of these newcomers does not happen, or the spawn that they are
	// of has failed. They are told, and end
	// by themselves; who still runs after DiscardGrace is to be killed. However they
	// end is no failure of the job. It may come while Launch is at work, which then
	// starts no more of them and returns an error. Exited follows for all that were
	// forked.
	Discard func(procs []wire.ProcID)
	// Signal: a process wants these to get a signal. nil: it is refused.
	Signal func(procs []wire.ProcID, signal int)
	// Kept: the change of these newcomers is committed; they are members like any
	// others, and their ends count as those of others.
	Kept func(procs []wire.ProcID)
	// Leave: these processes leave by a change that is committed. Their ends are no
	// failures, however they come about.
	Leave func(procs []wire.ProcID)
	// Stay: these processes were to leave by a change that does not happen.
	Stay func(procs []wire.ProcID)
	// Terminate: these leavers are late. They are to be ended, by SIGTERM and then by
	// SIGKILL, and people are to be told.
	Terminate func(procs []wire.ProcID)
	// Main: this is who is in gompi://main, in order, whenever that changes; also
	// who has died since it was made. The list is the callee's to keep.
	Main func(procs []wire.ProcID)
	// HostLost: the agent of a host, and so all that ran there, is gone.
	HostLost func(host uint32, why string)
}

// Server is a head, an agent, or both. Its methods may be called from any
// goroutine. AddJob, Ending, Snapshot, State and Stacks are a head's, Addr, Token,
// Started, Joined, Heard, Exited, Lost and Stdin an agent's.
type Server struct {
	job  wire.JobID
	host uint32 // the agent's
	cfg  Config
	done chan struct{} // closed by Close

	calls callQueue
	work  sync.WaitGroup // spawns, answers to what the other end asks, what takes the agent long

	// mu guards what follows. It is held only for computation.
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
	// across, if not nil, makes what arrives of what one of head and agent
	// tells the other.
	across func(protocol.Message) protocol.Message
}

// turn is a step as a lock: Unlock carries out what follows.
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

// NewHead makes a head without an agent: each link, which is yet to be Run, leads
// to the agent of one host. The caller closes the links, and then the Server.
func NewHead(cfg Config, hosts []*link.Link) (*Server, error) {
	s, err := newHead(cfg, hosts)
	if err == nil {
		s.calls.start()
	}
	return s, err
}

// NewAgent makes the agent of a host, which listens at Address(job). Its head is at
// the other end of up, which is yet to be Run. The caller closes up, and then the
// Server.
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
	// Whoever connects at once waits for the end of this step.
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

// Addr is the value for GOMPI_CONTROL.
func (s *Server) Addr() string { return protocol.Address(s.job, s.host) }

// Token is what p, which was reserved, shows when it is started: the value for
// GOMPI_TOKEN. Only the agent's half of a launcher needs it.
func (s *Server) Token(p wire.ProcID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Job == 0 {
		return s.agent.SpareToken(p.Serial)
	}
	return s.agent.Token(p)
}

// AddJob reserves one process for each command line, on the hosts that have room
// (head.Place): a serial, a token, a segment with its bell. Together they are a new world, whose set it returns.
// The caller starts them and reports each with Started and Exited, also those
// that it fails to start. On an error, which is a *segment.NoMemoryError if
// memory is short, nothing is reserved.
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

// reserveAll takes the places that the head has chosen, on all hosts at once. On an
// error they are given back.
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

// reserve takes places on this host.
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

// Started reports the pid of the launcher's child for p. Until then nobody is
// put in contact with p. If p turns out to be another process (a child of a
// wrapper), its memory is not copied directly.
func (s *Server) Started(p wire.ProcID, pid int) {
	s.step(func() { s.agent.Started(p, pid) })
}

// Joined reports whether p, a process of this host, has joined.
func (s *Server) Joined(p wire.ProcID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent.Joined(p)
}

// Heard reports whether all was heard that p, a process of this host whose child has
// ended, has said: what it said last may be that it leaves. Else then is called, as
// those of Config, when it was, but within seconds. Exited comes after that.
func (s *Server) Heard(p wire.ProcID, then func()) (heard bool) {
	s.step(func() { heard = s.ln.Heard(p, then) })
	return heard
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

// Ended is the exit status of p, before its Exited: who has started it may ask for that.
// It is a head's.
func (s *Server) Ended(p wire.ProcID, status int) {
	s.step(func() { s.head.Ended(p, status) })
}

// Lost says that the program that joined as p is gone without having left in
// order, while the child runs on, in answer to Config.Lost. Everybody is
// told that p has died. Its exit is to be reported as always.
func (s *Server) Lost(p wire.ProcID, how string) {
	s.step(func() { s.agent.Lost(p, how) })
}

// Stdin makes a descriptor, which the server owns from now on, the standard input of
// p, a process of this host.
func (s *Server) Stdin(p wire.ProcID, fd int) {
	s.step(func() { s.agent.Stdin(p, fd) })
}

// Ending tells every process that the job is ending and ends all that they
// wait for. Nobody can join any more. Deaths are still announced.
func (s *Server) Ending(why string) {
	s.step(func() { s.head.End(why) })
}

// Snapshot lists the processes of the job by serial: those that live, and of
// those that have ended the ones that a process set still names.
func (s *Server) Snapshot() []protocol.ProcInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.Snapshot()
}

// Comes reports whether p is a newcomer of a change that may still be committed: Discard
// is called later of one that is not to be.
func (s *Server) Comes(p wire.ProcID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.Comes(p)
}

// MayLeave reports whether p leaves by a change of which it may know more than the
// head: if it has ended, Config.Leave or Stay says what that was, or has said it.
func (s *Server) MayLeave(p wire.ProcID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.MayLeave(p)
}

// Sizes is how much each table of the head holds, and of the agent if it is here.
func (s *Server) Sizes() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.head.Sizes()
	if s.agent != nil {
		maps.Copy(m, s.agent.Sizes())
	}
	return m
}

// State is how far a process is; Exited, too, of one that nothing is known of any
// more.
func (s *Server) State(p wire.ProcID) protocol.ProcState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.State(p)
}

// Done is closed by Close.
func (s *Server) Done() <-chan struct{} { return s.done }

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
		more = false
		if s.agent != nil {
			more = s.agent.Report(s.report)
		}
		if s.head != nil {
			more = s.head.Flush(s.effect) || more
		}
		if s.agent != nil {
			more = s.agent.Flush(s.deed) || more
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

// aside does what may take long on a goroutine of its own; mu is held.
func (s *Server) aside(f func()) {
	if !s.closed {
		s.work.Go(f)
	}
}

func (s *Server) deed(d *agent.Deed) {
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
