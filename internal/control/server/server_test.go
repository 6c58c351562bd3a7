// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/client"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

func TestWelcome(t *testing.T) {
	r := newRig(t, 3, nil)
	r.Started(r.procs[1].Proc, os.Getpid())
	c, w, err := client.Dial(r.Addr(), r.Token(r.procs[1].Proc))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := segment.Check(w.Segment, w.Self); err != nil {
		t.Error(err)
	}
	if _, err := unix.Write(w.Bell, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Error(err)
	}
	unix.Close(w.Segment)
	unix.Close(w.Bell)
	got := *w
	got.Segment, got.Bell, got.Arena.File = 0, 0, 0
	want := protocol.Welcome{
		Self: r.procs[1].Proc, Secret: [32]byte{1, 2, 3},
		World: wire.Set{URI: protocol.WorldURI, Number: r.world.Number, Members: r.world.Members,
			Hosts: wire.Hosts{{Host: 0, Count: 3}}},
		LocalProcs: 3, UsableCPUs: 2, MaxProcs: 2, Hosts: 1, KillGrace: 2 * time.Second,
		Settings: map[string]string{"GOMPI_A": "1", "GOMPI_B": ""},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("welcome\n%+v\nwant\n%+v", got, want)
	}
	r.await("joined 2")
	if _, _, err := client.Dial(r.Addr(), r.Token(r.procs[1].Proc)); !errors.Is(err, protocol.ErrRefused) || !strings.Contains(err.Error(), "is already joined") {
		t.Errorf("second join with one token: %v", err)
	}
	if _, _, err := client.Dial(r.Addr(), strings.Repeat("ab", 16)); !errors.Is(err, protocol.ErrRefused) || strings.Count(err.Error(), protocol.ErrRefused.Error()) != 1 {
		t.Errorf("unknown token: %v", err)
	}
	if _, _, err := client.Dial(r.Addr(), "abc"); err == nil {
		t.Error("malformed token accepted")
	}
	if _, _, err := client.Dial("@gompi-none", r.Token(r.procs[0].Proc)); err == nil {
		t.Error("joined without a server")
	}
}

func TestContact(t *testing.T) {
	r := newRig(t, 4, nil)
	a, b := r.join(0), r.join(1)
	c := a.meet(b.id)
	want := wire.Contact{Proc: b.id, SameHost: true, PID: os.Getpid(), Segment: c.Segment, Bell: c.Bell, Addrs: []string{"127.0.0.1:2"}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("contact %+v; want %+v", c, want)
	}
	a.meet(a.id)

	wrapped := r.joinAs(r.procs[2], os.Getpid()+1)
	if got := a.meet(wrapped.id).PID; got != 0 {
		t.Errorf("pid %d of a process that is not the launcher's child", got)
	}
	if got := wrapped.meet(a.id).PID; got != 0 {
		t.Errorf("pid %d for a process whose end the launcher does not see", got)
	}

	late := controltest.Async(t, func() error {
		c, err := a.Contact(r.procs[3].Proc)
		unix.Close(c.Segment)
		unix.Close(c.Bell)
		return err
	})
	r.parked(1)
	r.join(3)
	if err := late(); err != nil {
		t.Error(err)
	}
	for _, p := range []wire.ProcID{{}, {Job: a.id.Job}, {Job: a.id.Job, Serial: 99}, {Job: 1, Serial: 1}} {
		if _, err := a.Contact(p); !errors.Is(err, protocol.ErrNotFound) {
			t.Errorf("contact with %v: %v", p, err)
		}
	}
}

// Contacts wait for the launcher's word about both pids.
func TestContactBeforeStarted(t *testing.T) {
	r := newRig(t, 2, nil)
	c, w, err := client.Dial(r.Addr(), r.Token(r.procs[0].Proc))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	unix.Close(w.Segment)
	unix.Close(w.Bell)
	a := &child{Client: c, t: t, id: w.Self}
	b := r.join(1)
	a.must(a.Announce(nil))
	pids := make(chan int, 2)
	ab := controltest.Async(t, func() error { pids <- a.meet(b.id).PID; return nil })
	ba := controltest.Async(t, func() error { pids <- b.meet(a.id).PID; return nil })
	r.parked(2)
	r.Started(a.id, os.Getpid())
	ab()
	ba()
	if x, y := <-pids, <-pids; x != os.Getpid() || y != x {
		t.Errorf("pids %d, %d", x, y)
	}
}

