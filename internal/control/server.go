// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"gompi/internal/wire"
)

// helloWait is how long a new connection may take to say who it is.
const helloWait = 30 * time.Second

// Server is the control plane of a job on one host: the head, and the agent of
// that host, which is number 0. Its methods may be called from any goroutine.
type Server struct {
	cfg  ServerConfig
	addr string
	ln   *net.UnixListener
	done chan struct{} // closed by Close

	calls callQueue
	wg    sync.WaitGroup // accept, readers, writers, spawns

	// mu guards what follows. It is held only for computation.
	mu     sync.Mutex
	st     *state
	agent  *agent
	peers  map[uint32]*peer   // by serial
	conns  map[*peer]struct{} // all, also those that have not said hello
	closed bool
	// missing are those whose connection has ended before they had left, until
	// they are known to have exited or to be lost.
	missing  map[uint32]*time.Timer
	lostWait time.Duration
	// across, if not nil, makes what arrives of what one of head and agent
	// tells the other.
	across func(message) message
}

// lostWait is how long after the end of its connection a process may take to
// exit, and a wrapper to tell how what it ran has ended.
const lostWait = time.Second

// NewServer starts to listen at Address(cfg.Job). The caller must Close it.
func NewServer(cfg ServerConfig) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	addr := Address(cfg.Job)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s := &Server{
		cfg: cfg, addr: addr, ln: ln,
		done:  make(chan struct{}),
		peers: map[uint32]*peer{},
		conns: map[*peer]struct{}{}, missing: map[uint32]*time.Timer{}, lostWait: lostWait,
	}
	s.st, s.agent = newState(&s.cfg), newAgent(&s.cfg, 0)
	s.calls.start()
	s.wg.Go(s.accept)
	return s, nil
}

func (cfg *ServerConfig) validate() error {
	if cfg.Job == 0 {
		return errors.New("control: job id is 0")
	}
	if len(cfg.Settings) > maxSettings {
		return fmt.Errorf("control: %d settings, at most %d allowed", len(cfg.Settings), maxSettings)
	}
	total := 0
	for k, v := range cfg.Settings {
		if total += len(k) + len(v); total > maxAllSettings {
			return fmt.Errorf("control: settings of more than %d bytes", maxAllSettings)
		}
		if len(k) > maxSetting || len(v) > maxSetting {
			return fmt.Errorf("control: setting %.40q has %d bytes, at most %d allowed", k, max(len(k), len(v)), maxSetting)
		}
	}
	cfg.UsableCPUs = min(max(0, cfg.UsableCPUs), maxMembers)
	return nil
}

// Addr is the value for GOMPI_CONTROL.
func (s *Server) Addr() string { return s.addr }

// AddJob reserves one process for each command line: a serial, a token, a
// segment with its bell. Together they are a new world, whose set it returns.
// The caller starts them and reports each with Started and Exited, also those
// that it fails to start. On an error, which is a *segment.NoMemoryError if
// memory is short, nothing is reserved.
func (s *Server) AddJob(argv [][]string) ([]StartProc, wire.Set, error) {
	return s.add(argv, nil)
}

