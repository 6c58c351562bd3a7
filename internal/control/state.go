// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"maps"
	"slices"

	"gompi/internal/wire"
)

// state is all that the head knows of its job: sets, names, who lives and who
// waits for what. Of the hosts it has the numbers; what is on them is their
// agents'. It has no lock, goroutine, clock or socket: its owner (Server) makes
// one call at a time and then takes the effects from out.
type state struct {
	cfg   *ServerConfig
	hosts []host // by number

	procs    map[uint32]*proc // by serial: those that somebody may still ask for
	lastProc uint32           // serials are not reused

	alive  int              // processes that are starting or joined
	joined map[uint32]*proc // those that are joined and connected

	sets    map[uint32]*set
	lastSet uint32

	store      map[string][]byte
	storeBytes int
	gets       map[string]map[*wait]struct{}

	fences map[string][]*fence // by encoded members, oldest first

	rounds map[uint64]*round
	round  uint64

	ending string // why the job ends, "" while it does not

	out []effect
}

// host is one host of the job.
type host struct {
	local int // processes there that have not exited
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
	given      map[uint32]int // sets that it was given, and how often
	named      int            // living sets that it is a member of
	argv       []string

	state     ProcState
	how       string
	died      bool // exited, not in order
	left      bool // has finalized
	freed     bool // nothing of it is left on its host
	connected bool
	pid       int // for people; 0 before it is started

	announced bool
	addrs     []string

	reqs     map[uint32]*wait   // its unanswered requests
	awaited  map[*wait]struct{} // Contacts of others that wait for it
	watching serialSet          // whose end it wants to know, and has not been told
}

// wait is a request that cannot be answered yet.
type wait struct {
	proc *proc // who asks
	id   uint32

	target *proc  // kContact
	key    string // kGet
	fence  *fence // kFence
}

// effect is one thing to do after a step: an order for the agent of a host, a
// callback of the launcher, or a Spawn.
type effect struct {
	order order // of kind 0: none
	host  uint32

	do    func()
	spawn *spawnReq
}

// spawnReq is a Spawn that the server must carry out. It holds the set parent,
// and later the new world, until spawned.
type spawnReq struct {
	w      *wait
	n      int
	argv   []string
	parent uint32
}

func newState(cfg *ServerConfig) *state {
	return &state{
		cfg:    cfg,
		hosts:  make([]host, 1),
		joined: map[uint32]*proc{},
		procs:  map[uint32]*proc{},
		sets:   map[uint32]*set{},
		store:  map[string][]byte{},
		gets:   map[string]map[*wait]struct{}{},
		fences: map[string][]*fence{},
		rounds: map[uint64]*round{},
	}
}

// proc returns the process with this id; nil if there was none, or nothing is
// known of it any more.
func (s *state) proc(id wire.ProcID) *proc {
	if id.Job != s.cfg.Job {
		return nil
	}
	return s.procs[id.Serial]
}

func (s *state) bySerial(n uint32) *proc { return s.procs[n] }

// past reports whether a process has ended so long ago that nothing is known of
// it but that.
func (s *state) past(id wire.ProcID) bool {
	return id.Job == s.cfg.Job && id.Serial > 0 && id.Serial <= s.lastProc && s.procs[id.Serial] == nil
}

// howPast is how such a process has ended. Whether in order is forgotten; who
// asks means to work with it, which fails for certain if it has died.
const howPast = "has ended, and no process set has it any more"

// forget drops the record of a process of which nothing is left, when nobody has
// a set that names it.
func (s *state) forget(p *proc) {
	if p.freed && p.named == 0 {
		delete(s.procs, p.id.Serial)
	}
}

// all lists the processes of which there are records, by serial.
func (s *state) all() []*proc {
	list := make([]*proc, 0, len(s.procs))
	for _, serial := range slices.Sorted(maps.Keys(s.procs)) {
		list = append(list, s.procs[serial])
	}
	return list
}

// add makes processes of the seats that an agent has reserved under this number,
// one for each command line; they form a new world. Parent is 0 or the set of the
// process that spawns them. There is room for them.
func (s *state) add(argv [][]string, parent, host, reservation uint32) wire.Set {
	first := wire.ProcID{Job: s.cfg.Job, Serial: s.lastProc + 1}
	s.out = append(s.out, effect{host: host, order: order{kind: oBind, serial: first.Serial, id: reservation, count: uint32(len(argv))}})
	for i := range argv {
		s.lastProc++
		id := wire.ProcID{Job: s.cfg.Job, Serial: s.lastProc}
		p := &proc{id: id, host: host, rank: i, size: len(argv), parent: parent, argv: argv[i], state: Starting}
		s.procs[id.Serial] = p
		p.self = s.newSet(wire.MembersOf(id)).Number
		s.hold(p.self)
		if parent != 0 {
			s.hold(parent)
		}
	}
	world := s.newSet(wire.NewMembers(wire.Range{First: first, Count: len(argv)}))
	for i := range argv {
		s.proc(first.Next(i)).world = world.Number
		s.hold(world.Number)
	}
	s.hosts[host].local += len(argv)
	s.alive += len(argv)
	s.tellHost(host)
	return world
}

// join is add if there are numbers for so many more, for a Spawn if there is one.
func (s *state) join(argv [][]string, spawn *spawnReq, host, reservation uint32) (wire.Set, error) {
	if !s.roomFor(len(argv)) {
		s.out = append(s.out, effect{host: host, order: order{kind: oUnbind, id: reservation}})
		return wire.Set{}, refused("the job has had %d processes and %d process sets: there are no numbers for %d more",
			s.lastProc, s.lastSet, len(argv))
	}
	if spawn == nil {
		return s.add(argv, 0, host, reservation), nil
	}
	set := s.add(argv, spawn.parent, host, reservation)
	s.hold(set.Number)
	return set, nil
}