func TestSets(t *testing.T) {
	r := newRig(t, 3, nil)
	k := r.join(2)
	world, err := k.Lookup(protocol.WorldURI)
	k.must(err)
	if !reflect.DeepEqual(world, k.w.World) {
		t.Errorf("world %+v; want %+v", world, k.w.World)
	}
	self, err := k.Lookup(protocol.SelfURI)
	k.must(err)
	if self.URI != protocol.SelfURI || self.Members.Len() != 1 || self.Members.At(0) != k.id || self.Number == world.Number {
		t.Errorf("self %+v", self)
	}
	byNumber, err := k.Lookup(protocol.SetURI(k.id.Job, world.Number))
	k.must(err)
	if byNumber.Number != world.Number || !reflect.DeepEqual(byNumber.Members, world.Members) || !reflect.DeepEqual(byNumber, r.world) {
		t.Errorf("set %+v; want %+v", byNumber, r.world)
	}
	m := wire.MembersOf(r.procs[2].Proc, r.procs[0].Proc)
	set, err := k.DefineSet(m)
	k.must(err)
	again, err := k.DefineSet(m)
	k.must(err)
	if set.Number == again.Number || !reflect.DeepEqual(set.Members, m) || set.URI != protocol.SetURI(k.id.Job, set.Number) {
		t.Errorf("defined %+v and %+v", set, again)
	}
	found, err := k.Lookup(set.URI)
	k.must(err)
	if !reflect.DeepEqual(found, set) {
		t.Errorf("found %+v; want %+v", found, set)
	}
	for _, uri := range []string{"", protocol.ParentURI, "mpi://OTHER", protocol.SetURI(k.id.Job, 99), protocol.SetURI(k.id.Job+1, 1), set.URI + "0", strings.Repeat("x", 1000)} {
		if _, err := k.Lookup(uri); !errors.Is(err, protocol.ErrNotFound) {
			t.Errorf("lookup of %.20q: %v", uri, err)
		}
	}
	if _, err := k.DefineSet(wire.MembersOf(wire.ProcID{Job: k.id.Job, Serial: 9})); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("set with an unknown process: %v", err)
	}
	if _, err := k.DefineSet(wire.NewMembers(wire.Range{First: k.id, Count: 3, Stride: 7})); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("set with a stride over unknown processes: %v", err)
	}
	if _, err := k.DefineSet(wire.MembersOf(k.id, k.id)); !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("set with a process twice: %v", err)
	}
}

func TestSpawn(t *testing.T) {
	r := newRig(t, 2, nil)
	a := r.join(0)
	set, err := a.Spawn(bg, nil, 3)
	a.must(err)
	procs := r.spawned(0)
	if set.Members.Len() != 3 || len(procs) != 3 || procs[2].Proc != set.Members.At(2) || procs[2].Rank != 2 || procs[2].Size != 3 {
		t.Fatalf("spawned %+v, %+v", set, procs)
	}
	if !reflect.DeepEqual(procs[1].Argv, []string{"prog", "0"}) {
		t.Errorf("argv %q; want the caller's", procs[1].Argv)
	}
	if ev, err := a.Next(); err != nil || ev.Kind != protocol.EvHost || ev.LocalProcs != 5 || ev.MaxProcs != 2 {
		t.Errorf("event %+v, %v; want 5 on this host", ev, err)
	}
	k := r.joinAs(procs[1], os.Getpid())
	self, err := a.Lookup(protocol.SelfURI)
	a.must(err)
	if k.w.World.Number != set.Number || k.w.Parent.URI != protocol.ParentURI || k.w.Parent.Number != self.Number || k.w.Parent.Members.At(0) != a.id {
		t.Errorf("child's welcome %+v", k.w)
	}
	parent, err := k.Lookup(protocol.ParentURI)
	k.must(err)
	if !reflect.DeepEqual(parent, k.w.Parent) {
		t.Errorf("parent %+v; want %+v", parent, k.w.Parent)
	}
	if _, err := a.Spawn(bg, []string{"x", "y"}, 1); err != nil || !reflect.DeepEqual(r.spawned(1)[0].Argv, []string{"x", "y"}) {
		t.Errorf("spawn of another program: %v, %+v", err, r.spawned(1))
	}
	for _, n := range []int{0, -1, protocol.MaxSpawn + 1} {
		if _, err := a.Spawn(bg, nil, n); !errors.Is(err, protocol.ErrRefused) {
			t.Errorf("spawn of %d: %v", n, err)
		}
	}
}

