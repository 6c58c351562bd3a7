// SPDX-License-Identifier: Apache-2.0

// Package agent is the agent of a host: segments, tokens, pids, and the connections
// of its processes. What is no business of the host it passes on to the head. See
// docs/design/021-head-and-agent.md.
package agent

import (
	"encoding/hex"
	"fmt"
	"time"

	"gompi/internal/control"
	"gompi/internal/segment"
	"gompi/internal/wire"
)

// Agent is what belongs to one host: descriptors, tokens, pids, connections,
// and who still uses which of them. It has no lock, goroutine, clock or socket:
// its owner makes one call at a time, then takes the reports to the head (Report)
// and does the deeds (Flush). Of the job it knows what the head has ordered.
type Agent struct {
	job  wire.JobID
	host uint32
	reap func(wire.ProcID)

	procs   map[uint32]*Proc // by serial: those of which something is here
	tokens  map[[control.TokenBytes]byte]uint32
	unbound map[uint32][]*Proc // by reservation
	lastID  uint32             // of a reservation

	spares map[[control.TokenBytes]byte]*spare // of unbound places

	heap     heap
	memories map[string]*memory // by name
	commons  map[string]*common // by the request for it
	gifts    map[uint32]*gift   // by set
	pages    map[uint32]*page   // of sets that are watched
	left     map[*page]struct{} // that were dropped, and that members have not left yet
	bells    map[uint32]*bell   // of groups of processes
	behinds  map[uint32]*page   // those of them whose next change waits

	ending string // why the job ends, "" while it does not

	up  []control.Report
	out []Deed
}

// Deed is one thing for the agent's owner to do: a frame for a connection, the
// end of one (both: Listener.Do), or a callback of the launcher.
type Deed struct {
	To    uint32 // serial
	Frame []byte
	Files *Files // go with the frame; the deed holds a reference
	host  bool   // replaces the last such that is not yet sent
	late  time.Duration
	taken int  // of frames that it has sent, as weight
	left  bool // it does not want to know any more who has ended

	shut string // why the connection is to end

	Call func() // not nil: nothing else is to be done

	// Work, if not nil, may take long: it is done by a goroutine of its own
	// without the agent, then Done as a step. A job that ends does neither.
	Work func() error
	Done func(error)
}

// New makes the agent of a host. Reap, which may be nil: nobody uses p's pid any
// more; the exited child may be waited for.
func New(job wire.JobID, host uint32, reap func(p wire.ProcID)) *Agent {
	return &Agent{
		job: job, host: host, reap: reap,
		procs: map[uint32]*Proc{}, tokens: map[[control.TokenBytes]byte]uint32{}, unbound: map[uint32][]*Proc{},
		spares: map[[control.TokenBytes]byte]*spare{},
		heap:   heap{most: arenaBytes, memory: new(segment.Memory)}, memories: map[string]*memory{}, commons: map[string]*common{}, gifts: map[uint32]*gift{}, pages: map[uint32]*page{}, behinds: map[uint32]*page{},
		left: map[*page]struct{}{}, bells: map[uint32]*bell{},
	}
}

// Reserve takes over places until the head binds them, and numbers the
// reservation.
func (a *Agent) Reserve(procs []*Proc) uint32 {
	a.lastID++
	a.unbound[a.lastID] = procs
	return a.lastID
}

// Take does what the head orders.
func (a *Agent) Take(o *control.Order) {
	switch o.Kind {
	case control.OrderBind:
		a.bind(o)
	case control.OrderUnbind:
		a.unspare(o.ID)
		Release(a.unbound[o.ID])
		delete(a.unbound, o.ID)
	case control.OrderHost:
		for serial, s := range a.procs {
			if s.connected && s.welcomed && s.state == control.Joined {
				a.out = append(a.out, Deed{To: serial, Frame: o.Frame, host: true})
			}
		}
	case control.OrderEnding:
		a.ending = o.Text
		a.endSpares()
	case control.OrderPage:
		a.page(&o.Page)
	case control.OrderFollow:
		a.follow(a.procs[o.Serial], o)
	case control.OrderGive:
		a.give(o.ID, o.Members)
	case control.OrderUngive:
		a.ungive(o.ID)
	default:
		if s := a.procs[o.Serial]; s != nil {
			a.order(s, o)
		}
	}
}

