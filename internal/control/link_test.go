// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"slices"
	"testing"

	"gompi/internal/wire"
)

// overWire makes of a message what arrives of it on another machine.
func overWire(m message) message {
	n := blank(m)
	if err := decode(n, bytes.Clone(body(m))); err != nil {
		panic(err)
	}
	return n
}

// machines are a head and the agents of some hosts without sockets and
// processes. All that they tell each other goes over the wire.
type machines struct {
	*state
	agents []*agent
	spawn  func(r *spawnReq) // nil: there is none
	got    func(d *deed)     // sees the frames that processes get; may be nil
	tokens int               // given out
}

func newMachines(cfg *ServerConfig, hosts int) *machines {
	m := &machines{state: newState(cfg)}
	m.hosts = make([]host, hosts)
	for i := range hosts {
		m.agents = append(m.agents, newAgent(cfg, uint32(i)))
	}
	return m
}

// settle passes on what was told until nobody has anything to tell.
func (m *machines) settle() {
	for more := true; more; {
		more = false
		for _, a := range m.agents {
			for _, r := range take(&a.up) {
				m.state.take(&overWire(&reportMsg{r}).(*reportMsg).r)
				more = true
			}
		}
		for _, e := range take(&m.out) {
			switch {
			case e.do != nil:
				e.do()
			case e.spawn != nil:
				m.spawn(e.spawn)
			default:
				m.agents[e.host].take(&overWire(&orderMsg{e.order}).(*orderMsg).o)
			}
			more = true
		}
		for _, a := range m.agents {
			for _, d := range take(&a.out) {
				if d.do != nil {
					d.do()
				} else if m.got != nil {
					m.got(&d)
				}
				d.files.release()
			}
		}
	}
}

// take empties a list.
func take[T any](list *[]T) []T {
	l := *list
	*list = nil
	return l
}

// start has the agent of a host start processes with files, or with none.
func (m *machines) start(n int, host uint32, files func() *files) []*seat {
	seats := make([]*seat, n)
	for i := range seats {
		m.tokens++
		seats[i] = &seat{state: Starting, files: files(), token: [tokenBytes]byte{byte(m.tokens), byte(m.tokens >> 8), byte(m.tokens >> 16)}}
	}
	a := m.agents[host]
	if _, err := m.join(make([][]string, n), nil, host, a.reserve(seats)); err != nil {
		panic(err)
	}
	m.settle()
	return seats
}

// noFiles stands for those of a process that nobody looks at.
func noFiles() *files {
	f := &files{segment: -1, bell: -1}
	f.refs.Store(1)
	return f
}

// enter lets the program in a seat run and join.
func (m *machines) enter(host uint32, s *seat) *proc {
	a := m.agents[host]
	a.started(s, 10)
	if _, err := a.hello(s.token, 10); err != nil {
		panic(err)
	}
	m.settle()
	return m.bySerial(s.serial)
}

// frames collects what processes get, by serial.
type frames struct {
	t    *testing.T
	got  map[uint32][]frame
	with map[uint32]*files // that came with the last frame
}

func (f *frames) take(d *deed) {
	f.t.Helper()
	if d.frame == nil {
		return
	}
	fr, n, err := parseHead(d.frame)
	if err != nil || len(d.frame) != frameHead+n {
		f.t.Fatalf("frame of %d bytes: %v", len(d.frame), err)
	}
	fr.body = d.frame[frameHead:]
	f.got[d.to], f.with[d.to] = append(f.got[d.to], fr), d.files
}

// last decodes the last frame that a process got, which is a reply or an event.
func (f *frames) last(s *seat, m message) {
	f.t.Helper()
	list := f.got[s.serial]
	if len(list) == 0 {
		f.t.Fatalf("process %d got nothing", s.serial)
	}
	fr := list[len(list)-1]
	var r replyMsg
	if fr.kind == kReply {
		if err := decode(&r, fr.body); err != nil || r.err() != nil {
			f.t.Fatalf("process %d is answered %v, %v", s.serial, err, r.err())
		}
		fr.body = r.body
	}
	if err := decode(m, fr.body); err != nil || m.kind() != fr.kind {
		f.t.Fatalf("process %d got a frame of kind %d: %v", s.serial, fr.kind, err)
	}
}