func TestSpawnFails(t *testing.T) {
	var r *rig
	r = newRig(t, 1, func(c *Config) {
		c.Start = func(procs []protocol.StartProc) error {
			r.Started(procs[1].Proc, os.Getpid())
			return errors.New("no such program")
		}
	})
	a := r.join(0)
	if _, err := a.Spawn(bg, []string{"nowhere"}, 2); !errors.Is(err, protocol.ErrRefused) || !strings.Contains(err.Error(), "no such program") {
		t.Errorf("spawn: %v", err)
	}
	var gone *protocol.GoneError
	if _, err := a.Contact(wire.ProcID{Job: a.id.Job, Serial: 2}); !errors.As(err, &gone) {
		t.Errorf("contact with a process that was never started: %v", err)
	}
	r.Exited(wire.ProcID{Job: a.id.Job, Serial: 3}, "exit status 1", false)
	r.await("reap 3")
	for _, in := range r.Snapshot()[1:] {
		if in.State != protocol.Exited {
			t.Errorf("%+v", in)
		}
	}
}

func TestAbortAndEnding(t *testing.T) {
	r := newRig(t, 3, nil)
	a, b := r.join(0), r.join(1)
	wait := controltest.Async(t, func() error { _, err := a.Contact(r.procs[2].Proc); return err })
	get := controltest.Async(t, func() error { _, err := a.Get(bg, "k", true); return err })
	fence := controltest.Async(t, func() error { return a.Fence(bg, r.world.Members) })
	r.parked(3)
	b.must(b.Abort(7, "boom"))
	r.await("abort 2 7boom")
	r.Ending("rank 1 called Abort")
	for _, w := range []func() error{wait, get, fence} {
		if err := w(); !errors.Is(err, protocol.ErrEnding) {
			t.Errorf("parked call: %v", err)
		}
	}
	if ev := a.next(); ev.Kind != protocol.EvAbort || ev.Text != "rank 1 called Abort" {
		t.Errorf("event %+v", ev)
	}
	if _, _, err := client.Dial(r.Addr(), r.Token(r.procs[2].Proc)); !errors.Is(err, protocol.ErrEnding) || !strings.Contains(err.Error(), "rank 1 called Abort") {
		t.Errorf("join of an ending job: %v", err)
	}
	a.meet(b.id)
	_, contact := a.Contact(r.procs[2].Proc)
	_, value := a.Get(bg, "k", true)
	_, spawn := a.Spawn(bg, nil, 1)
	for i, err := range []error{a.Fence(bg, r.world.Members), contact, value, spawn} {
		if !errors.Is(err, protocol.ErrEnding) {
			t.Errorf("call %d in an ending job: %v", i, err)
		}
	}
}

func TestServerCloseEndsClients(t *testing.T) {
	r := newRig(t, 2, nil)
	a := r.join(0)
	wait := controltest.Async(t, func() error { _, err := a.Contact(r.procs[1].Proc); return err })
	r.parked(1)
	r.Close()
	if err := wait(); !errors.Is(err, protocol.ErrLost) || !strings.Contains(err.Error(), "gompirun has ended") {
		t.Errorf("call across the end: %v", err)
	}
	for range 2 {
		if _, err := a.Next(); !errors.Is(err, protocol.ErrLost) {
			t.Errorf("next: %v", err)
		}
	}
	if err := a.Finalize(); !errors.Is(err, protocol.ErrLost) {
		t.Errorf("finalize: %v", err)
	}
	if _, _, err := r.AddJob([][]string{{"x"}}); !errors.Is(err, protocol.ErrClosed) {
		t.Errorf("AddJob: %v", err)
	}
	r.Close()
	a.Close()
	if _, err := a.Next(); err == nil {
		t.Error("event after the end")
	}
}