// add is AddJob, for a Spawn if there is one.
func (s *Server) add(argv [][]string, spawn *spawnReq) ([]StartProc, wire.Set, error) {
	if len(argv) < 1 || len(argv) > MaxSpawn {
		return nil, wire.Set{}, fmt.Errorf("cannot start %d processes at once, only 1 to %d", len(argv), MaxSpawn)
	}
	seats, err := newSeats(len(argv)) // without the lock: memory is slow
	if err != nil {
		return nil, wire.Set{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		releaseSeats(seats)
		return nil, wire.Set{}, ErrClosed
	}
	reservation := s.agent.reserve(seats)
	set, err := s.st.join(argv, spawn, s.agent.host, reservation)
	s.flush()
	if err != nil {
		return nil, wire.Set{}, err
	}
	procs := make([]StartProc, len(argv))
	for i, p := range set.Members.All() {
		// The page was written a moment ago: no memory is needed.
		if err := seats[i].files.own(p); err != nil {
			panic("gompi: BUG: " + err.Error())
		}
		procs[i] = StartProc{Proc: p, Token: s.agent.token(p.Serial), Argv: argv[i], Rank: i, Size: len(argv)}
	}
	return procs, set, nil
}

// Started reports the pid of the launcher's child for p. Until then nobody is
// put in contact with p. If p turns out to be another process (a child of a
// wrapper), its memory is not copied directly.
func (s *Server) Started(p wire.ProcID, pid int) {
	s.step(p, func(q *seat) { s.agent.started(q, pid) })
}

// Exited reports that p's child has ended (or could not be started). The
// caller must not wait for the child before Reap. How is a short text for
// people, clean means exit status 0. Everybody who needs p is told. A second
// call for the same process does nothing.
func (s *Server) Exited(p wire.ProcID, how string, clean bool) {
	s.step(p, func(q *seat) {
		s.found(p.Serial)
		s.agent.exited(q, how, clean)
	})
}

// Lost says that the program that joined as p is gone without having left in
// order, while the child runs on, in answer to ServerConfig.Lost. Everybody is
// told that p has died. Its exit is to be reported as always.
func (s *Server) Lost(p wire.ProcID, how string) {
	s.step(p, func(q *seat) { s.agent.lost(q, how) })
}

// miss waits for the end of a process whose connection has ended. mu is held.
func (s *Server) miss(q *seat) {
	if q.state != Joined || s.closed {
		return
	}
	s.missing[q.serial] = time.AfterFunc(s.lostWait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.missing[q.serial] == nil {
			return
		}
		delete(s.missing, q.serial)
		if s.cfg.Lost != nil {
			s.agent.call(s.cfg.Lost, q)
		} else {
			s.agent.lost(q, "has lost its connection to gompirun")
		}
		s.flush()
	})
}

// found ends miss. mu is held.
func (s *Server) found(serial uint32) {
	if t := s.missing[serial]; t != nil {
		t.Stop()
		delete(s.missing, serial)
	}
}

// Ending tells every process that the job is ending and ends all that they
// wait for. Nobody can join any more. Deaths are still announced.
func (s *Server) Ending(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.st.end(why)
	s.flush()
}

// Snapshot lists the processes of the job by serial: those that live, and of
// those that have ended the ones that a process set still names.
func (s *Server) Snapshot() []ProcInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st.snapshot()
}

// State is how far a process is; Exited, too, of one that nothing is known of any
// more.
func (s *Server) State(p wire.ProcID) ProcState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.st.proc(p); q != nil {
		return q.state
	}
	return Exited
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
	for p := range s.conns {
		p.shut("gompirun has ended", true)
	}
	for serial := range s.missing {
		s.found(serial)
	}
	s.mu.Unlock()
	err := s.ln.Close()
	s.wg.Wait()
	s.calls.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agent.close()
	return err
}

// step lets the agent learn something of a process of which it has something, and
// carries out what follows from it.
func (s *Server) step(p wire.ProcID, f func(q *seat)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.agent.seats[p.Serial]; q != nil && p.Job == s.cfg.Job {
		f(q)
		s.flush()
	}
}

// flush lets head and agent learn what the other has told, and carries out what
// follows; mu is held. Nothing here blocks.
func (s *Server) flush() {
	for a, st := s.agent, s.st; len(a.up)+len(a.out)+len(st.out) > 0; {
		for i := range a.up {
			s.report(&a.up[i])
		}
		a.up = emptied(a.up)
		for i := range st.out {
			s.effect(&st.out[i])
		}
		st.out = emptied(st.out)
		for i := range a.out {
			s.deed(&a.out[i])
		}
		a.out = emptied(a.out)
	}
}

// emptied is a list to be filled again; it keeps no more memory than many steps
// need.
func emptied[T any](list []T) []T {
	if cap(list) > 1<<10 {
		return nil
	}
	clear(list)
	return list[:0]
}

func (s *Server) report(r *report) {
	if s.across != nil {
		r = &s.across(&reportMsg{*r}).(*reportMsg).r
	}
	s.st.take(r)
}

func (s *Server) effect(e *effect) {
	switch {
	case e.do != nil:
		s.calls.add(e.do)
	case e.spawn != nil:
		if r := e.spawn; !s.closed {
			s.wg.Go(func() { s.spawn(r) })
		}
	default:
		o := &e.order
		if s.across != nil {
			o = &s.across(&orderMsg{*o}).(*orderMsg).o
		}
		s.agent.take(o)
	}
}

