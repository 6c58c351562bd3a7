// SPDX-License-Identifier: Apache-2.0

package control

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"gompi/internal/rollcall"
	"gompi/internal/segment"
	"gompi/internal/wire"
)

// agent is what belongs to one host: descriptors, tokens, pids, connections,
// and who still uses which of them. It has no lock, goroutine, clock or socket:
// its owner (Server) makes one call at a time, then takes the reports to the
// head and does what out says. Of the job it knows what the head has ordered.
type agent struct {
	cfg  *ServerConfig
	host uint32

	seats   map[uint32]*seat // by serial: those of which something is here
	tokens  map[[tokenBytes]byte]uint32
	unbound map[uint32][]*seat // by reservation
	lastID  uint32             // of a reservation

	commons map[string]*common // by the request for it

	ending string // why the job ends, "" while it does not

	up  []report
	out []deed
}

// seat is the place of one process, from the reservation until its child has
// ended, its pid is free and its connection is gone.
type seat struct {
	serial uint32
	token  [tokenBytes]byte
	files  *files // nil when exited

	state     ProcState // as far as this host and the head's orders say
	over      bool      // the head has said so: whoever asks of its end is told
	connected bool
	welcomed  bool // the head has: now it may hear of anything
	pid       int  // of the child, 0 before Started
	helloPID  int  // who said hello
	exitSeen  bool // Exited was called; else the child may run, whatever the state is
	reaped    bool // Reap was called
	unborn    bool // given up before there was a child

	// Who was given its pid and has not let go of it, and whose pids it was
	// given itself: the same pairs from both sides.
	knownBy, knows map[uint32]struct{}
}

// direct tells that the process is the launcher's own child: its pid stays
// taken until the launcher reaps it.
func (s *seat) direct() bool { return s.pid != 0 && s.pid == s.helloPID }

// deed is one thing for the agent's owner to do: a frame for a connection, the
// end of one, or a callback of the launcher.
type deed struct {
	to    uint32 // serial
	frame []byte
	files *files // go with the frame; the deed holds a reference
	host  bool   // replaces the last such that is not yet sent
	late  time.Duration

	shut string // why the connection is to end
	do   func()
}

func newAgent(cfg *ServerConfig, host uint32) *agent {
	return &agent{
		cfg: cfg, host: host,
		seats: map[uint32]*seat{}, tokens: map[[tokenBytes]byte]uint32{}, unbound: map[uint32][]*seat{},
		commons: map[string]*common{},
	}
}

// newSeats makes what n processes need. It is no business of the agent's owner
// alone: memory is slow.
func newSeats(n int) ([]*seat, error) {
	var mem segment.Memory
	defer mem.Close()
	seats := make([]*seat, 0, n)
	err := mem.Take(int64(n)*segment.InitialBytes, func(k int64) error {
		for range k / segment.InitialBytes {
			f, err := newFiles()
			if err != nil {
				return fmt.Errorf("process %d of %d: %w", len(seats)+1, n, err)
			}
			s := &seat{files: f, state: Starting}
			rand.Read(s.token[:]) // never fails
			seats = append(seats, s)
		}
		return nil
	})
	if err != nil {
		releaseSeats(seats)
		return nil, err
	}
	return seats, nil
}

func releaseSeats(seats []*seat) {
	for _, s := range seats {
		s.files.release()
	}
}

// reserve takes over seats until the head binds them, and numbers the
// reservation.
func (a *agent) reserve(seats []*seat) uint32 {
	a.lastID++
	a.unbound[a.lastID] = seats
	return a.lastID
}

// take does what the head orders.
func (a *agent) take(o *order) {
	switch o.kind {
	case oBind:
		a.bind(o)
	case oUnbind:
		releaseSeats(a.unbound[o.id])
		delete(a.unbound, o.id)
	case oHost:
		for serial, s := range a.seats {
			if s.connected && s.welcomed && s.state == Joined {
				a.out = append(a.out, deed{to: serial, frame: o.frame, host: true})
			}
		}
	case oEnding:
		a.ending = o.text
	default:
		if s := a.seats[o.serial]; s != nil {
			a.order(s, o)
		}
	}
}