// take learns what an agent has seen. What it tells of one of whom nothing is
// left is of no more interest.
func (s *state) take(r *report) {
	p := s.bySerial(r.serial)
	if p == nil {
		return
	}
	switch r.kind {
	case rHello:
		s.hello(p)
	case rFrame:
		if err := s.frame(p, r.frame); err != nil {
			s.order(p, order{kind: oShut, text: protocolBroken(err)})
		}
	case rHungUp:
		s.disconnected(p)
	case rStarted:
		s.started(p, r.pid)
	case rExited:
		s.exited(p, r.text, r.clean)
	case rLost:
		s.lost(p, r.text)
	case rFreed:
		p.freed = true
		s.forget(p)
	}
}

// hello welcomes a process that has shown its token.
func (s *state) hello(p *proc) {
	if p.state != Starting { // given up meanwhile
		s.order(p, order{kind: oShut, text: refused("process %v is %v", p.id, p.state).Error()})
		return
	}
	p.state, p.connected = Joined, true
	p.reqs = map[uint32]*wait{}
	s.joined[p.id.Serial] = p
	m := &welcomeMsg{Welcome{
		Self: p.id, Secret: s.cfg.Secret,
		World:      s.alias(WorldURI, p.world),
		Parent:     s.alias(ParentURI, p.parent),
		LocalProcs: s.hosts[p.host].local, UsableCPUs: s.cfg.UsableCPUs, MaxProcs: s.maxProcs(p.host),
		FaultTolerant: s.cfg.FaultTolerant, KillGrace: s.cfg.KillGrace,
		Settings: s.cfg.Settings,
	}}
	s.order(p, order{kind: oWelcome, frame: appendFrame(nil, 0, frameFDs, m)})
	s.call(s.cfg.Joined, p)
}

// started: the child of p runs.
func (s *state) started(p *proc, pid int) {
	p.pid = pid
	// Contacts wait for the children of both sides.
	s.answerContacts(p.awaited)
	for _, w := range p.reqs {
		if w.target != nil {
			s.answerContact(w)
		}
	}
}

func (s *state) maxProcs(host uint32) int {
	if s.cfg.MaxProcs == nil {
		return 0
	}
	return min(max(0, s.cfg.MaxProcs(max(1, s.hosts[host].local))), maxMembers)
}

// tellHost tells everybody on a host how many processes share it.
func (s *state) tellHost(host uint32) {
	if len(s.joined) == 0 {
		return
	}
	f := appendFrame(nil, 0, 0, &eventMsg{Event{Kind: EvHost, LocalProcs: s.hosts[host].local, MaxProcs: s.maxProcs(host)}})
	s.out = append(s.out, effect{host: host, order: order{kind: oHost, frame: f}})
}

// order tells the agent of p's host.
func (s *state) order(p *proc, o order) {
	o.serial = p.id.Serial
	s.out = append(s.out, effect{host: p.host, order: o})
}

func (s *state) send(p *proc, f []byte) {
	if p.connected {
		s.order(p, order{kind: oSend, frame: f})
	}
}

func (s *state) sendEvent(p *proc, ev Event) {
	if p.state == Joined {
		s.send(p, appendFrame(nil, 0, 0, &eventMsg{ev}))
	}
}

// answer ends a request. A nil body is an empty answer.
func (s *state) answer(p *proc, id uint32, body message) {
	var e enc
	if body != nil {
		body.put(&e)
	}
	s.send(p, appendFrame(nil, id, 0, &replyMsg{body: e.b}))
}

func (s *state) refuse(p *proc, id uint32, err error) {
	s.send(p, appendFrame(nil, id, 0, failure(err)))
}

// call notes a callback about p.
func (s *state) call(f func(wire.ProcID), p *proc) {
	if f != nil {
		id := p.id
		s.out = append(s.out, effect{do: func() { f(id) }})
	}
}

// park keeps a request for later.
func (s *state) park(w *wait) error {
	if len(w.proc.reqs) >= maxParked {
		return fmt.Errorf("more than %d unanswered requests", maxParked)
	}
	w.proc.reqs[w.id] = w
	return nil
}

// maxParked bounds the requests of one process that wait for something.
const maxParked = 1 << 16

// unpark forgets a request wherever it waits.
func (s *state) unpark(w *wait) {
	if w.proc.reqs[w.id] != w {
		return
	}
	delete(w.proc.reqs, w.id)
	switch {
	case w.target != nil:
		delete(w.target.awaited, w)
	case w.fence != nil:
		s.leaveFence(w)
	case w.key != "":
		delete(s.gets[w.key], w)
		if len(s.gets[w.key]) == 0 {
			delete(s.gets, w.key)
		}
	}
}

// unparkWith ends a waiting request with an error.
func (s *state) unparkWith(w *wait, err error) {
	s.unpark(w)
	s.refuse(w.proc, w.id, err)
}

// snapshot lists the processes of which there are records, by serial.
func (s *state) snapshot() []ProcInfo {
	all := s.all()
	list := make([]ProcInfo, len(all))
	for i, p := range all {
		list[i] = p.info()
	}
	return list
}

func (p *proc) info() ProcInfo {
	return ProcInfo{
		Proc: p.id, Rank: p.rank, Size: p.size, World: p.world,
		PID: p.pid, State: p.state, How: p.how,
	}
}
