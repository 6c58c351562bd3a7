// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// helloWait is how long a new connection may take to its first frame.
const helloWait = 30 * time.Second

// lostWait is how long a process may take to exit after the end of its connection, and a wrapper to exit
// after its child.
const lostWait = time.Second

// ListenerConfig is what a Listener needs of its owner. The functions are called as actions of the
// agent.
type ListenerConfig struct {
	// Step guards the agent: Lock begins a step, Unlock ends it and carries out the reports and
	// actions that follow.
	Step sync.Locker
	// Tool answers a frame of a tool by calls of tell, which is false when the connection is closing.
	// It may block. An error means that the tool broke the protocol.
	Tool func(f protocol.Frame, tell func(frame []byte) bool) error
	// Neighbor takes over the connection with the head of another job, which has greeted. It does not
	// block. nil: there is no head here, and the connection is refused.
	Neighbor func(conn net.Conn, m *protocol.Greet)
	// Far: the head is elsewhere. It has a frame of a process only when it has said so (CmdTaken).
	Far bool
	// Lost is called when the connection of p has ended LostWait ago, although p has not finalized and
	// its child was not seen to exit. If the child runs on, the answer is Agent.Lost. nil: p counts as
	// dead at once.
	Lost func(p wire.ProcID)
	// LostWait is how long after the end of a connection Lost is called. 0 is a second.
	LostWait time.Duration
	// Dropped is called when the connection of p was ended because p broke the protocol or did not
	// read. p should be killed. It may be nil.
	Dropped func(p wire.ProcID, why string)
}

// Listener is the socket of an agent and its connections.
type Listener struct {
	cfg   ListenerConfig
	agent *Agent
	ln    *net.UnixListener
	done  chan struct{}  // closed by Close
	wg    sync.WaitGroup // accept, readers, writers

	// A step guards the following.
	peers  map[uint32]*peer   // processes, by serial
	conns  map[*peer]struct{} // all connections, also those before hello
	closed bool
	shut   bool // Shut was called
	// hearings wait for the ends of connections whose processes have exited.
	hearings map[uint32]*hearing
	// missing has the processes whose connections ended before they finalized, until they are known to
	// have exited or to be lost.
	missing map[uint32]*time.Timer
	// mismatches: a process has said hello in another protocol.
	mismatches bool
}

// Listen opens the socket at Address(job). The caller must Close it.
func Listen(a *Agent, cfg ListenerConfig) (*Listener, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: protocol.Address(a.job, a.host), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if cfg.LostWait == 0 {
		cfg.LostWait = lostWait
	}
	l := &Listener{
		cfg:      cfg,
		agent:    a,
		ln:       ln,
		done:     make(chan struct{}),
		peers:    map[uint32]*peer{},
		conns:    map[*peer]struct{}{},
		hearings: map[uint32]*hearing{},
		missing:  map[uint32]*time.Timer{},
	}
	l.wg.Go(l.accept)
	return l, nil
}

// Close ends all connections. It does not wait for processes to exit.
func (l *Listener) Close() error {
	l.cfg.Step.Lock()
	l.closed = true
	close(l.done)
	l.Shut("gompirun has ended")
	for serial := range l.missing {
		l.found(serial)
	}
	l.cfg.Step.Unlock()
	err := l.ln.Close()
	l.wg.Wait()
	return err
}

// Shut ends all connections, in a step. New ones are not admitted.
func (l *Listener) Shut(why string) {
	l.shut = true
	for p := range l.conns {
		p.shut(why, true)
	}
}

// Do carries out an action about a connection, in the step that has it.
func (l *Listener) Do(d *Action) {
	p := l.peers[d.To]
	switch {
	case p == nil:
		d.Files.Release()
	case d.shut != "":
		p.shut(d.shut, true)
	case d.host:
		p.sendHost(d.Frame)
	case d.taken > 0:
		p.taken(d.taken)
	case d.left:
		p.dropLate()
	case d.late > 0:
		p.sendLate(d.Frame, d.late)
	default:
		p.send(d.Frame, d.Files)
	}
}

// miss waits for the end of a process whose connection has ended, in a step.
func (l *Listener) miss(s *Proc) {
	if s.state != protocol.Joined || l.closed {
		return
	}
	l.missing[s.serial] = time.AfterFunc(l.cfg.LostWait, func() {
		l.cfg.Step.Lock()
		defer l.cfg.Step.Unlock()
		if l.missing[s.serial] == nil {
			return
		}
		delete(l.missing, s.serial)
		if s.state != protocol.Joined {
			return // it has finalized, as the head found, and may end at any moment
		}
		if l.cfg.Lost != nil {
			l.agent.call(l.cfg.Lost, s)
		} else {
			l.agent.Lost(l.agent.id(s), "has lost its connection to gompirun")
		}
	})
}