func (s *Server) deed(d *deed) {
	p := s.peers[d.to]
	switch {
	case d.do != nil:
		s.calls.add(d.do)
	case p == nil:
		d.files.release()
	case d.shut != "":
		p.shut(d.shut, true)
	case d.host:
		p.sendHost(d.frame)
	case d.late > 0:
		p.sendLate(d.frame, d.late)
	default:
		p.send(d.frame, d.files)
	}
}

func (s *Server) spawn(r *spawnReq) {
	argv := make([][]string, r.n)
	for i := range argv {
		argv[i] = r.argv
	}
	procs, set, err := s.add(argv, r)
	if err == nil {
		err = s.cfg.Start(procs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.st.spawned(r, set, err)
	s.flush()
}

func (s *Server) accept() {
	pause := time.Millisecond
	for {
		conn, err := s.ln.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors or memory: the clients wait in the backlog.
			select {
			case <-s.done:
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = time.Millisecond
		p := newPeer(conn)
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			conn.Close()
			return
		}
		s.conns[p] = struct{}{}
		s.wg.Go(func() { s.serve(p) })
		s.mu.Unlock()
	}
}

// serve is the reader's goroutine of one connection.
func (s *Server) serve(p *peer) {
	go p.write()
	err := s.converse(p)
	var bad *protocolError
	if errors.As(err, &bad) {
		p.shut(protocolBroken(bad), true)
	}
	p.shut("", false)
	<-p.written
	p.conn.Close()
	p.unfollow()

	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, p)
	if p.serial == 0 {
		return
	}
	delete(s.peers, p.serial)
	p.mu.Lock()
	byAgent, why := p.byAgent, p.bye
	p.mu.Unlock()
	q := s.agent.seats[p.serial]
	s.agent.hungUp(q)
	s.miss(q)
	if f := s.cfg.Dropped; f != nil && byAgent && !s.closed {
		s.agent.call(func(id wire.ProcID) { f(id, why) }, q)
	}
	s.flush()
}

// protocolBroken is what who breaks the protocol is told.
func protocolBroken(err error) string { return "protocol error: " + err.Error() }

// converse reads frames until the connection ends.
func (s *Server) converse(p *peer) error {
	uid, pid, err := credentials(p.conn)
	if err != nil {
		return err
	}
	if own := os.Geteuid(); uid != own && uid != 0 {
		return &protocolError{fmt.Errorf("user %d may not join a job of user %d", uid, own)}
	}
	p.pid = pid
	if err := p.conn.SetReadDeadline(time.Now().Add(helloWait)); err != nil {
		return err
	}
	var buf []byte
	f, err := p.read(&buf, kHello.bodyLimit())
	if err != nil {
		return err
	}
	switch f.kind {
	case kHello:
		if err := s.hello(p, f); err != nil {
			return err
		}
	case kTool:
		if err := decode(&emptyMsg{kTool}, f.body); err != nil {
			return &protocolError{err}
		}
	default:
		return &protocolError{fmt.Errorf("first frame has kind %d", f.kind)}
	}
	if !p.settled() {
		return nil
	}
	if p.serial != 0 && !s.direct(p.serial) {
		p.follow()
	}
	for p.waitRoom() {
		f, err := p.read(&buf, maxBody)
		if err != nil {
			return err
		}
		if p.serial == 0 {
			err = s.toolFrame(p, f)
		} else {
			s.mu.Lock()
			err = s.agent.frame(s.agent.seats[p.serial], f) // kept while it is connected
			s.flush()
			s.mu.Unlock()
		}
		if err != nil {
			return &protocolError{err}
		}
	}
	return nil
}

// direct tells whether a process is known to be the launcher's own child.
func (s *Server) direct(serial uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent.seats[serial].direct()
}

// settled lifts the deadline of the hello; false if the connection is closing.
func (p *peer) settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closing && p.conn.SetReadDeadline(time.Time{}) == nil
}

// hello admits a process.
func (s *Server) hello(p *peer, f frame) error {
	var m helloMsg
	if err := decode(&m, f.body); err != nil {
		return &protocolError{err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	q, err := s.agent.hello(m.token, p.pid)
	if err != nil {
		p.shut(err.Error(), true)
		return err
	}
	p.serial = q.serial
	s.peers[q.serial] = p
	s.flush()
	return nil
}
