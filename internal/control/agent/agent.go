// SPDX-License-Identifier: Apache-2.0

// Package agent is the agent of a host: its descriptors, tokens, pids and shared memory, and the
// connections of its processes. It handles messages that concern its host alone (handlers.go), and
// passes all others on to the head. An Agent is a state machine without goroutine, clock or socket;
// a Listener has the socket and the connections. See
// docs/design/004-control-plane.md.
package agent

import (
	"encoding/hex"
	"fmt"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// Agent is what belongs to one host: descriptors, tokens, pids, connections, and which processes still
// use which of them. It has no lock, goroutine, clock or socket. Its owner makes one call at a time,
// then takes the reports to the head (Report) and carries out the actions (Flush). Of the job it knows
// only the commands of the head.
type Agent struct {
	job  wire.JobID
	host uint32
	reap func(wire.ProcID)

	procs   map[uint32]*Proc // by serial: processes of which something is on this host
	tokens  map[[protocol.TokenBytes]byte]uint32
	unbound map[uint32][]*Proc // by reservation
	lastID  uint32             // of a reservation

	spares map[[protocol.TokenBytes]byte]*spare // in slots that are not bound

	heap     heap
	memories map[string]*memory // by name
	commons  map[string]*common // by the request for it
	gifts    map[uint32]*gift   // by set
	pages    map[uint32]*page   // by set, of sets with subscribers
	left     map[*page]struct{} // dropped pages that members have not left yet
	bells    map[uint32]*bell   // of groups of processes
	behinds  map[uint32]*page   // pages whose next change waits

	ending string // why the job ends, "" while it does not

	up  []protocol.Report
	out []Action
}

// Action is one thing for the agent's owner to do: send a frame or end a connection (Listener.Do),
// call the launcher, or do long work. Call and Work say which; if both are nil it is the first.
type Action struct {
	To    uint32 // serial of the process
	Frame []byte
	Files *Files        // go with the frame; the action holds a reference
	host  bool          // Frame replaces the last such frame that was not sent yet
	late  time.Duration // Frame may wait so long for others
	taken int           // the head has taken frames of the process, of this weight
	left  bool          // the process needs no events of ends any more

	shut string // not empty: why to end the connection

	// Call is a function to call.
	Call func()

	// Work may take long. A goroutine of its own runs it without the agent, and then Done as a step.
	// A job that ends runs neither.
	Work func() error
	Done func(error)
}

// New makes the agent of a host. It calls reap, which may be nil, when no process uses the pid of p any
// more, so that the launcher may wait for the exited child.
func New(job wire.JobID, host uint32, reap func(p wire.ProcID)) *Agent {
	return &Agent{
		job:      job,
		host:     host,
		reap:     reap,
		procs:    map[uint32]*Proc{},
		tokens:   map[[protocol.TokenBytes]byte]uint32{},
		unbound:  map[uint32][]*Proc{},
		spares:   map[[protocol.TokenBytes]byte]*spare{},
		heap:     heap{most: arenaBytes, memory: new(segment.Memory)},
		memories: map[string]*memory{},
		commons:  map[string]*common{},
		gifts:    map[uint32]*gift{},
		pages:    map[uint32]*page{},
		left:     map[*page]struct{}{},
		bells:    map[uint32]*bell{},
		behinds:  map[uint32]*page{},
	}
}

// Reserve takes over slots until the head binds them. It returns the number of the reservation.
func (a *Agent) Reserve(procs []*Proc) uint32 {
	a.lastID++
	a.unbound[a.lastID] = procs
	return a.lastID
}

// Take carries out a command of the head.
func (a *Agent) Take(o *protocol.Command) {
	switch o.Kind {
	case protocol.CmdBind:
		a.bind(o)
	case protocol.CmdUnbind:
		a.unspare(o.ID)
		Release(a.unbound[o.ID])
		delete(a.unbound, o.ID)
	case protocol.CmdHost:
		for serial, s := range a.procs {
			if s.connected && s.welcomed && s.state == protocol.Joined {
				a.out = append(a.out, Action{To: serial, Frame: o.Frame, host: true})
			}
		}
	case protocol.CmdEnding:
		a.ending = o.Text
		a.endSpares()
	case protocol.CmdPage:
		a.page(&o.Page)
	case protocol.CmdSubscribe:
		a.follow(a.procs[o.Serial], o)
	case protocol.CmdPreallocate:
		a.give(o.ID, o.Members)
	case protocol.CmdRetract:
		a.ungive(o.ID)
	default:
		if s := a.procs[o.Serial]; s != nil {
			a.order(s, o)
		}
	}
}

// order carries out a command about one process.
func (a *Agent) order(s *Proc, o *protocol.Command) {
	switch o.Kind {
	case protocol.CmdSend, protocol.CmdSendLater:
		a.send(s, Action{Frame: o.Frame, late: o.Delay})
	case protocol.CmdWelcome:
		a.welcome(s, o.Frame)
	case protocol.CmdContact:
		a.contact(s, o)
	case protocol.CmdOver:
		a.over(s, o.State)
	case protocol.CmdAbandon:
		s.unborn = s.pid == 0 && !s.exitSeen
		a.free(s)
	case protocol.CmdTaken:
		a.out = append(a.out, Action{To: s.serial, taken: int(o.Count)})
	case protocol.CmdShut:
		a.out = append(a.out, Action{To: s.serial, shut: o.Text})
	}
}

// bind makes processes of the slots of a reservation.
func (a *Agent) bind(o *protocol.Command) {
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

// Token makes the segment of p its own, and returns the token that p shows when it is started. It is
// empty if p was given up.
func (a *Agent) Token(p wire.ProcID) string {
	s := a.proc(p)
	if s == nil || s.files == nil {
		return ""
	}
	// The page was written when the slot was made, so that this needs no memory.
	if err := s.files.own(p); err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return hex.EncodeToString(s.token[:])
}

// proc returns a process of which something is on this host, or nil.
func (a *Agent) proc(p wire.ProcID) *Proc {
	if p.Job != a.job {
		return nil
	}
	return a.procs[p.Serial]
}

func (a *Agent) report(s *Proc, r protocol.Report) {
	r.Serial = s.serial
	a.up = append(a.up, r)
}

// Hello admits the process with this token. The head will welcome it.
func (a *Agent) Hello(token [protocol.TokenBytes]byte, pid int) (serial uint32, err error) {
	if err := a.spareHello(token); err != nil {
		return 0, err
	}
	s := a.procs[a.tokens[token]]
	switch {
	case s == nil:
		return 0, protocol.Refused("unknown token")
	case a.ending != "":
		return 0, protocol.Ending(a.ending)
	case s.state == protocol.Exited && !s.exitSeen && s.helloPID == 0:
		return 0, protocol.ErrUnwanted
	case s.state != protocol.Starting:
		return 0, protocol.Refused("process %v is already %v: one program joins in each place, once", a.id(s), s.state)
	}
	s.state, s.connected, s.helloPID = protocol.Joined, true, pid
	a.report(s, protocol.Report{Kind: protocol.ReportHello})
	return s.serial, nil
}

// HungUp takes the end of a connection. The launcher says when the process has ended; until then it may
// touch the memory of others.
func (a *Agent) HungUp(serial uint32) {
	s := a.procs[serial]
	s.connected = false
	a.report(s, protocol.Report{Kind: protocol.ReportHungUp})
	a.free(s)
}

// Started takes the pid of the launcher's child for p. Until then no process gets a Contact for p. If p
// turns out to be another process, such as a child of a wrapper, its memory is not copied directly.
func (a *Agent) Started(p wire.ProcID, pid int) {
	s := a.proc(p)
	if s == nil || s.state == protocol.Exited || s.pid != 0 {
		return
	}
	s.pid = pid
	a.report(s, protocol.Report{Kind: protocol.ReportStarted, PID: pid})
}

// Joined reports whether p has joined.
func (a *Agent) Joined(p wire.ProcID) bool {
	s := a.proc(p)
	return s != nil && s.state >= protocol.Joined
}

// Lost takes it that the program that joined as p is gone without having finalized, while the child
// runs on. Exited follows as always.
func (a *Agent) Lost(p wire.ProcID, how string) {
	if s := a.proc(p); s != nil && s.state == protocol.Joined && !s.connected {
		a.report(s, protocol.Report{Kind: protocol.ReportLost, Text: protocol.Clip(how, protocol.MaxText)})
	}
}

// Exited takes the end of p's child. The launcher has not reaped the child, so that its pid stays taken
// until all processes that have it have let go. How is a short text for people; clean means exit status
// 0.
func (a *Agent) Exited(p wire.ProcID, how string, clean bool) {
	s := a.proc(p)
	if s == nil || s.exitSeen {
		return
	}
	s.exitSeen = true
	if how == "" {
		how = "exited"
	}
	a.report(s, protocol.Report{Kind: protocol.ReportExited, Text: protocol.Clip(how, protocol.MaxText), Clean: clean})
	if s.connected && !s.direct() {
		// Another process joined for the child, and has no slot without it. The connection of the
		// child itself ends without help, and its last frames are still read.
		a.out = append(a.out, Action{To: s.serial, shut: fmt.Sprintf("process %v has ended: %s", a.id(s), how)})
	}
	a.markExited(s)
	a.letGoAll(s)
	if s.direct() {
		a.leaveAll(s)
	}
	a.free(s)
}

// gone takes the end of the program that joined as s, and that is no child of the launcher.
func (a *Agent) gone(s *Proc) { a.leaveAll(s) }

// over takes it that the head has ended the part of s in the job. Processes that have its pid get an
// event, or had one.
func (a *Agent) over(s *Proc, at protocol.ProcState) {
	s.over = true
	if at == protocol.Exited {
		a.markExited(s)
	} else if s.state == protocol.Joined {
		a.endCommons(s)
		s.state = protocol.Finalized
		a.letGoAll(s) // it touches nobody's memory any more
		a.send(s, Action{left: true})
	}
	a.free(s)
	a.late()
}

// markExited ends the part of s in everything but pids: its own, and those that it has.
func (a *Agent) markExited(s *Proc) {
	if s.state == protocol.Exited {
		return
	}
	if s.state != protocol.Finalized {
		a.endCommons(s)
	}
	s.state = protocol.Exited
	s.files.Release()
	s.files = nil
}

// free lets the launcher reap the child of s when it has exited and no process has its pid, and drops
// the record when nothing else is left of s.
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
		a.report(s, protocol.Report{Kind: protocol.ReportFreed})
	}
}

