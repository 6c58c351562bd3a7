// SPDX-License-Identifier: Apache-2.0

package control

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"gompi/internal/segment"
	"gompi/internal/wire"
)

// helloWait is how long a new connection may take to say who it is.
const helloWait = 30 * time.Second

// Server is the agent's side of the control plane. Its methods may be called
// from any goroutine.
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
	peers  map[uint32]*peer   // by serial
	conns  map[*peer]struct{} // all, also those that have not said hello
	closed bool
	// missing are those whose connection has ended before they had left, until
	// they are known to have exited or to be lost.
	missing  map[uint32]*time.Timer
	lostWait time.Duration
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
	s.st = newState(&s.cfg)
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
	seats, err := newSeats(argv)
	if err != nil {
		return nil, wire.Set{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		releaseSeats(seats)
		return nil, wire.Set{}, ErrClosed
	}
	if !s.st.roomFor(len(seats)) {
		releaseSeats(seats)
		return nil, wire.Set{}, refused("the job has had %d processes and %d process sets: there are no numbers for %d more", s.st.lastProc, s.st.lastSet, len(seats))
	}
	parent := uint32(0)
	if spawn != nil {
		parent = spawn.parent
	}
	set := s.st.add(seats, parent)
	if spawn != nil {
		s.st.hold(set.Number)
	}
	s.flush()
	for i := range seats {
		// The page was written a moment ago: no memory is needed.
		if err := segment.SetOwner(seats[i].files.segment, set.Members.At(i)); err != nil {
			panic("gompi: BUG: " + err.Error())
		}
	}
	procs := make([]StartProc, len(seats))
	for i := range seats {
		procs[i] = StartProc{
			Proc: set.Members.At(i), Token: hex.EncodeToString(seats[i].token[:]),
			Argv: argv[i], Rank: i, Size: len(seats),
		}
	}
	return procs, set, nil
}

// newSeats makes what the processes need. It takes no lock: memory is slow.
func newSeats(argv [][]string) ([]seat, error) {
	var mem segment.Memory
	defer mem.Close()
	seats := make([]seat, 0, len(argv))
	err := mem.Take(int64(len(argv))*segment.InitialBytes, func(k int64) error {
		for range k / segment.InitialBytes {
			f, err := newFiles()
			if err != nil {
				return fmt.Errorf("process %d of %d: %w", len(seats)+1, len(argv), err)
			}
			seat := seat{argv: argv[len(seats)], files: f}
			rand.Read(seat.token[:]) // never fails
			seats = append(seats, seat)
		}
		return nil
	})
	if err != nil {
		releaseSeats(seats)
		return nil, err
	}
	return seats, nil
}

func releaseSeats(seats []seat) {
	for _, seat := range seats {
		seat.files.release()
	}
}

// Started reports the pid of the launcher's child for p. Until then nobody is
// put in contact with p. If p turns out to be another process (a child of a
// wrapper), its memory is not copied directly.
func (s *Server) Started(p wire.ProcID, pid int) {
	s.step(func(st *state) {
		if q := st.proc(p); q != nil {
			st.started(q, pid)
		}
	})
}

// Exited reports that p's child has ended (or could not be started). The
// caller must not wait for the child before Reap. How is a short text for
// people, clean means exit status 0. Everybody who needs p is told. A second
// call for the same process does nothing.
func (s *Server) Exited(p wire.ProcID, how string, clean bool) {
	s.step(func(st *state) {
		q := st.proc(p)
		if q == nil {
			return
		}
		s.found(p.Serial)
		st.exited(q, how, clean)
		if c := s.peers[p.Serial]; c != nil && !q.direct() {
			// Somebody else spoke for the child; without it he has no place
			// in the job. The child itself needs no help to be disconnected,
			// and what it said last is still read.
			c.shut(fmt.Sprintf("process %v has ended: %s", p, q.how), true)
		}
	})
}

// Lost says that the program that joined as p is gone without having left in
// order, while the child runs on, in answer to ServerConfig.Lost. Everybody is
// told that p has died. Its exit is to be reported as always.
func (s *Server) Lost(p wire.ProcID, how string) {
	s.step(func(st *state) {
		if q := st.proc(p); q != nil {
			st.lost(q, how)
		}
	})
}

// miss waits for the end of a process whose connection has ended. mu is held.
func (s *Server) miss(p *proc) {
	if p.state != Joined || s.closed {
		return
	}
	s.missing[p.id.Serial] = time.AfterFunc(s.lostWait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.missing[p.id.Serial] == nil {
			return
		}
		delete(s.missing, p.id.Serial)
		if s.cfg.Lost != nil {
			s.st.call(s.cfg.Lost, p)
		} else {
			s.st.lost(p, "has lost its connection to gompirun")
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
	s.step(func(st *state) { st.end(why) })
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
	for _, p := range s.st.procs {
		p.files.release()
		p.files = nil
	}
	for key, c := range s.st.commons {
		c.files.release()
		delete(s.st.commons, key)
	}
	return err
}

// step changes the state and carries out what follows from it.
func (s *Server) step(f func(st *state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.st)
	s.flush()
}

// flush carries out the effects of a step; mu is held. Nothing here blocks.
func (s *Server) flush() {
	for i, e := range s.st.out {
		s.st.out[i] = effect{}
		switch {
		case e.do != nil:
			s.calls.add(e.do)
		case e.spawn != nil:
			if !s.closed {
				s.wg.Go(func() { s.spawn(e.spawn) })
			}
		case s.peers[e.to] == nil:
			e.files.release()
		case e.host:
			s.peers[e.to].sendHost(e.frame)
		case e.late:
			s.peers[e.to].sendLate(e.frame, time.Duration(len(s.st.joined))*lateEach)
		default:
			s.peers[e.to].send(e.frame, e.files)
		}
	}
	s.st.out = s.st.out[:0]
	if cap(s.st.out) > 1<<12 {
		s.st.out = nil
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
	s.step(func(st *state) { st.spawned(r, set, err) })
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
		p.shut("protocol error: "+bad.Error(), true)
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
	q := s.st.bySerial(p.serial) // kept while it is connected
	s.st.disconnected(q)
	s.miss(q)
	if f := s.cfg.Dropped; f != nil && byAgent && !s.closed {
		s.st.out = append(s.st.out, effect{do: func() { f(wire.ProcID{Job: s.cfg.Job, Serial: p.serial}, why) }})
	}
	s.flush()
}

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
			err = s.st.frame(p.serial, f)
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
	return s.st.bySerial(serial).direct()
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
	serial, err := s.st.hello(m.token, p.pid)
	if err != nil {
		p.shut(err.Error(), true)
		return err
	}
	p.serial = serial
	s.peers[serial] = p
	s.flush()
	return nil
}