// Found takes it, in a step, that the child of p has ended, so that Lost is not called.
func (l *Listener) Found(p wire.ProcID) {
	if p.Job == l.agent.job {
		l.found(p.Serial)
	}
}

func (l *Listener) found(serial uint32) {
	if t := l.missing[serial]; t != nil {
		t.Stop()
		delete(l.missing, serial)
	}
}

// hearing is what to do when all frames of a process are read.
type hearing struct {
	then  func()
	timer *time.Timer
}

// hearWait is how long the frames of an exited process may take. Its connection ends with it, unless
// another process has it, too.
const hearWait = 5 * time.Second

// Heard reports, in a step, whether the connection of p, whose child has exited, has ended, so that all
// frames of p are read. If it has not, then is called when it has, or after a while: the connection of
// a process behind a wrapper may never end.
func (l *Listener) Heard(p wire.ProcID, then func()) bool {
	if p.Job != l.agent.job || l.peers[p.Serial] == nil || l.closed {
		return true
	}
	wait := hearWait
	if !l.agent.procs[p.Serial].direct() {
		wait = l.cfg.LostWait
	}
	w := &hearing{then: then}
	w.timer = time.AfterFunc(wait, func() {
		l.cfg.Step.Lock()
		defer l.cfg.Step.Unlock()
		l.heard(p.Serial)
	})
	l.hearings[p.Serial] = w
	return false
}

func (l *Listener) heard(serial uint32) {
	if w := l.hearings[serial]; w != nil {
		w.timer.Stop()
		delete(l.hearings, serial)
		l.agent.out = append(l.agent.out, Action{Call: w.then})
	}
}

// Sizes returns the size of each table, in a step.
func (l *Listener) Sizes() map[string]int {
	m := map[string]int{"connections": len(l.conns), "joined connections": len(l.peers), "missing": len(l.missing), "hearings": len(l.hearings)}
	for p := range l.conns {
		p.mu.Lock()
		m["bytes queued"] += p.bytes
		p.mu.Unlock()
	}
	return m
}