func TestClientCloseConcurrently(t *testing.T) {
	r := newRig(t, 2, nil)
	a := r.join(0)
	wait := controltest.Async(t, func() error { _, err := a.Contact(r.procs[1].Proc); return err })
	next := controltest.Async(t, func() error { _, err := a.Next(); return err })
	r.parked(1)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { a.Close() })
	}
	wg.Wait()
	for _, w := range []func() error{wait, next, func() error { return a.Put("k", nil) }} {
		if err := w(); !errors.Is(err, protocol.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

func TestNewServerRefuses(t *testing.T) {
	if _, err := NewServer(Config{}); err == nil {
		t.Error("job 0 accepted")
	}
	r := newRig(t, 1, nil)
	if _, err := NewServer(Config{JobConfig: JobConfig{Job: r.cfg.Job}}); err == nil {
		t.Error("two servers for one job")
	}
	if _, err := NewServer(Config{JobConfig: JobConfig{Job: 5, Settings: map[string]string{"A": strings.Repeat("x", protocol.MaxSetting+1)}}}); err == nil {
		t.Error("too long setting accepted")
	}
	many := map[string]string{}
	for i := range 300 {
		many[fmt.Sprint(i)] = strings.Repeat("x", protocol.MaxSetting)
	}
	if _, err := NewServer(Config{JobConfig: JobConfig{Job: 5, Settings: many}}); err == nil {
		t.Error("too many settings accepted")
	}
	for _, n := range []int{0, protocol.MaxSpawn + 1} {
		if _, _, err := r.AddJob(make([][]string, n)); err == nil {
			t.Errorf("AddJob of %d accepted", n)
		}
	}
}

func TestManyJoin(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 20
	}
	r := newRig(t, n, nil)
	var wg sync.WaitGroup
	clients := make([]*client.Client, n)
	for i := range clients {
		wg.Go(func() {
			r.Started(r.procs[i].Proc, os.Getpid())
			c, w, err := client.Dial(r.Addr(), r.Token(r.procs[i].Proc))
			if err != nil {
				t.Error(err)
				return
			}
			unix.Close(w.Segment)
			unix.Close(w.Bell)
			clients[i] = c
			if err := c.Fence(bg, w.World.Members); err != nil {
				t.Error(err)
			}
			if err := c.Finalize(); err != nil {
				t.Error(err)
			}
			c.Close()
			r.Exited(w.Self, "exit status 0", true)
		})
	}
	wg.Wait()
	r.await(fmt.Sprint("reap ", n))
	if r.noted("dropped") {
		t.Errorf("dropped: %v", r.log)
	}
}

// raw is a connection that speaks bytes.
func (r *rig) raw(b []byte) *net.UnixConn {
	r.t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: r.Addr(), Net: "unix"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	if _, err := c.Write(b); err != nil {
		r.t.Fatal(err)
	}
	return c
}

func BenchmarkDial(b *testing.B) {
	s, err := NewServer(Config{JobConfig: JobConfig{Job: 77}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var procs []protocol.StartProc
	for b.Loop() {
		b.StopTimer()
		if len(procs) == 0 {
			procs, _, err = s.AddJob(make([][]string, 100))
			if err != nil {
				b.Fatal(err)
			}
		}
		p := procs[0]
		procs = procs[1:]
		b.StartTimer()
		c, w, err := client.Dial(s.Addr(), s.Token(p.Proc))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		unix.Close(w.Segment)
		unix.Close(w.Bell)
		c.Close()
		s.Exited(p.Proc, "", true)
		b.StartTimer()
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	s, err := NewServer(Config{JobConfig: JobConfig{Job: 78}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	procs, _, err := s.AddJob([][]string{nil})
	if err != nil {
		b.Fatal(err)
	}
	c, w, err := client.Dial(s.Addr(), s.Token(procs[0].Proc))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	unix.Close(w.Segment)
	unix.Close(w.Bell)
	for b.Loop() {
		if _, err := c.Lookup(protocol.SelfURI); err != nil {
			b.Fatal(err)
		}
	}
}
