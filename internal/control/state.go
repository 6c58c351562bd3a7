// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"maps"
	"slices"

	"gompi/internal/wire"
)

// state is all that the agent knows of its job. It has no lock, goroutine,
// clock or socket: its owner (Server) makes one call at a time and then takes
// the effects from out.
type state struct {
	cfg *ServerConfig

	procs    map[uint32]*proc // by serial: those that somebody may still ask for
	lastProc uint32           // serials are not reused

	tokens map[[tokenBytes]byte]uint32 // of processes that have not exited
	local  int                         // processes that have not exited
	alive  int                         // processes that are starting or joined
	joined map[uint32]*proc            // those that are joined and connected

	sets    map[uint32]*set
	lastSet uint32

	store      map[string][]byte
	storeBytes int
	gets       map[string]map[*wait]struct{}

	fences map[string][]*fence // by encoded members, oldest first

	commons map[string]*common // by the request for it

	rounds map[uint64]*round
	round  uint64

	ending string // why the job ends, "" while it does not

	out []effect
}

// proc is one process, from the reservation of its serial until it has ended,
// its pid is free and no set names it.
type proc struct {
	id         wire.ProcID
	rank, size int
	world      uint32 // numbers of its sets
	self       uint32
	parent     uint32         // 0: none
	given      map[uint32]int // sets that it was given, and how often
	named      int            // living sets that it is a member of
	argv       []string
	token      [tokenBytes]byte
	files      *files // nil when exited

	state     ProcState
	how       string
	died      bool // exited, not in order
	left      bool // has finalized
	unborn    bool // exited, and there was never a child
	exitSeen  bool // Exited was called; else the child may run, whatever the state is
	connected bool
	pid       int // the launcher's child, 0 before Started
	helloPID  int // who said hello

	announced bool
	addrs     []string

	reqs     map[uint32]*wait   // its unanswered requests
	awaited  map[*wait]struct{} // Contacts of others that wait for it
	watching serialSet          // whose end it wants to know, and has not been told

	// Who was given its pid and has not let go of it, and whose pids it was
	// given itself: the same pairs from both sides.
	knownBy, knows map[uint32]struct{}
}

// direct tells that the process is the launcher's own child: its pid stays
// taken until the launcher reaps it.
func (p *proc) direct() bool { return p.pid != 0 && p.pid == p.helloPID }

// wait is a request that cannot be answered yet.
type wait struct {
	proc *proc // who asks
	id   uint32

	target *proc  // kContact
	key    string // kGet
	fence  *fence // kFence
}

