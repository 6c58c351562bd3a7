// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/agent"
	"gompi/internal/control/controltest"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
)

// machines are a head and the agents of some hosts without sockets and
// processes. All that they tell each other goes over the wire.
type machines struct {
	job    wire.JobID
	head   *head.Head
	agents []*agent.Agent
	works  []agent.Action // to be carried out

	launches []*head.Launch        // likewise
	launched func(p place)         // gets the place of each started process; nil: it never joins
	failing  error                 // why what is spawned is then not started; nil: it is
	fates    []string              // what the launcher was told of processes
	got      func(d *agent.Action) // sees the frames that processes get; may be nil
}

func newMachines(cfg head.Config, hosts int, reap func(wire.ProcID)) *machines {
	m := &machines{job: cfg.Job, head: head.New(cfg, hosts)}
	for i := range hosts {
		m.agents = append(m.agents, agent.New(cfg.Job, uint32(i), reap))
	}
	return m
}

// settle passes on what was told until nobody has anything to tell.
func (m *machines) settle() {
	for more := true; more; {
		more = false
		for host, a := range m.agents {
			more = a.Report(func(r *protocol.Report) { m.head.Take(uint32(host), controltest.OverWire(r).(*protocol.Report)) }) || more
		}
		more = m.head.Flush(m.effect) || more
		for _, l := range m.launches {
			m.launch(l)
		}
		m.launches = nil
		for _, a := range m.agents {
			more = a.Flush(m.act) || more
		}
		for _, d := range m.works {
			err := d.Work()
			d.Files.Release()
			d.Done(err)
			more = true
		}
		m.works = nil
	}
}

func (m *machines) effect(e *head.Effect) {
	switch {
	case e.Call != nil:
		e.Call()
	case e.Launch != nil:
		m.launches = append(m.launches, e.Launch)
	case e.Fate != 0:
		m.fates = append(m.fates, fmt.Sprint(e.Fate, " ", len(e.Procs)))
	default:
		m.agents[e.Host].Take(controltest.OverWire(&e.Order).(*protocol.Command))
	}
}

func (m *machines) act(d *agent.Action) {
	if d.Work != nil {
		m.works = append(m.works, *d)
		return
	}
	if d.Call != nil {
		d.Call()
	} else if m.got != nil {
		m.got(d)
	}
	d.Files.Release()
}

// sizes is how much each table of head and agents holds.
func (m *machines) sizes() map[string]int {
	sum := m.head.Sizes()
	for _, a := range m.agents {
		for what, n := range a.Sizes() {
			sum[what] += n
		}
	}
	return sum
}

// place is where one process is started.
type place struct {
	wire.ProcID
	host  uint32
	token string
}

// start has the agent of a host start processes.
func (m *machines) start(n int, host uint32) ([]place, wire.Set) {
	a := m.agents[host]
	at := m.head.PlaceOn(host, n)
	at.Reservation = a.Reserve(agent.BareProcs(n))
	set, err := m.head.Join(make([][]string, n), []head.Place{at})
	if err != nil {
		panic(err)
	}
	m.head.Flush(m.effect)
	places := make([]place, n)
	for i, p := range set.Members.All() {
		places[i] = place{p, host, a.Token(p)}
	}
	return places, set
}

// launch starts newcomers of a change, where there is a use for them.
func (m *machines) launch(l *head.Launch) {
	if m.launched == nil {
		m.head.Launched(l, errors.New("nobody starts processes"))
		return
	}
	for i := range l.Places {
		at := &l.Places[i]
		at.Reservation = m.agents[at.Host].Reserve(agent.BareProcs(at.Count))
	}
	procs := m.head.Bind(l)
	m.head.Flush(m.effect)
	if procs == nil {
		return
	}
	for _, p := range procs {
		m.launched(place{p.Proc, p.Host, m.agents[p.Host].Token(p.Proc)})
	}
	var err error
	if l.OfSpawn() {
		err = m.failing
	}
	m.head.Launched(l, err)
}

// hello shows the token of the program in a place.
func (m *machines) hello(p place) error {
	var token [protocol.TokenBytes]byte
	hex.Decode(token[:], []byte(p.token))
	_, err := m.agents[p.host].Hello(token, 10)
	return err
}

// enter lets the program in a place run and join.
func (m *machines) enter(p place) {
	m.agents[p.host].Started(p.ProcID, 10)
	if err := m.hello(p); err != nil {
		panic(err)
	}
	m.settle()
}