// order does what the head orders about one process.
func (a *Agent) order(s *Proc, o *control.Order) {
	switch o.Kind {
	case control.OrderSend, control.OrderLate:
		a.send(s, Deed{Frame: o.Frame, late: o.Late})
	case control.OrderWelcome:
		a.welcome(s, o.Frame)
	case control.OrderContact:
		a.contact(s, o)
	case control.OrderOver:
		a.over(s, o.State)
	case control.OrderAbandon:
		s.unborn = s.pid == 0 && !s.exitSeen
		a.free(s)
	case control.OrderTaken:
		a.out = append(a.out, Deed{To: s.serial, taken: int(o.Count)})
	case control.OrderShut:
		a.out = append(a.out, Deed{To: s.serial, shut: o.Text})
	}
}

// bind makes processes of the places of a reservation.
func (a *Agent) bind(o *control.Order) {
	for i, s := range a.unbound[o.ID] {
		s.serial = o.Serial + uint32(i)
		a.procs[s.serial], a.tokens[s.token] = s, s.serial
		if a.spares[s.token] != nil {
			a.ownSpare(s)
		}
	}
	a.unspare(o.ID)
	delete(a.unbound, o.ID)
}

func (a *Agent) id(s *Proc) wire.ProcID { return wire.ProcID{Job: a.job, Serial: s.serial} }

// Token makes its segment p's own and returns what p shows when it is started;
// empty if p was given up.
func (a *Agent) Token(p wire.ProcID) string {
	s := a.proc(p)
	if s == nil || s.files == nil {
		return ""
	}
	// The page was written when the place was made: no memory is needed.
	if err := s.files.own(p); err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return hex.EncodeToString(s.token[:])
}

// proc is a process of which something is here, or nil.
func (a *Agent) proc(p wire.ProcID) *Proc {
	if p.Job != a.job {
		return nil
	}
	return a.procs[p.Serial]
}

func (a *Agent) report(s *Proc, r control.Report) {
	r.Serial = s.serial
	a.up = append(a.up, r)
}

// Hello admits the process with this token; the head will welcome it.
func (a *Agent) Hello(token [control.TokenBytes]byte, pid int) (serial uint32, err error) {
	if err := a.spareHello(token); err != nil {
		return 0, err
	}
	s := a.procs[a.tokens[token]]
	switch {
	case s == nil:
		return 0, control.Refused("unknown token")
	case a.ending != "":
		return 0, control.Ending(a.ending)
	case s.state == control.Exited && !s.exitSeen && s.helloPID == 0:
		return 0, control.ErrUnwanted
	case s.state != control.Starting:
		return 0, control.Refused("process %v is already %v: one program joins in each place, once", a.id(s), s.state)
	}
	s.state, s.connected, s.helloPID = control.Joined, true, pid
	a.report(s, control.Report{Kind: control.ReportHello})
	return s.serial, nil
}

// Frame handles one frame of a process that is connected: what is about this
// host alone is done here, the rest is the head's, and is passed on. The body is only
// borrowed, until the Report that follows. An error means that the process broke the
// protocol.
func (a *Agent) Frame(serial uint32, f control.Frame) (passed bool, err error) {
	s := a.procs[serial]
	if err := f.CheckNumber(); err != nil {
		return false, err
	}
	switch f.Kind {
	case control.KindDead:
		m := control.Proc{Kind: f.Kind}
		if err := control.Decode(&m, f.Body); err != nil {
			return false, err
		}
		if q := a.proc(m.Proc); q != nil {
			a.acknowledge(s, q)
		}
	case control.KindCommon:
		var m control.Common
		if err := control.Decode(&m, f.Body); err != nil {
			return false, err
		}
		a.enterCommon(s, f.ID, &m, string(control.CommonKey(f.Body)))
	case control.KindUncommon:
		var m control.Uncommon
		if err := control.Decode(&m, f.Body); err != nil {
			return false, err
		}
		a.leaveCommon(s, &m)
	case control.KindMemory:
		var m control.Memory
		if err := control.Decode(&m, f.Body); err != nil {
			return false, err
		}
		a.enterMemory(s, f.ID, &m)
	case control.KindLeaveMemory:
		var m control.LeaveMemory
		if err := control.Decode(&m, f.Body); err != nil {
			return false, err
		}
		a.leaveMemory(s, m.Name)
	case control.KindWord:
		var m control.Word
		if err := control.Decode(&m, f.Body); err != nil {
			return false, err
		}
		a.swapped(s, &m)
	default:
		a.report(s, control.Report{Kind: control.ReportFrame, Frame: f})
		return true, nil
	}
	return false, nil
}