// TestTwoHosts: what is of a host stays there: pids, descriptors, memory, how many
// processes there are. Names, sets and ends are the head's, for all.
func TestTwoHosts(t *testing.T) {
	reaped := map[uint32]bool{}
	m := newMachines(&ServerConfig{Job: 6, FaultTolerant: true, Reap: func(p wire.ProcID) { reaped[p.Serial] = true }}, 2)
	got := &frames{t, map[uint32][]frame{}, map[uint32]*files{}}
	m.got = got.take
	here, there := m.start(2, 0, noFiles), m.start(1, 1, noFiles)
	a, b, c := here[0], here[1], there[0]
	host := map[*seat]uint32{a: 0, b: 0, c: 1}
	say := func(s *seat, id uint32, x message) {
		t.Helper()
		if err := m.agents[host[s]].frame(s, frame{kind: x.kind(), id: id, body: body(x)}); err != nil {
			t.Fatal(err)
		}
		m.settle()
	}
	id := m.agents[0].id
	for _, s := range []*seat{a, b, c} {
		m.enter(host[s], s)
		var w welcomeMsg
		got.last(s, &w)
		if want := 2 - int(host[s]); w.w.LocalProcs != want || got.with[s.serial] != s.files {
			t.Errorf("process %d: %d processes on its host, want %d", s.serial, w.w.LocalProcs, want)
		}
		say(s, 0, &announceMsg{})
	}

	var near, far contactBody
	say(a, 1, &procMsg{kContact, id(b)})
	got.last(a, &near)
	if !near.c.SameHost || near.c.Host != 0 || near.c.PID != 10 || got.with[a.serial] != b.files {
		t.Errorf("contact on one host: %+v", near.c)
	}
	say(a, 2, &procMsg{kContact, id(c)})
	got.last(a, &far)
	if far.c.SameHost || far.c.Host != 1 || far.c.PID != 0 || got.with[a.serial] != nil {
		t.Errorf("contact across hosts: %+v", far.c)
	}
	say(c, 2, &procMsg{kContact, id(a)})

	all := wire.MembersOf(id(a), id(b), id(c))
	memory := map[*seat]*files{}
	for _, s := range []*seat{a, b, c} {
		say(s, 3, &commonMsg{kCommon, wire.ContextID{Creator: id(a), Serial: 1}, all, 1 << 16})
		memory[s] = got.with[s.serial]
	}
	if memory[a] == nil || memory[a] != memory[b] || memory[c] == nil || memory[c] == memory[a] {
		t.Errorf("common memory %v", memory)
	}
	say(a, 4, &membersMsg{kDefine, all})
	var set setBody
	if got.last(a, &set); !slices.Equal(set.s.Hosts, wire.Hosts{{Host: 0, Count: 2}, {Host: 1, Count: 1}}) {
		t.Errorf("a set over two hosts: %v", set.s.Hosts)
	}

	var ev eventMsg
	m.agents[1].hungUp(c)
	m.agents[1].exited(c, "signal: killed", false)
	m.settle()
	got.last(a, &ev)
	if ev.ev.Kind != EvDied || ev.ev.Proc != id(c) || ev.ev.Text != "signal: killed" {
		t.Errorf("event %+v", ev.ev)
	}
	if !reaped[c.serial] || len(m.agents[1].seats) != 0 {
		t.Error("the pid of a process is held for those of another host")
	}
	m.agents[0].exited(b, "signal: killed", false)
	m.settle()
	if reaped[b.serial] {
		t.Error("reaped while process 1 may touch it")
	}
	say(a, 0, &procMsg{kDead, id(b)})
	if !reaped[b.serial] {
		t.Error("nobody has its pid, and it is not reaped")
	}
	m.end("enough")
	m.settle()
	got.last(a, &ev)
	for _, x := range m.agents {
		if x.ending != "enough" {
			t.Errorf("host %d does not know that the job ends", x.host)
		}
		x.close()
	}
}

// What the head tells of a process may come when the process has ended.
func TestOrdersForTheEnded(t *testing.T) {
	m := newMachines(&ServerConfig{Job: 6}, 1)
	got := &frames{t, map[uint32][]frame{}, map[uint32]*files{}}
	m.got = got.take
	ss, x := m.start(3, 0, noFiles), m.agents[0]
	a, b := ss[0], ss[1]
	for _, s := range ss[:2] {
		m.enter(0, s)
	}
	x.exited(b, "signal: killed", false) // which the head does not know yet
	x.take(&order{kind: oContact, serial: a.serial, id: 5, contact: &wire.Contact{Proc: x.id(b)}})
	m.settle()
	var r replyMsg
	list := got.got[a.serial]
	if f := list[len(list)-1]; f.kind != kReply && len(list) > 1 {
		list = list[:len(list)-1] // an EvHost
	}
	if f := list[len(list)-1]; f.kind != kReply || f.id != 5 || decode(&r, f.body) != nil || r.status != stGone {
		t.Errorf("contact with one that has ended: kind %d, %+v", f.kind, r)
	}
	if len(a.knows) != 0 {
		t.Error("a pid was given that may be a stranger's")
	}
	x.hungUp(b)
	m.settle()
	if len(x.seats) != 2 {
		t.Fatalf("%d seats", len(x.seats))
	}
	for _, o := range []order{
		{kind: oSend, frame: appendFrame(nil, 0, 0, &emptyMsg{kFinalize})}, {kind: oWelcome}, {kind: oOver, state: Finalized},
		{kind: oAbandon}, {kind: oShut, text: "x"}, {kind: oContact, contact: &wire.Contact{Proc: x.id(a)}},
	} {
		o.serial = b.serial
		x.take(&o)
	}
	for k := rHello; k <= rFreed; k++ {
		m.state.take(&report{kind: k, serial: 99})
	}
	m.settle()
	// One that was given up before it was started, and says hello even so.
	late := ss[2]
	if _, err := x.hello(late.token, 10); err != nil {
		t.Fatal(err)
	}
	m.abandon(m.bySerial(late.serial), "no room")
	m.settle()
	if late.state != Exited || m.bySerial(late.serial).connected {
		t.Error("a process joined that was given up")
	}
	x.close()
}