// say lets a process send a frame.
func (m *machines) say(p place, id uint32, x protocol.Message) error {
	if _, err := m.agents[p.host].Frame(p.Serial, protocol.Frame{Kind: protocol.KindOf(x), ID: id, Body: protocol.Encode(x)}); err != nil {
		return err
	}
	m.settle()
	return nil
}

// frames collects what processes get, by serial.
type frames struct {
	t    *testing.T
	got  map[uint32][]protocol.Frame
	with map[uint32]*agent.Files // that came with the last frame
}

func (f *frames) take(d *agent.Action) {
	f.t.Helper()
	if d.Frame == nil {
		return
	}
	fr, n, err := protocol.ParseHead(d.Frame)
	if err != nil || len(d.Frame) != protocol.FrameHead+n {
		f.t.Fatalf("frame of %d bytes: %v", len(d.Frame), err)
	}
	fr.Body = d.Frame[protocol.FrameHead:]
	var w protocol.Welcomed
	if fr.Kind == protocol.KindWelcome && protocol.Decode(&w, fr.Body) == nil {
		fr.Body = w.Welcome
	}
	f.got[d.To], f.with[d.To] = append(f.got[d.To], fr), d.Files
}

// last decodes the last frame that a process got, which is a reply or an event.
func (f *frames) last(p place, m protocol.Message) {
	f.t.Helper()
	list := f.got[p.Serial]
	if len(list) == 0 {
		f.t.Fatalf("process %d got nothing", p.Serial)
	}
	fr := list[len(list)-1]
	var r protocol.Reply
	if fr.Kind == protocol.KindReply {
		if err := protocol.Decode(&r, fr.Body); err != nil || r.Err() != nil {
			f.t.Fatalf("process %d is answered %v, %v", p.Serial, err, r.Err())
		}
		fr.Body = r.Body
	}
	if err := protocol.Decode(m, fr.Body); err != nil || protocol.KindOf(m) != fr.Kind {
		f.t.Fatalf("process %d got a %v frame: %v", p.Serial, fr.Kind, err)
	}
}

func newFrames(t *testing.T) *frames {
	return &frames{t, map[uint32][]protocol.Frame{}, map[uint32]*agent.Files{}}
}

// TestTwoHosts: what is of a host stays there: pids, descriptors, memory, how many
// processes there are. Names, sets and ends are the head's, for all.
func TestTwoHosts(t *testing.T) {
	reaped := map[wire.ProcID]bool{}
	m := newMachines(head.Config{Job: 6, FaultTolerant: true}, 2, func(p wire.ProcID) { reaped[p] = true })
	got := newFrames(t)
	m.got = got.take
	here, _ := m.start(2, 0)
	there, _ := m.start(1, 1)
	a, b, c := here[0], here[1], there[0]
	say := func(p place, id uint32, x protocol.Message) {
		t.Helper()
		if err := m.say(p, id, x); err != nil {
			t.Fatal(err)
		}
	}
	own := map[place]*agent.Files{}
	for _, p := range []place{a, b, c} {
		m.enter(p)
		var w protocol.Welcome
		got.last(p, &w)
		if want := 2 - int(p.host); w.LocalProcs != want || got.with[p.Serial] == nil {
			t.Errorf("process %d: %d processes on its host, want %d", p.Serial, w.LocalProcs, want)
		}
		own[p] = got.with[p.Serial]
		say(p, 0, &protocol.Announce{})
	}

	var near, far protocol.ContactBody
	say(a, 1, &protocol.Proc{Kind: protocol.KindContact, Proc: b.ProcID})
	got.last(a, &near)
	if !near.C.SameHost || near.C.Host != 0 || near.C.PID != 10 || got.with[a.Serial] != own[b] {
		t.Errorf("contact on one host: %+v", near.C)
	}
	say(a, 2, &protocol.Proc{Kind: protocol.KindContact, Proc: c.ProcID})
	got.last(a, &far)
	if far.C.SameHost || far.C.Host != 1 || far.C.PID != 0 || got.with[a.Serial] != nil {
		t.Errorf("contact across hosts: %+v", far.C)
	}
	say(c, 2, &protocol.Proc{Kind: protocol.KindContact, Proc: a.ProcID})

	all := wire.MembersOf(a.ProcID, b.ProcID, c.ProcID)
	memory := map[place]*agent.Files{}
	for _, p := range []place{a, b, c} {
		say(p, 3, &protocol.Common{ID: wire.ContextID{Creator: a.ProcID, Serial: 1}, Members: all, Bytes: 1 << 16, First: 1 << 12})
		memory[p] = got.with[p.Serial]
	}
	if memory[a] == nil || memory[a] != memory[b] || memory[c] == nil || memory[c] == memory[a] {
		t.Errorf("common memory %v", memory)
	}
	say(a, 4, &protocol.Members{Kind: protocol.KindDefine, Members: all})
	var set protocol.SetBody
	if got.last(a, &set); !slices.Equal(set.S.Hosts, wire.Hosts{{Host: 0, Count: 2}, {Host: 1, Count: 1}}) {
		t.Errorf("a set over two hosts: %v", set.S.Hosts)
	}

	var ev protocol.Event
	m.agents[1].HungUp(c.Serial)
	m.agents[1].Exited(c.ProcID, "signal: killed", false)
	m.settle()
	got.last(a, &ev)
	if ev.Kind != protocol.EvDied || ev.Proc != c.ProcID || ev.Text != "signal: killed" {
		t.Errorf("event %+v", ev)
	}
	if !reaped[c.ProcID] || m.agents[1].Sizes()["places"] != 0 {
		t.Error("the pid of a process is held for those of another host")
	}
	m.agents[0].Exited(b.ProcID, "signal: killed", false)
	m.settle()
	if reaped[b.ProcID] {
		t.Error("reaped while process 1 may touch it")
	}
	say(a, 0, &protocol.Proc{Kind: protocol.KindDead, Proc: b.ProcID})
	if !reaped[b.ProcID] {
		t.Error("nobody has its pid, and it is not reaped")
	}
	late := make([]place, 2)
	for host := range late {
		ps, _ := m.start(1, uint32(host))
		late[host] = ps[0]
	}
	m.head.End("enough")
	m.settle()
	got.last(a, &ev)
	for host, x := range m.agents {
		if err := m.hello(late[host]); !errors.Is(err, protocol.ErrEnding) {
			t.Errorf("host %d does not know that the job ends: %v", host, err)
		}
		x.Close()
	}
}