// effect is one thing to do after a step. Exactly one of frame, do and spawn
// is set.
type effect struct {
	to    uint32 // serial
	frame []byte
	files *files // go with the frame; the effect holds a reference
	host  bool   // an EvHost: replaces one that is not yet sent
	late  bool   // the frame may wait for others

	do    func() // a callback of the launcher
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
		cfg:     cfg,
		tokens:  map[[tokenBytes]byte]uint32{},
		joined:  map[uint32]*proc{},
		procs:   map[uint32]*proc{},
		sets:    map[uint32]*set{},
		store:   map[string][]byte{},
		gets:    map[string]map[*wait]struct{}{},
		fences:  map[string][]*fence{},
		commons: map[string]*common{},
		rounds:  map[uint64]*round{},
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

// forget drops the record of a process that has ended, when its pid is free and
// nobody has a set that names it.
func (s *state) forget(p *proc) {
	if p.state == Exited && p.named == 0 && !p.connected && (p.exitSeen && len(p.knownBy) == 0 || p.unborn) {
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

// seat is what a new process needs from outside the state.
type seat struct {
	argv  []string
	token [tokenBytes]byte
	files *files
}

// add reserves serials for seats; they form a new world. Parent is 0 or the
// set of the process that spawns them. The state takes the seats' files. There
// is room for them.
func (s *state) add(seats []seat, parent uint32) wire.Set {
	first := wire.ProcID{Job: s.cfg.Job, Serial: s.lastProc + 1}
	for i, seat := range seats {
		s.lastProc++
		id := wire.ProcID{Job: s.cfg.Job, Serial: s.lastProc}
		p := &proc{
			id: id, rank: i, size: len(seats), parent: parent,
			argv: seat.argv, token: seat.token, files: seat.files,
			state: Starting,
		}
		s.procs[id.Serial] = p
		s.tokens[seat.token] = id.Serial
		p.self = s.newSet(wire.MembersOf(id)).Number
		s.hold(p.self)
		if parent != 0 {
			s.hold(parent)
		}
	}
	world := s.newSet(wire.NewMembers(wire.Range{First: first, Count: len(seats)}))
	for i := range seats {
		s.proc(first.Next(i)).world = world.Number
		s.hold(world.Number)
	}
	s.local += len(seats)
	s.alive += len(seats)
	s.tellHost()
	return world
}

// hello admits the process with this token and sends its welcome.
func (s *state) hello(token [tokenBytes]byte, pid int) (serial uint32, err error) {
	p := s.bySerial(s.tokens[token])
	switch {
	case p == nil:
		return 0, refused("unknown token")
	case s.ending != "":
		return 0, &withDetail{ErrEnding, s.ending}
	case p.state != Starting:
		return 0, refused("process %v is already %v: one program joins in each place, once", p.id, p.state)
	}
	p.state, p.connected, p.helloPID = Joined, true, pid
	p.reqs = map[uint32]*wait{}
	s.joined[p.id.Serial] = p
	m := &welcomeMsg{Welcome{
		Self: p.id, Secret: s.cfg.Secret,
		World:      s.alias(WorldURI, p.world),
		Parent:     s.alias(ParentURI, p.parent),
		LocalProcs: s.local, UsableCPUs: s.cfg.UsableCPUs, MaxProcs: s.maxProcs(),
		FaultTolerant: s.cfg.FaultTolerant, KillGrace: s.cfg.KillGrace,
		Settings: s.cfg.Settings,
	}}
	s.sendFiles(p, p.files, appendFrame(nil, 0, frameFDs, m))
	s.call(s.cfg.Joined, p)
	return p.id.Serial, nil
}

// started tells the pid of the launcher's child.
func (s *state) started(p *proc, pid int) {
	if p.state == Exited || p.pid != 0 {
		return
	}
	p.pid = pid
	// Contacts wait for the pids of both sides.
	s.answerContacts(p.awaited)
	for _, w := range p.reqs {
		if w.target != nil {
			s.answerContact(w)
		}
	}
}

func (s *state) maxProcs() int {
	if s.cfg.MaxProcs == nil {
		return 0
	}
	return min(max(0, s.cfg.MaxProcs(max(1, s.local))), maxMembers)
}

// tellHost tells everybody how many processes share the host.
func (s *state) tellHost() {
	if len(s.joined) == 0 {
		return
	}
	f := appendFrame(nil, 0, 0, &eventMsg{Event{Kind: EvHost, LocalProcs: s.local, MaxProcs: s.maxProcs()}})
	for serial := range s.joined {
		s.out = append(s.out, effect{to: serial, frame: f, host: true})
	}
}

func (s *state) send(p *proc, f []byte) {
	if p.connected {
		s.out = append(s.out, effect{to: p.id.Serial, frame: f})
	}
}

func (s *state) sendFiles(p *proc, fs *files, f []byte) {
	if p.connected {
		fs.retain()
		s.out = append(s.out, effect{to: p.id.Serial, frame: f, files: fs})
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
	in := ProcInfo{
		Proc: p.id, Rank: p.rank, Size: p.size, World: p.world,
		PID: p.pid, State: p.state, How: p.how, Segment: -1,
	}
	if p.files != nil {
		in.Segment = p.files.segment
	}
	return in
}