// order does what the head orders about one process.
func (a *agent) order(s *seat, o *order) {
	switch o.kind {
	case oSend, oLate:
		a.send(s, deed{frame: o.frame, late: o.late})
	case oWelcome:
		s.welcomed = true
		a.sendFiles(s, s.files, o.frame)
	case oContact:
		a.contact(s, o)
	case oOver:
		a.over(s, o.state)
	case oAbandon:
		s.unborn = s.pid == 0 && !s.exitSeen
		a.free(s)
	case oShut:
		a.out = append(a.out, deed{to: s.serial, shut: o.text})
	}
}

// bind makes processes of the seats of a reservation.
func (a *agent) bind(o *order) {
	for i, s := range a.unbound[o.id] {
		s.serial = o.serial + uint32(i)
		a.seats[s.serial], a.tokens[s.token] = s, s.serial
	}
	delete(a.unbound, o.id)
}

func (a *agent) id(s *seat) wire.ProcID { return wire.ProcID{Job: a.cfg.Job, Serial: s.serial} }

// token is what a process shows that is started in this place.
func (a *agent) token(serial uint32) string { return hex.EncodeToString(a.seats[serial].token[:]) }

func (a *agent) report(s *seat, r report) {
	r.serial = s.serial
	a.up = append(a.up, r)
}

// hello admits the process with this token; the head will welcome it.
func (a *agent) hello(token [tokenBytes]byte, pid int) (*seat, error) {
	s := a.seats[a.tokens[token]]
	switch {
	case s == nil:
		return nil, refused("unknown token")
	case a.ending != "":
		return nil, &withDetail{ErrEnding, a.ending}
	case s.state != Starting:
		return nil, refused("process %v is already %v: one program joins in each place, once", a.id(s), s.state)
	}
	s.state, s.connected, s.helloPID = Joined, true, pid
	a.report(s, report{kind: rHello})
	return s, nil
}

// frame handles one frame of a process that has said hello: what is about this
// host alone is done here, the rest is the head's. The body is only borrowed. An
// error means that the process broke the protocol.
func (a *agent) frame(s *seat, f frame) error {
	if err := f.checkNumber(); err != nil {
		return err
	}
	switch f.kind {
	case kDead:
		m := procMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		if q := a.seats[m.proc.Serial]; q != nil && m.proc.Job == a.cfg.Job {
			a.acknowledge(s, q)
		}
	case kCommon:
		m := commonMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		a.enterCommon(s, f.id, &m, string(f.body))
	case kUncommon:
		m := commonMsg{k: f.kind}
		if err := decode(&m, f.body); err != nil {
			return err
		}
		a.leaveCommon(s, string(f.body))
	default:
		a.report(s, report{kind: rFrame, frame: f})
	}
	return nil
}

// hungUp: the connection of s has ended. That the process has, too, is for the
// launcher to say: until then it may touch the memory of others.
func (a *agent) hungUp(s *seat) {
	s.connected = false
	a.report(s, report{kind: rHungUp})
	a.free(s)
}

// started tells the pid of the launcher's child.
func (a *agent) started(s *seat, pid int) {
	if s.state == Exited || s.pid != 0 {
		return
	}
	s.pid = pid
	a.report(s, report{kind: rStarted, pid: pid})
}

// lost: the child of s runs on, but what joined is gone.
func (a *agent) lost(s *seat, how string) {
	if s.state == Joined && !s.connected {
		a.report(s, report{kind: rLost, text: clip(how, maxText)})
	}
}

// exited: the launcher saw the end of the child and holds it unreaped, so that
// its pid stays taken until everybody who was given it has let go.
func (a *agent) exited(s *seat, how string, clean bool) {
	if s.exitSeen {
		return
	}
	s.exitSeen = true
	if how == "" {
		how = "exited"
	}
	a.report(s, report{kind: rExited, text: clip(how, maxText), clean: clean})
	if s.connected && !s.direct() {
		// Somebody else spoke for the child; without it he has no place in the
		// job. The child itself needs no help to be disconnected, and what it
		// said last is still read.
		a.out = append(a.out, deed{to: s.serial, shut: fmt.Sprintf("process %v has ended: %s", a.id(s), how)})
	}
	a.bury(s)
	a.letGoAll(s)
	a.free(s)
}

