// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"gompi/internal/testlab"
	"gompi/internal/wire"
)

// ledger drives a head and an agent as a server does, without sockets and
// processes.
type ledger struct {
	*machines
	t     *testing.T
	reqs  uint32
	reaps int
	reply []byte // to the last request, if there was one
}

// answered keeps what a process gets in answer to the last request.
func (l *ledger) answered(d *deed) {
	l.t.Helper()
	if d.frame == nil {
		return
	}
	if f, n, err := parseHead(d.frame); err == nil && f.kind == kReply && f.id == l.reqs {
		var m replyMsg
		if err := decode(&m, d.frame[frameHead:][:n]); err != nil || m.err() != nil {
			l.t.Fatalf("request %d: %v, %v", f.id, err, m.err())
		}
		l.reply = m.body
	}
}

// add lets one process join that the launcher has started.
func (l *ledger) add() *seat {
	l.t.Helper()
	s := l.start(1, 0, noFiles)[0]
	l.enter(0, s)
	l.tell(s, &announceMsg{})
	return s
}

func (l *ledger) tell(p *seat, m message) {
	l.t.Helper()
	l.say(p, 0, m)
}

func (l *ledger) ask(p *seat, m message) []byte {
	l.t.Helper()
	l.reqs++
	return l.say(p, l.reqs, m)
}

func (l *ledger) say(p *seat, id uint32, m message) []byte {
	l.t.Helper()
	var e enc
	m.put(&e)
	l.reply = nil
	if err := l.agents[0].frame(p, frame{kind: m.kind(), id: id, body: e.b}); err != nil {
		l.t.Fatalf("process %d, kind %d: %v", p.serial, m.kind(), err)
	}
	l.settle()
	return l.reply
}

func (l *ledger) askSet(p *seat, m message) wire.Set {
	l.t.Helper()
	var b setBody
	if err := decode(&b, l.ask(p, m)); err != nil {
		l.t.Fatal(err)
	}
	return b.s
}

// sizes is how much each table of head and agent holds.
func (l *ledger) sizes() map[string]int {
	a := l.agents[0]
	m := map[string]int{
		"processes": len(l.procs), "joined": len(l.joined), "sets": len(l.sets),
		"store": len(l.store), "bytes in store": l.storeBytes, "gets": len(l.gets), "fences": len(l.fences),
		"rounds": len(l.rounds), "seats": len(a.seats), "tokens": len(a.tokens), "reservations": len(a.unbound), "commons": len(a.commons),
	}
	for _, s := range a.seats {
		m["pids known"] += len(s.knownBy) + len(s.knows)
	}
	for _, p := range l.procs {
		m["given sets"] += len(p.given)
		m["watched"] += len(p.watching)
		m["requests"] += len(p.reqs) + len(p.awaited)
	}
	return m
}

// TestSoakLedger: processes join a job, meet one that stays, leave or die. What
// head and agent keep, and the time that it takes of it, is that of those who live.
func TestSoakLedger(t *testing.T) {
	const alive = 100
	joins := 10_000
	if testlab.Long() {
		joins = 200_000
	}
	l := &ledger{t: t}
	l.machines = newMachines(&ServerConfig{Job: 6, FaultTolerant: true, Reap: func(wire.ProcID) { l.reaps++ }}, 1)
	l.got = l.answered
	host := l.add()
	agent := l.agents[0]
	id := agent.id
	visit := func(i int, live []*seat) []*seat {
		p := l.add()
		key := fmt.Sprint("address of ", p.serial)
		both := wire.MembersOf(id(host), id(p))
		for _, pair := range [][2]*seat{{p, host}, {host, p}} {
			l.ask(pair[0], &procMsg{kContact, id(pair[1])})
			l.tell(pair[0], &membersMsg{kWatch, both})
		}
		set := l.askSet(host, &membersMsg{kDefine, both})
		l.ask(p, &putMsg{key, []byte("here")})
		if l.askSet(p, &textMsg{kLookup, set.URI}); i%2 == 0 { // the others end with it
			l.tell(p, &releaseMsg{set.Number})
		}
		l.ask(host, &getMsg{key, true})
		l.ask(host, &textMsg{kDelete, key})
		l.tell(host, &releaseMsg{set.Number})
		if live = append(live, p); len(live) < alive {
			return live
		}
		p = live[0]
		if i%3 > 0 {
			l.ask(p, &emptyMsg{kFinalize})
		}
		agent.hungUp(p)
		agent.exited(p, "ended", i%3 > 0)
		l.settle()
		l.tell(host, &procMsg{kDead, id(p)})
		return live[1:]
	}
	var live []*seat
	for i := range 2 * alive {
		live = visit(i, live)
	}
	before, first := l.sizes(), testlab.Take()
	var early, late testlab.Spread
	for i := range joins {
		began := time.Now()
		live = visit(i, live)
		if took := time.Since(began); i < joins/10 {
			early.Add(took)
		} else if i >= joins-joins/10 {
			late.Add(took)
		}
	}
	for what, n := range l.sizes() {
		if n > before[what]+before[what]/2 {
			t.Errorf("%s: %d, %d before %d processes came and went", what, n, before[what], joins)
		}
	}
	if want := joins + alive + 1; l.reaps != want {
		t.Errorf("%d processes were reaped, want %d", l.reaps, want)
	}
	// The least of many is what the work itself takes.
	if a, b := early.At(0.1), late.At(0.1); b > 2*a {
		t.Errorf("a visit took %v in the beginning and %v in the end", a, b)
	}
	last := testlab.Take()
	t.Logf("%d joins: at first %v; at last %v; heap %d and %d KiB", joins, &early, &late, first.HeapBytes>>10, last.HeapBytes>>10)
	if last.HeapBytes > first.HeapBytes+1<<20 {
		t.Errorf("%d KiB of heap, %d before %d processes came and went", last.HeapBytes>>10, first.HeapBytes>>10, joins)
	}
	runtime.KeepAlive(l)
}

