// SPDX-License-Identifier: Apache-2.0

// Package head is the head of a job: process sets, store, names, fences, who lives
// and who is told of whose end. It knows hosts by number only; what is on them is
// their agents'. See docs/design/004-control-plane.md.
package head

import (
	"fmt"

	"gompi/internal/base/idset"
	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// Head is all that is known of a whole job: sets, names, who lives and who waits
// for what. Of the hosts it has the numbers; what is on them is their agents'. It
// has no lock, goroutine, clock or socket: its owner makes one call at a time and
// then carries out the effects (Flush).
type Head struct {
	cfg   Config
	hosts []host // by number

	procs    map[uint32]*proc // by serial: those that somebody may still ask for
	lastProc uint32           // serials are not reused

	alive  int              // processes that are starting or joined
	joined map[uint32]*proc // those that are joined and connected

	sets     map[uint32]*set
	lastSet  uint32
	setBytes int               // of all that is kept of them
	main     uint32            // number of the main set; 0: there is none
	names    map[string]uint32 // of sets; 0: reserved for one to come
	news     []naming          // of living sets, oldest first
	lastNews uint64
	oldNews  int                            // of sets that are gone
	ofOp     map[uint32]map[uint32]struct{} // sets that came of operations that are not decided

	calling    map[*set]struct{} // whose members have begun collective calls
	store      map[string][]byte
	storeBytes int
	gets       map[string]map[*wait]struct{}

	ports    map[string]*port // by name
	lastPort uint64
	services map[string]*service           // by name
	nameless map[string]map[*wait]struct{} // that wait for one

	neighbors map[*Neighbor]struct{}
	strangers map[wire.ProcID]*stranger

	fences map[string][]*fence // by encoded members, oldest first

	rounds     map[uint64]*Round
	round      uint64
	roundBytes int // of their reports, and of those that are being told

	book      *change.Book
	settling  bool
	ops       map[uint32]*op
	opBytes   int // of them
	looks     map[*Looks]struct{}
	behinds   []*behind           // oldest first
	decided   uint64              // how many changes were, when those were looked at last
	shorts    []*spawn            // that wait for slots, likewise
	latest    []protocol.OpReport // that are over, oldest first: a few
	follows   map[uint32]*follow  // by set
	asked     map[uint32]*asked   // by the number of the page
	questions map[question]*asked
	orphans   map[uint32]*asked // by the set whose members have asked
	lastAsked uint32
	interests map[*interest]struct{}
	mainEnded int      // so many of its first members take part no more
	argv      []string // of the job's first program
	places    int      // processes of which something is left, or is to come
	listed    bool     // cfg.HostSlots are those of a list, which may change
	lease     int      // how many there may be, where somebody else decides
	uses      Use      // that was told last

	ended  bool   // some process takes no part in the job any more
	ending string // why the job ends, "" while it does not

	out     []Effect
	sending []*proc // who is sent something in this step
}

// host is one host of the job.
type host struct {
	local  int  // processes there that have not exited
	told   int  // what processes there have last heard of that
	coming int  // those that are to be started
	lost   bool // nothing is heard of its agent any more
}

// proc is one process, from the reservation of its serial until nothing of it is
// left on its host and no set names it.
type proc struct {
	id         wire.ProcID
	host       uint32
	rank, size int
	world      uint32 // numbers of its sets
	self       uint32
	parent     uint32         // 0: none
	lines      []uint32       // sets of the command line and of hosts that have it
	given      map[uint32]int // sets that it was given, and how often
	named      int            // living sets that it is a member of
	argv       []string

	state     protocol.ProcState
	how       string
	died      bool     // exited, not in order
	left      bool     // has finalized
	idle      bool     // may end at any moment: see KindIdle
	freed     bool     // nothing of it is left on its host
	unbound   bool     // it has no place on a host yet
	pending   bool     // it has one, and starts when its group does
	quiet     bool     // it comes or goes by a change: others hear how many they are when that is over
	leaves    *leavers // by a committed change, with these; nil: it does not
	connected bool
	sent      int // bytes in this step
	pid       int // for people; 0 before it is started

	announced bool
	addrs     []string

	reqs     map[uint32]*wait   // its unanswered requests
	waiting  int                // bytes of them
	awaited  map[*wait]struct{} // Contacts of others that wait for it
	watching idset.Set          // whose end it wants to know, and has not been told

	interests map[uint32]*interest

	// Of one that others start at a place that they have taken: see alloc.go.
	owner  *proc                 // who has it; nil: nobody, any more
	owns   map[uint32]*proc      // whom it has, by serial
	late   bool                  // it was started there
	enders map[*wait]struct{}    // who wait for its end
	attach *attach               // it is to be connected
	kin    *protocol.ConnectBody // it is
	status int32                 // of its exit; -1: nobody knows

	born  *spawn         // by which it comes, until it has joined; nil: by none
	asked map[uint32]*op // operations of which it may want to know the outcome
	comes *op            // the change that it is to come with
	last  *op            // the last change that it had a part in

	via       *Neighbor              // it is of another job, and this one tells of it; nil: it is of this job
	abroad    []wire.JobID           // jobs of which it has asked
	reachable []wire.JobID           // of those, whose processes can reach it
	wantedBy  map[*Neighbor]struct{} // who want to know how, when that is so
}

// Effect is one thing to do after a step: an order for the agent of a host, a
// callback of the launcher, a Launch, a signal, a call or a word to another head, or to
// tell the launcher what becomes of processes.
type Effect struct {
	Order protocol.Command // of kind 0: none
	Host  uint32

	Call   func()
	Launch *Launch
	Start  *Start

	// Neighbor is to be told Say; nil: to be called.
	Neighbor *Neighbor
	Say      *protocol.JobMessage

	Fate   Fate // 0: none
	Signal int  // for Procs; 0: none
	Procs  []wire.ProcID
}

// New makes the head of a job without processes on so many hosts.
func New(cfg Config, hosts int) *Head {
	cfg.UsableCPUs = min(max(0, cfg.UsableCPUs), protocol.MaxMembers)
	h := &Head{
		cfg:    cfg,
		lease:  cfg.Lease,
		hosts:  make([]host, hosts),
		joined: map[uint32]*proc{},
		procs:  map[uint32]*proc{},
		sets:   map[uint32]*set{},
		names:  map[string]uint32{},
		ofOp:   map[uint32]map[uint32]struct{}{},
		store:  map[string][]byte{}, calling: map[*set]struct{}{},
		gets:  map[string]map[*wait]struct{}{},
		ports: map[string]*port{}, services: map[string]*service{}, nameless: map[string]map[*wait]struct{}{},
		neighbors: map[*Neighbor]struct{}{}, strangers: map[wire.ProcID]*stranger{},
		fences: map[string][]*fence{},
		rounds: map[uint64]*Round{},

		ops:     map[uint32]*op{},
		follows: map[uint32]*follow{}, asked: map[uint32]*asked{}, questions: map[question]*asked{}, orphans: map[uint32]*asked{}, interests: map[*interest]struct{}{}, looks: map[*Looks]struct{}{},
	}
	h.book = change.New(owner{h}, deadline(cfg.LeaveTimeout))
	return h
}

// add is Join when there is room.
func (h *Head) add(argv [][]string, places []Place) wire.Set {
	begins := h.lastProc == 0
	first := wire.ProcID{Job: h.cfg.Job, Serial: h.lastProc + 1}
	for _, at := range places {
		h.bind(at, h.lastProc+1)
		for range at.Count {
			rank := int(h.lastProc + 1 - first.Serial)
			h.lastProc++
			id := wire.ProcID{Job: h.cfg.Job, Serial: h.lastProc}
			h.procs[id.Serial] = &proc{id: id, host: at.Host, rank: rank, size: len(argv), argv: argv[rank], state: protocol.Starting}
		}
	}
	world := h.newSet(wire.NewMembers(wire.Range{First: first, Count: len(argv)}))
	h.sets[world.Number].taken = 1
	for i := range argv {
		p := h.proc(first.Next(i))
		p.world = world.Number
		h.hold(p.world)
		p.self = h.newSet(wire.MembersOf(p.id)).Number
		h.hold(p.self)
	}
	if h.main == 0 {
		h.setMain(world.Number)
	}
	if begins {
		h.argv = argv[0]
		h.firstSets(world.Members)
	}
	h.alive += len(argv)
	h.places += len(argv)
	h.giveBoard(world.Number)
	for _, at := range places {
		h.tellHost(at.Host)
	}
	return world
}

// Join makes processes of places that Place has chosen and agents have reserved,
// one for each command line: together they are a new world. On an error the agents are
// told that they need the places no longer.
func (h *Head) Join(argv [][]string, places []Place) (wire.Set, error) {
	for _, at := range places {
		if h.hosts[at.Host].lost {
			h.Unplace(places)
			return wire.Set{}, protocol.Refused("host %d is lost", at.Host)
		}
	}
	if !h.roomFor(len(argv)) {
		h.Unplace(places)
		return wire.Set{}, h.noRoom(len(argv))
	}
	if err := h.fits(len(argv)); h.lastProc == 0 && err != nil {
		h.Unplace(places)
		return wire.Set{}, err
	}
	return h.add(argv, places), nil
}

func (h *Head) noRoom(n int) error {
	return protocol.Refused("the job has had %d processes and %d process sets: there are no numbers for %d more", h.lastProc, h.lastSet, n)
}

// Take learns what the agent of a host has seen. What it tells of one of whom
// nothing is left is of no more interest, and of others' it has nothing to tell.
func (h *Head) Take(host uint32, r *protocol.Report) {
	switch r.Kind {
	case protocol.ReportStatusWord:
		h.word(host, r)
		return
	case protocol.ReportProgress:
		h.look(host, r)
		return
	}
	p := h.bySerial(r.Serial)
	if p == nil || p.host != host {
		return
	}
	switch r.Kind {
	case protocol.ReportHello:
		h.hello(p)
	case protocol.ReportFrame:
		if err := h.frame(p, &r.Frame); err != nil {
			h.order(p, protocol.Command{Kind: protocol.CmdShut, Text: protocol.ProtocolBroken(err)})
		}
	case protocol.ReportHungUp:
		h.disconnected(p)
	case protocol.ReportStarted:
		h.started(p, r.PID)
	case protocol.ReportExited:
		h.exited(p, r.Text, r.Clean)
	case protocol.ReportLost:
		h.lost(p, r.Text)
	case protocol.ReportFreed:
		h.free(p)
	}
}

// hello welcomes a process that has shown its token.
func (h *Head) hello(p *proc) {
	if p.state != protocol.Starting { // given up meanwhile
		h.order(p, protocol.Command{Kind: protocol.CmdShut, Text: protocol.ErrUnwanted.Error()})
		return
	}
	p.state, p.connected = protocol.Joined, true
	p.reqs = map[uint32]*wait{}
	h.joined[p.id.Serial] = p
	m := &protocol.Welcome{
		Self: p.id, Secret: h.cfg.Secret,
		World:      h.alias(protocol.WorldURI, p.world),
		Parent:     h.alias(protocol.ParentURI, p.parent),
		Intercomm:  p.born != nil && p.born.joins,
		MayAttach:  p.late,
		LocalProcs: h.hosts[p.host].local, UsableCPUs: h.cfg.UsableCPUs, MaxProcs: h.maxProcs(p.host),
		Hosts: len(h.hosts), FaultTolerant: h.cfg.FaultTolerant, KillGrace: h.cfg.KillGrace,
		Settings: h.cfg.Settings,
	}
	if p.comes != nil {
		m.Change = h.changeBody(p.comes, p)
	} else if p.last != nil {
		m.Change = h.changeBody(p.last, p) // which was rolled back meanwhile
	}
	h.order(p, protocol.Command{Kind: protocol.CmdWelcome, Frame: protocol.Encode(m)})
	h.call(h.cfg.Joined, p)
	h.came(p)
	h.up(p)
	h.book.Joined(h.now(), p.id)
	h.settle()
}

// started: the child of p runs.
func (h *Head) started(p *proc, pid int) {
	p.pid = pid
	// Contacts wait for the children of both sides.
	h.answerContacts(p.awaited)
	for _, w := range p.reqs {
		if w.target != nil {
			h.answerContact(w)
		}
	}
}

func (h *Head) maxProcs(host uint32) int {
	if h.cfg.MaxProcs == nil {
		return 0
	}
	return min(max(0, h.cfg.MaxProcs(max(1, h.hosts[host].local))), protocol.MaxMembers)
}

// tellHost tells everybody on a host how many processes share it.
func (h *Head) tellHost(host uint32) {
	h.hosts[host].told = h.hosts[host].local
	if len(h.joined) == 0 {
		return
	}
	f := protocol.ShortFrame(0, 0, &protocol.Event{Kind: protocol.EvHost, LocalProcs: h.hosts[host].local, MaxProcs: h.maxProcs(host)})
	h.out = append(h.out, Effect{Host: host, Order: protocol.Command{Kind: protocol.CmdHost, Frame: f}})
}

// order tells the agent of p's host.
func (h *Head) order(p *proc, o protocol.Command) {
	o.Serial = p.id.Serial
	h.out = append(h.out, Effect{Host: p.host, Order: o})
}

func (h *Head) send(p *proc, f []byte) {
	if !p.connected || p.sent > maxSending {
		return
	}
	if p.sent == 0 {
		h.sending = append(h.sending, p)
	}
	if p.sent += len(f); p.sent > maxSending { // it has asked for all of that, and would be dropped
		h.order(p, protocol.Command{Kind: protocol.CmdShut, Text: fmt.Sprintf("it was to be sent %d bytes at once, at most %d allowed", p.sent, maxSending)})
		return
	}
	h.order(p, protocol.Command{Kind: protocol.CmdSend, Frame: f})
}

func (h *Head) sendEvent(p *proc, ev protocol.Event) {
	if p.state == protocol.Joined {
		h.send(p, protocol.ShortFrame(0, 0, &ev))
	}
}

// answer ends a request. A nil body is an empty answer, one that is too long a refusal.
func (h *Head) answer(p *proc, id uint32, body protocol.Message) {
	f, err := protocol.ReplyFrame(id, 0, body)
	if err != nil {
		h.refuse(p, id, err)
		return
	}
	h.send(p, f)
}

func (h *Head) refuse(p *proc, id uint32, err error) {
	h.send(p, protocol.ShortFrame(id, 0, protocol.Failure(err)))
}

// call notes a callback about p.
func (h *Head) call(f func(wire.ProcID), p *proc) {
	if f != nil {
		id := p.id
		h.out = append(h.out, Effect{Call: func() { f(id) }})
	}
}

// Flush hands over what is to be done, in order; false if there was nothing. Do
// does not call the head.
func (h *Head) Flush(do func(*Effect)) bool {
	h.settle()
	h.noteUse()
	for _, p := range h.sending {
		p.sent = 0
	}
	h.sending = protocol.Reuse(h.sending)
	n := len(h.out)
	for i := range h.out {
		do(&h.out[i])
	}
	h.out = protocol.Reuse(h.out)
	return n > 0
}

// Sizes is how much each table holds.
func (h *Head) Sizes() map[string]int {
	m := map[string]int{
		"processes": len(h.procs), "living": h.alive, "joined": len(h.joined), "sets": len(h.sets), "names": len(h.names), "news": len(h.news) - h.oldNews, "sets of changes": len(h.ofOp), "bytes in sets": h.setBytes,
		"store": len(h.store), "bytes in store": h.storeBytes, "gets": len(h.gets), "fences": len(h.fences), "rounds": len(h.rounds), "sets with calls": len(h.calling),
	}
	for _, t := range h.sets {
		m["had"] += len(t.had)
		if t.store != nil {
			m["waits in sets"] += len(t.store.waits)
			m["calls in sets"] += len(t.store.calls)
		}
	}
	m["bytes of operations"], m["bytes of reports"] = h.opBytes, h.roundBytes
	m["operations"], m["followed"], m["asked"], m["places"] = len(h.ops), len(h.follows), len(h.asked), h.places
	m["interests"], m["looks"], m["behind"] = len(h.interests), len(h.looks), len(h.behinds)
	for _, p := range h.procs {
		m["owned"] += len(p.owns)
		m["ends awaited"] += len(p.enders)
	}
	for _, ws := range h.nameless {
		m["awaited services"] += len(ws)
	}
	m["short of slots"], m["ports"], m["services"] = len(h.shorts), len(h.ports), len(h.services)
	for _, x := range h.ports {
		m["at ports"] += len(x.accepts) + len(x.connects)
	}
	m["neighbors"], m["strangers"] = len(h.neighbors), len(h.strangers)
	for nb := range h.neighbors {
		m["known abroad"] += len(nb.told)
		m["met abroad"] += len(nb.ours) + len(nb.theirs)
	}
	for t := range h.interests {
		m["happened"] += len(t.happened)
	}
	for what, n := range h.book.Sizes() {
		m["of changes: "+what] = n
	}
	for i := range h.hosts {
		m["on hosts"] += h.hosts[i].local
		m["coming"] += h.hosts[i].coming
	}
	for _, p := range h.procs {
		m["given sets"] += len(p.given) + len(p.lines)
		m["watched"] += len(p.watching)
		m["requests"] += len(p.reqs)
		m["bytes waiting"] += p.waiting
		m["awaited"] += len(p.awaited)
	}
	return m
}