func (l *Listener) accept() {
	pause := time.Millisecond
	for {
		conn, err := l.ln.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// There are no descriptors or no memory. The clients wait in the backlog.
			select {
			case <-l.done:
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = time.Millisecond
		if !l.admit(newPeer(conn)) {
			conn.Close()
			return
		}
	}
}

// admit begins to serve a connection; false if the listener is closed.
func (l *Listener) admit(p *peer) bool {
	l.cfg.Step.Lock()
	defer l.cfg.Step.Unlock()
	if l.shut {
		return false
	}
	l.conns[p] = struct{}{}
	l.wg.Go(func() { l.serve(p) })
	return true
}

// serve is the reader's goroutine of one connection.
func (l *Listener) serve(p *peer) {
	go p.write()
	err := l.converse(p)
	if g := (*greeting)(nil); errors.As(err, &g) {
		l.handOver(p, &g.Greet)
		return
	}
	var bad *protocolError
	if errors.As(err, &bad) {
		p.shut(protocol.ProtocolBroken(bad), true)
	}
	p.shut("", false)
	<-p.written
	p.conn.Close()
	if s := l.hungUp(p); s != nil && p.pidfd != nil {
		l.wg.Go(func() { l.outlive(p, s) })
	} else {
		p.unfollow()
	}
}

// outlive waits for the end of the program that joined as s, which may touch its shared memory until
// then.
func (l *Listener) outlive(p *peer, s *Proc) {
	defer p.unfollow()
	select {
	case <-p.gone:
	case <-l.done:
		return
	}
	l.cfg.Step.Lock()
	defer l.cfg.Step.Unlock()
	l.agent.gone(s)
}

// hungUp is the step in which a connection has ended. It returns the process if that holds memory until
// its own end, which nothing but its pidfd tells.
func (l *Listener) hungUp(p *peer) *Proc {
	l.cfg.Step.Lock()
	defer l.cfg.Step.Unlock()
	delete(l.conns, p)
	if p.serial == 0 {
		return nil
	}
	delete(l.peers, p.serial)
	l.heard(p.serial)
	p.mu.Lock()
	byAgent, why := p.byAgent, p.bye
	p.mu.Unlock()
	s := l.agent.procs[p.serial]
	l.agent.HungUp(p.serial)
	l.miss(s)
	if f := l.cfg.Dropped; f != nil && byAgent && !l.closed {
		l.agent.call(func(id wire.ProcID) { f(id, why) }, s)
	}
	if s.direct() || len(s.holds) == 0 {
		return nil
	}
	select {
	case <-p.gone:
		l.agent.gone(s)
		return nil
	default:
		return s
	}
}

// converse reads frames until the connection ends.
func (l *Listener) converse(p *peer) error {
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
	f, err := p.read(&buf, protocol.KindGreet.BodyLimit())
	if e := (*protocol.VersionError)(nil); errors.As(err, &e) && e.Opens() {
		return l.mismatch(p, e)
	}
	if err != nil {
		return err
	}
	switch f.Kind {
	case protocol.KindHello:
		if err := l.hello(p, f); err != nil {
			return err
		}
	case protocol.KindTool:
		if err := protocol.Decode(&protocol.Tool{}, f.Body); err != nil {
			return &protocolError{err}
		}
	case protocol.KindGreet:
		g := new(greeting)
		if err := protocol.Decode(&g.Greet, f.Body); err != nil || p.in.Buffered() > 0 {
			return &protocolError{errors.Join(err, errors.New("a head says more than its greeting"))}
		}
		if l.cfg.Neighbor == nil {
			p.shut(protocol.Refused("job %016x is on several hosts", uint64(l.agent.job)).Error(), true)
			return net.ErrClosed
		}
		return g
	default:
		return &protocolError{fmt.Errorf("first frame is %v", f.Kind)}
	}
	if !p.settled() {
		return nil
	}
	if p.serial != 0 && !l.direct(p.serial) {
		p.follow()
	}
	for p.waitRoom() {
		f, err := p.read(&buf, protocol.MaxBody)
		if err != nil {
			return err
		}
		if p.serial == 0 {
			err = l.cfg.Tool(f, p.tell)
		} else {
			err = l.frame(p, f)
		}
		if err != nil {
			return &protocolError{err}
		}
	}
	return nil
}

// mismatchWait is how long a process of another protocol waits for the answer, if another one
// has it.
const mismatchWait = time.Second

// mismatch tells a peer of another protocol, whose first frame this is, that the two do not
// work together. All processes of a program would print the same line. So the first has its answer
// at once, and ends the job, unless the job has fault tolerance. The others wait a moment,
// in which they are killed.
func (l *Listener) mismatch(p *peer, e *protocol.VersionError) error {
	why, err := p.mismatched(e)
	if err != nil {
		return err
	}
	if e.Kind == protocol.KindHello {
		l.cfg.Step.Lock()
		wait := mismatchWait
		switch {
		case l.mismatches:
		case l.agent.host == 0:
			wait = 0
		default:
			wait /= 2 // there may be one on the first host
		}
		l.mismatches = true
		l.cfg.Step.Unlock()
		select {
		case <-time.After(wait):
		case <-l.done:
		}
	}
	p.shut(why.Error(), true)
	return why
}

// frame handles one frame of a process, as a step.
func (l *Listener) frame(p *peer, f protocol.Frame) error {
	l.cfg.Step.Lock()
	defer l.cfg.Step.Unlock()
	passed, err := l.agent.Frame(p.serial, f)
	if passed && l.cfg.Far {
		p.passOn(f.Weight())
	}
	return err
}

// direct reports whether a process is known to be a child of the launcher.
func (l *Listener) direct(serial uint32) bool {
	l.cfg.Step.Lock()
	defer l.cfg.Step.Unlock()
	return l.agent.procs[serial].direct()
}

// hello admits a process. A spare waits here.
func (l *Listener) hello(p *peer, f protocol.Frame) error {
	var m protocol.Hello
	if err := protocol.Decode(&m, f.Body); err != nil {
		return &protocolError{err}
	}
	for {
		err := l.bind(p, &m)
		w := (*waitingError)(nil)
		if !errors.As(err, &w) {
			return err
		}
		select {
		case <-w.taken:
		case <-l.done:
			return net.ErrClosed
		}
	}
}

// bind finds the slot of a process, and binds the connection to it.
func (l *Listener) bind(p *peer, m *protocol.Hello) error {
	l.cfg.Step.Lock()
	defer l.cfg.Step.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	serial, err := l.agent.Hello(m.Token, p.pid)
	if w := (*waitingError)(nil); errors.As(err, &w) {
		return err
	}
	if err != nil {
		p.shut(err.Error(), true)
		return err
	}
	p.serial = serial
	l.peers[serial] = p
	return nil
}