// over: the head has ended the part of s in the job, so that those who were
// given its pid will be told, or were.
func (a *agent) over(s *seat, at ProcState) {
	s.over = true
	if at == Exited {
		a.bury(s)
	} else if s.state == Joined {
		a.endCommons(s)
		s.state = Finalized
		a.letGoAll(s) // it touches nobody's memory any more
	}
	a.free(s)
}

// bury: s takes part in nothing any more. Its pid, and those that it was given,
// are another matter.
func (a *agent) bury(s *seat) {
	if s.state == Exited {
		return
	}
	if s.state != Finalized {
		a.endCommons(s)
	}
	s.state = Exited
	delete(a.tokens, s.token)
	s.files.release()
	s.files = nil
}

// free lets the launcher reap what has exited when nobody has its pid, and drops
// the seat when nothing else is left of it.
func (a *agent) free(s *seat) {
	if len(s.knownBy) > 0 || !s.exitSeen && !s.unborn {
		return
	}
	if s.exitSeen && !s.reaped {
		s.reaped = true
		a.call(a.cfg.Reap, s)
	}
	if !s.connected && a.seats[s.serial] == s {
		delete(a.seats, s.serial)
		a.report(s, report{kind: rFreed})
	}
}

// call notes a callback about s.
func (a *agent) call(f func(wire.ProcID), s *seat) {
	if f != nil {
		id := a.id(s)
		a.out = append(a.out, deed{do: func() { f(id) }})
	}
}

func (a *agent) send(s *seat, d deed) {
	if s.connected {
		d.to = s.serial
		a.out = append(a.out, d)
	}
}

func (a *agent) sendFiles(s *seat, fs *files, frame []byte) {
	if s.connected && fs != nil {
		fs.retain()
		a.out = append(a.out, deed{to: s.serial, frame: frame, files: fs})
	}
}

func (a *agent) refuse(s *seat, id uint32, err error) {
	a.send(s, deed{frame: appendFrame(nil, id, 0, failure(err))})
}

// contact tells p how to reach another process, with what is here of it. The
// head may not know yet that it has ended.
func (a *agent) contact(p *seat, o *order) {
	c := *o.contact
	if c.Host != a.host {
		a.send(p, deed{frame: contactReply(o.id, 0, c)})
		return
	}
	t := a.seats[c.Proc.Serial]
	if t == nil || t.files == nil {
		a.refuse(p, o.id, &GoneError{c.Proc, "has ended"})
		return
	}
	c.SameHost = true
	if p != t && p.direct() && t.direct() {
		c.PID = t.pid
		a.meet(p, t)
	}
	a.sendFiles(p, t.files, contactReply(o.id, frameFDs, c))
}

func contactReply(id uint32, fds int, c wire.Contact) []byte {
	var e enc
	(&contactBody{c}).put(&e)
	return appendFrame(nil, id, fds, &replyMsg{body: e.b})
}

// hold returns the files of processes, nil for those without; the caller
// releases them.
func (a *agent) hold(serials []uint32) []*files {
	held := make([]*files, len(serials))
	for i, serial := range serials {
		if s := a.seats[serial]; s != nil && s.files != nil {
			s.files.retain()
			held[i] = s.files
		}
	}
	return held
}

// readCalls reads the roll calls of processes and releases their files. A
// segment that is gone, or cannot be mapped, has none to show. It needs no
// living process, and nobody's lock.
func readCalls(held []*files) [][]rollcall.Entry {
	calls := make([][]rollcall.Entry, len(held))
	for i, f := range held {
		if f != nil {
			calls[i] = f.calls()
			f.release()
		}
	}
	return calls
}

// close frees everything.
func (a *agent) close() {
	for _, s := range a.seats {
		s.files.release()
		s.files = nil
	}
	for id, seats := range a.unbound {
		releaseSeats(seats)
		delete(a.unbound, id)
	}
	for key, c := range a.commons {
		c.files.release()
		delete(a.commons, key)
	}
}
