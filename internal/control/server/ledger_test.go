// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/agent"
	"gompi/internal/control/controltest"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
	"gompi/internal/test/testlab"
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
func (l *ledger) answered(d *agent.Action) {
	l.t.Helper()
	if d.Frame == nil {
		return
	}
	if f, n, err := protocol.ParseHead(d.Frame); err == nil && f.Kind == protocol.KindReply && f.ID == l.reqs {
		var m protocol.Reply
		if err := protocol.Decode(&m, d.Frame[protocol.FrameHead:][:n]); err != nil || m.Err() != nil {
			l.t.Fatalf("request %d: %v, %v", f.ID, err, m.Err())
		}
		l.reply = m.Body
	}
}

// add lets one process join that the launcher has started.
func (l *ledger) add() place {
	l.t.Helper()
	ps, _ := l.start(1, 0)
	l.enter(ps[0])
	l.tell(ps[0], &protocol.Announce{})
	return ps[0]
}

func (l *ledger) tell(p place, m protocol.Message) {
	l.t.Helper()
	l.told(p, 0, m)
}

func (l *ledger) ask(p place, m protocol.Message) []byte {
	l.t.Helper()
	l.reqs++
	return l.told(p, l.reqs, m)
}

func (l *ledger) told(p place, id uint32, m protocol.Message) []byte {
	l.t.Helper()
	l.reply = nil
	if err := l.say(p, id, m); err != nil {
		l.t.Fatalf("process %d, kind %d: %v", p.Serial, protocol.KindOf(m), err)
	}
	return l.reply
}

func (l *ledger) askSet(p place, m protocol.Message) wire.Set {
	l.t.Helper()
	var b protocol.SetBody
	if err := protocol.Decode(&b, l.ask(p, m)); err != nil {
		l.t.Fatal(err)
	}
	return b.S
}

// TestSoakLedger: processes join a job, meet one that stays, leave or die. What
// head and agent keep, and the time that it takes of it, is that of those who live.
func TestSoakLedger(t *testing.T) {
	const alive = 100
	joins := testlab.Rounds(10_000, 200_000)
	l := &ledger{t: t}
	l.machines = newMachines(head.Config{Job: 6, FaultTolerant: true}, 1, func(wire.ProcID) { l.reaps++ })
	l.got = l.answered
	host := l.add()
	agent := l.agents[0]
	visit := func(i int, live []place) []place {
		p := l.add()
		key := fmt.Sprint("address of ", p.Serial)
		both := wire.MembersOf(host.ProcID, p.ProcID)
		for _, pair := range [][2]place{{p, host}, {host, p}} {
			l.ask(pair[0], &protocol.Proc{Kind: protocol.KindContact, Proc: pair[1].ProcID})
			l.tell(pair[0], &protocol.Members{Kind: protocol.KindWatch, Members: both})
		}
		set := l.askSet(host, &protocol.Members{Kind: protocol.KindDefine, Members: both})
		c := protocol.Common{ID: wire.ContextID{Creator: p.ProcID, Serial: 1}, Members: both, Bytes: 16 << 20, First: 8 << 10}
		var mine, theirs protocol.CommonBody
		for q, b := range map[place]*protocol.CommonBody{p: &mine, host: &theirs} {
			if err := protocol.Decode(b, l.ask(q, &c)); err != nil {
				l.t.Fatal(err)
			}
		}
		if mine != theirs {
			l.t.Fatalf("%+v and %+v", mine, theirs)
		}
		l.tell(host, &protocol.LeaveCommon{Arena: mine.X.Arena, Off: mine.X.Off}) // p until it ends, or before
		if i%5 == 0 {
			l.tell(p, &protocol.LeaveCommon{Arena: mine.X.Arena, Off: mine.X.Off})
		}
		l.ask(p, &protocol.Put{Key: key, Val: []byte("here")})
		if l.ask(p, &protocol.Text{Kind: protocol.KindLookup, Text: set.URI}); i%2 == 0 { // the others end with it
			l.tell(p, &protocol.Release{Number: set.Number})
		}
		l.ask(host, &protocol.Get{Key: key, Wait: true})
		l.ask(host, &protocol.Text{Kind: protocol.KindDelete, Text: key})
		l.tell(host, &protocol.Release{Number: set.Number})
		if live = append(live, p); len(live) < alive {
			return live
		}
		p = live[0]
		if i%3 > 0 {
			l.ask(p, &protocol.Empty{Kind: protocol.KindFinalize})
		}
		agent.HungUp(p.Serial)
		agent.Exited(p.ProcID, "ended", i%3 > 0)
		l.settle()
		l.tell(host, &protocol.Proc{Kind: protocol.KindDead, Proc: p.ProcID})
		return live[1:]
	}
	var live []place
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
	own, err := b.Lookup(protocol.SelfURI)
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
	if ev := a.expect(protocol.EvDied, b.id); ev.Text != "signal: killed" {
		t.Errorf("event %+v", ev)
	}
	if _, err := a.Lookup(protocol.SetURI(a.id.Job, own.Number)); !errors.Is(err, protocol.ErrSetGone) {
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
	if _, err := a.Lookup(set.URI); !errors.Is(err, protocol.ErrSetGone) {
		t.Errorf("a set that nobody holds: %v", err)
	}
	controltest.WaitFor(t, "the end of the record", func() bool { return len(r.Snapshot()) == 1 })
	// Who comes by its name even so is told that it has ended.
	a.must(a.Watch(wire.MembersOf(b.id)))
	if ev := a.expect(protocol.EvDied, b.id); !strings.Contains(ev.Text, "no process set has it any more") {
		t.Errorf("event %+v", ev)
	}
	var gone *protocol.GoneError
	if _, err := a.Contact(b.id); !errors.As(err, &gone) {
		t.Errorf("contact: %v", err)
	}
	if err := a.Fence(bg, wire.MembersOf(a.id, b.id)); !errors.As(err, &gone) {
		t.Errorf("fence: %v", err)
	}
	if r.State(b.id) != protocol.Exited || r.State(a.id) != protocol.Joined {
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
	controltest.WaitFor(t, "the end of all but the first process", func() bool {
		r.mu.Lock()
		for _, procs := range r.spawns {
			r.Exited(procs[0].Proc, "signal: killed", false)
		}
		r.mu.Unlock()
		a.settle()
		left := r.sizes()
		return left["sets"] == 2 && left["processes"] == 1
	})
}