// What the head tells of a process may come when the process has ended.
func TestOrdersForTheEnded(t *testing.T) {
	m := newMachines(head.Config{Job: 6, Spawns: true}, 1, nil)
	got := newFrames(t)
	m.got = got.take
	ps, _ := m.start(2, 0)
	x, a, b := m.agents[0], ps[0], ps[1]
	for _, p := range ps {
		m.enter(p)
	}
	x.Exited(b.ProcID, "signal: killed", false) // which the head does not know yet
	x.Take(&protocol.Command{Kind: protocol.CmdContact, Serial: a.Serial, ID: 5, Contact: &wire.Contact{Proc: b.ProcID}})
	m.settle()
	var r protocol.Reply
	list := got.got[a.Serial]
	if f := list[len(list)-1]; f.Kind != protocol.KindReply && len(list) > 1 {
		list = list[:len(list)-1] // an EvHost
	}
	if f := list[len(list)-1]; f.Kind != protocol.KindReply || f.ID != 5 || protocol.Decode(&r, f.Body) != nil || r.Status != protocol.StatusGone {
		t.Errorf("contact with one that has ended: kind %d, %+v", f.Kind, r)
	}
	if x.Sizes()["pids known"] != 0 {
		t.Error("a pid was given that may be a stranger's")
	}
	x.HungUp(b.Serial)
	m.settle()
	if n := x.Sizes()["places"]; n != 1 {
		t.Fatalf("%d places", n)
	}
	for _, o := range []protocol.Command{
		{Kind: protocol.CmdSend, Frame: protocol.ShortFrame(0, 0, &protocol.Empty{Kind: protocol.KindFinalize})}, {Kind: protocol.CmdWelcome}, {Kind: protocol.CmdOver, State: protocol.Finalized},
		{Kind: protocol.CmdAbandon}, {Kind: protocol.CmdShut, Text: "x"}, {Kind: protocol.CmdContact, Contact: &wire.Contact{Proc: a.ProcID}},
	} {
		o.Serial = b.Serial
		x.Take(&o)
	}
	for k := protocol.ReportHello; k <= protocol.ReportFreed; k++ {
		m.head.Take(0, &protocol.Report{Kind: k, Serial: 99})
	}
	m.settle()
	// One that was given up before it was started, and says hello even so.
	var late place
	m.failing = errors.New("no room")
	m.launched = func(p place) {
		late = p
		if err := m.hello(late); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.say(a, 6, &protocol.Spawn{Parts: []protocol.SpawnPart{{N: 1}}}); err != nil {
		t.Fatal(err)
	}
	if m.head.State(late.ProcID) != protocol.Exited || m.head.Sizes()["joined"] != 1 {
		t.Error("a process joined that was given up")
	}
	x.Close()
}