// HungUp: the connection of a process has ended. That the process has, too, is
// for the launcher to say: until then it may touch the memory of others.
func (a *Agent) HungUp(serial uint32) {
	s := a.procs[serial]
	s.connected = false
	a.report(s, control.Report{Kind: control.ReportHungUp})
	a.free(s)
}

// Started tells the pid of the launcher's child for p. Until then nobody is put
// in contact with p. If p turns out to be another process (a child of a wrapper),
// its memory is not copied directly.
func (a *Agent) Started(p wire.ProcID, pid int) {
	s := a.proc(p)
	if s == nil || s.state == control.Exited || s.pid != 0 {
		return
	}
	s.pid = pid
	a.report(s, control.Report{Kind: control.ReportStarted, PID: pid})
}

// Joined reports whether p has joined.
func (a *Agent) Joined(p wire.ProcID) bool {
	s := a.proc(p)
	return s != nil && s.state >= control.Joined
}

// Lost: the program that joined as p is gone without having left in order, while
// the child runs on. Its exit is to be told as always.
func (a *Agent) Lost(p wire.ProcID, how string) {
	if s := a.proc(p); s != nil && s.state == control.Joined && !s.connected {
		a.report(s, control.Report{Kind: control.ReportLost, Text: control.Clip(how, control.MaxText)})
	}
}

// Exited: the launcher saw the end of p's child and holds it unreaped, so that
// its pid stays taken until everybody who was given it has let go. How is a short
// text for people, clean means exit status 0.
func (a *Agent) Exited(p wire.ProcID, how string, clean bool) {
	s := a.proc(p)
	if s == nil || s.exitSeen {
		return
	}
	s.exitSeen = true
	if how == "" {
		how = "exited"
	}
	a.report(s, control.Report{Kind: control.ReportExited, Text: control.Clip(how, control.MaxText), Clean: clean})
	if s.connected && !s.direct() {
		// Somebody else spoke for the child; without it he has no place in the
		// job. The child itself needs no help to be disconnected, and what it
		// said last is still read.
		a.out = append(a.out, Deed{To: s.serial, shut: fmt.Sprintf("process %v has ended: %s", a.id(s), how)})
	}
	a.markExited(s)
	a.letGoAll(s)
	if s.direct() {
		a.leaveAll(s)
	}
	a.free(s)
}

// gone: the program that joined as s, which is no child of the launcher, has ended.
func (a *Agent) gone(s *Proc) { a.leaveAll(s) }

// over: the head has ended the part of s in the job, so that those who were
// given its pid will be told, or were.
func (a *Agent) over(s *Proc, at control.ProcState) {
	s.over = true
	if at == control.Exited {
		a.markExited(s)
	} else if s.state == control.Joined {
		a.endCommons(s)
		s.state = control.Finalized
		a.letGoAll(s) // it touches nobody's memory any more
		a.send(s, Deed{left: true})
	}
	a.free(s)
	a.late()
}

// markExited: s takes part in nothing any more. Its pid, and those that it was
// given, are another matter.
func (a *Agent) markExited(s *Proc) {
	if s.state == control.Exited {
		return
	}
	if s.state != control.Finalized {
		a.endCommons(s)
	}
	s.state = control.Exited
	s.files.Release()
	s.files = nil
}

// free lets the launcher reap what has exited when nobody has its pid, and drops
// the place when nothing else is left of it.
func (a *Agent) free(s *Proc) {
	if len(s.knownBy) > 0 || !s.exitSeen && !s.unborn {
		return
	}
	if s.exitSeen && !s.reaped {
		s.reaped = true
		a.call(a.reap, s)
	}
	if !s.connected && a.procs[s.serial] == s {
		a.deaf(s)
		delete(a.procs, s.serial)
		delete(a.tokens, s.token)
		a.report(s, control.Report{Kind: control.ReportFreed})
	}
}