// TestSetsOfTheEnded: a set lives while somebody holds it, and with it the
// records of its members that have ended.
func TestSetsOfTheEnded(t *testing.T) {
	r := newRig(t, 1, nil)
	a := r.join(0)
	procs, _, err := r.AddJob([][]string{{"x"}})
	a.must(err)
	b := r.joinAs(procs[0], os.Getpid())
	own, err := b.Lookup(SelfURI)
	b.must(err)
	set, err := a.DefineSet(wire.MembersOf(a.id, b.id))
	a.must(err)
	_, err = a.Lookup(set.URI) // a holds it twice
	a.must(err)
	_, err = b.Lookup(set.URI)
	b.must(err)
	b.Close()
	r.Exited(b.id, "signal: killed", false)
	r.await("reap 2")
	a.must(a.Watch(wire.MembersOf(b.id)))
	if ev := a.expect(EvDied, b.id); ev.Text != "signal: killed" {
		t.Errorf("event %+v", ev)
	}
	if _, err := a.Lookup(SetURI(a.id.Job, own.Number)); !errors.Is(err, ErrNotFound) {
		t.Errorf("the set of a process that has ended: %v", err)
	}
	a.must(a.ReleaseSet(set.Number))
	if _, err := a.Lookup(set.URI); err != nil {
		t.Errorf("a set that is held: %v", err)
	}
	if n := len(r.Snapshot()); n != 2 {
		t.Errorf("%d processes are known", n)
	}
	for range 3 { // once too often
		a.must(a.ReleaseSet(set.Number))
	}
	if _, err := a.Lookup(set.URI); !errors.Is(err, ErrNotFound) {
		t.Errorf("a set that nobody holds: %v", err)
	}
	waitFor(t, "the end of the record", func() bool { return len(r.Snapshot()) == 1 })
	// Who comes by its name even so is told that it has ended.
	a.must(a.Watch(wire.MembersOf(b.id)))
	if ev := a.expect(EvDied, b.id); ev.Text != howPast {
		t.Errorf("event %+v", ev)
	}
	var gone *GoneError
	if _, err := a.Contact(b.id); !errors.As(err, &gone) {
		t.Errorf("contact: %v", err)
	}
	if err := a.Fence(bg, wire.MembersOf(a.id, b.id)); !errors.As(err, &gone) {
		t.Errorf("fence: %v", err)
	}
	if r.State(b.id) != Exited || r.State(a.id) != Joined {
		t.Errorf("states %v, %v", r.State(a.id), r.State(b.id))
	}
	again, err := a.DefineSet(wire.MembersOf(a.id, b.id))
	a.must(err)
	a.must(a.ReleaseSet(again.Number))
	a.settle()
}

// TestCancelledSpawn: nobody holds the set of a Spawn that was given up, whether
// or not its answer was under way.
func TestCancelledSpawn(t *testing.T) {
	r := newRig(t, 1, nil)
	a := r.join(0)
	for i := range 50 {
		ctx, cancel := context.WithTimeout(bg, time.Duration(i)*10*time.Microsecond)
		if set, err := a.Spawn(ctx, nil, 1); err == nil {
			a.must(a.ReleaseSet(set.Number))
		}
		cancel()
	}
	waitFor(t, "the end of all but the first process", func() bool {
		r.mu.Lock()
		for _, procs := range r.spawns {
			r.Exited(procs[0].Proc, "signal: killed", false)
		}
		r.mu.Unlock()
		a.settle()
		r.Server.mu.Lock()
		defer r.Server.mu.Unlock()
		return len(r.st.sets) == 2 && len(r.st.procs) == 1
	})
}