// call adds a call of the launcher about s.
func (a *Agent) call(f func(wire.ProcID), s *Proc) {
	if f != nil {
		id := a.id(s)
		a.out = append(a.out, Action{Call: func() { f(id) }})
	}
}

func (a *Agent) send(s *Proc, d Action) {
	if d.To = s.serial; s.welcome != nil { // the welcome comes first
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
		a.send(s, Action{Frame: frame, Files: fs})
	}
}

func (a *Agent) refuse(s *Proc, id uint32, err error) {
	a.send(s, Action{Frame: protocol.ShortFrame(id, 0, protocol.Failure(err))})
}

// contact answers how p reaches another process, with what this host has of that. The head may not know
// yet that one of them has ended.
func (a *Agent) contact(p *Proc, o *protocol.Command) {
	c := *o.Contact
	if c.Host != a.host {
		a.send(p, Action{Frame: contactReply(o.ID, 0, c)})
		return
	}
	t := a.procs[c.Proc.Serial]
	if t == nil || t.files == nil {
		a.refuse(p, o.ID, &protocol.GoneError{Proc: c.Proc, How: "has ended"})
		return
	}
	c.SameHost = true
	if p != t && p.state == protocol.Joined && p.direct() && t.direct() {
		c.PID = t.pid
		a.givePid(p, t)
	}
	a.sendFiles(p, t.files, contactReply(o.ID, protocol.FrameFDs, c))
}

func contactReply(id uint32, fds int, c wire.Contact) []byte {
	return reply(id, fds, &protocol.ContactBody{C: c})
}

// reply returns the frame of an answer whose length no other process chooses.
func reply(id uint32, fds int, body protocol.Message) []byte {
	return protocol.ShortFrame(id, fds, &protocol.Reply{Body: protocol.Encode(body)})
}

// Report passes the reports to the head, in order; false if there were none. tell does not call the
// agent.
func (a *Agent) Report(tell func(*protocol.Report)) bool {
	n := len(a.up)
	for i := range a.up {
		tell(&a.up[i])
	}
	a.up = protocol.Reuse(a.up)
	return n > 0
}

// Flush passes the actions to do, in order; false if there were none. do does not call the agent.
func (a *Agent) Flush(do func(*Action)) bool {
	n := len(a.out)
	for i := range a.out {
		do(&a.out[i])
	}
	a.out = protocol.Reuse(a.out)
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

// Sizes returns the size of each table.
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