// call notes a callback about s.
func (a *Agent) call(f func(wire.ProcID), s *Proc) {
	if f != nil {
		id := a.id(s)
		a.out = append(a.out, Deed{Call: func() { f(id) }})
	}
}

func (a *Agent) send(s *Proc, d Deed) {
	if d.To = s.serial; s.welcome != nil { // that comes first
		s.after = append(s.after, d)
	} else if s.connected {
		a.out = append(a.out, d)
	} else {
		d.Files.Release()
	}
}

func (a *Agent) sendFiles(s *Proc, fs *Files, frame []byte) {
	if s.connected && fs != nil {
		fs.retain()
		a.send(s, Deed{Frame: frame, Files: fs})
	}
}

func (a *Agent) refuse(s *Proc, id uint32, err error) {
	a.send(s, Deed{Frame: control.ShortFrame(id, 0, control.Failure(err))})
}

// contact tells p how to reach another process, with what is here of it. The
// head may not know yet that one of them has ended.
func (a *Agent) contact(p *Proc, o *control.Order) {
	c := *o.Contact
	if c.Host != a.host {
		a.send(p, Deed{Frame: contactReply(o.ID, 0, c)})
		return
	}
	t := a.procs[c.Proc.Serial]
	if t == nil || t.files == nil {
		a.refuse(p, o.ID, &control.GoneError{Proc: c.Proc, How: "has ended"})
		return
	}
	c.SameHost = true
	if p != t && p.state == control.Joined && p.direct() && t.direct() {
		c.PID = t.pid
		a.givePid(p, t)
	}
	a.sendFiles(p, t.files, contactReply(o.ID, control.FrameFDs, c))
}

func contactReply(id uint32, fds int, c wire.Contact) []byte {
	return reply(id, fds, &control.ContactBody{C: c})
}

// reply is the answer to a request that is short whatever it says.
func reply(id uint32, fds int, body control.Message) []byte {
	return control.ShortFrame(id, fds, &control.Reply{Body: control.Encode(body)})
}

// Report hands over what there is to be told to the head, in order; false if
// there was nothing. Tell does not call the agent.
func (a *Agent) Report(tell func(*control.Report)) bool {
	n := len(a.up)
	for i := range a.up {
		tell(&a.up[i])
	}
	a.up = control.Emptied(a.up)
	return n > 0
}

// Flush hands over what is to be done, in order; false if there was nothing. Do
// does not call the agent.
func (a *Agent) Flush(do func(*Deed)) bool {
	n := len(a.out)
	for i := range a.out {
		do(&a.out[i])
	}
	a.out = control.Emptied(a.out)
	return n > 0
}

// Close frees everything.
func (a *Agent) Close() {
	for _, s := range a.procs {
		s.files.Release()
		s.files = nil
	}
	for id, procs := range a.unbound {
		Release(procs)
		delete(a.unbound, id)
	}
	clear(a.commons)
	clear(a.gifts)
	clear(a.spares)
	for _, g := range a.pages {
		a.closePage(g)
	}
	for g := range a.left {
		a.closePage(g)
	}
	clear(a.pages)
	clear(a.left)
	clear(a.behinds)
	for _, s := range a.procs {
		a.deaf(s)
	}
	a.closeMemories()
	a.heap.close()
}

// Sizes is how much each table holds.
func (a *Agent) Sizes() map[string]int {
	m := map[string]int{"places": len(a.procs), "tokens": len(a.tokens), "reservations": len(a.unbound), "commons": len(a.commons), "gifts": len(a.gifts), "pages": len(a.pages), "pages behind": len(a.behinds), "bells": len(a.bells), "pages left": len(a.left), "ranges": a.heap.used, "arenas": len(a.heap.arenas), "memories": len(a.memories)}
	for _, s := range a.procs {
		m["pids known"] += len(s.knownBy) + len(s.knows)
		if s.files != nil {
			m["segments"]++
		}
	}
	return m
}
