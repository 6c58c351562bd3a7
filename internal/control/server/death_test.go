// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/client"
	"gompi/internal/control/controltest"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
)

func TestDeathIsAnnouncedAndAcknowledged(t *testing.T) {
	r := newRig(t, 4, nil)
	r.watch = true
	ks := r.joinAll()
	dead := ks[0]
	ks[1].meet(dead.id)
	ks[2].meet(dead.id)
	ks[1].must(ks[1].Dead(dead.id)) // too early: does not count
	ks[1].settle()
	r.Exited(dead.id, "signal: killed", false)
	r.Exited(dead.id, "again", true)
	for _, k := range ks[1:] {
		if ev := k.expect(protocol.EvDied, dead.id); ev.Text != "signal: killed" {
			t.Errorf("event %+v", ev)
		}
	}
	ks[1].must(ks[1].Dead(dead.id))
	ks[3].must(ks[3].Dead(dead.id))
	ks[1].settle()
	ks[3].settle()
	if r.noted("reap") {
		t.Error("reaped before the last acknowledgement")
	}
	ks[2].must(ks[2].Dead(dead.id))
	r.await("reap 1")
	var gone *protocol.GoneError
	if _, err := ks[1].Contact(dead.id); !errors.As(err, &gone) || gone.Proc != dead.id || gone.How != "signal: killed" {
		t.Errorf("contact with the dead: %v", err)
	}
}

// Whoever leaves or has exited owes no acknowledgement. The end of a connection
// is none: that process may run on.
func TestAcknowledgementByEnding(t *testing.T) {
	r := newRig(t, 5, nil)
	r.watch = true
	ks := r.joinAll()
	dead := ks[0]
	for _, k := range ks[1:] {
		k.meet(dead.id)
	}
	r.Exited(dead.id, "signal: killed", false)
	ks[2].must(ks[2].Finalize())               // leaves in order
	r.Exited(ks[3].id, "exit status 2", false) // dies too
	ks[4].expect(protocol.EvDied, dead.id)
	ks[4].expect(protocol.EvGone, ks[2].id)
	ks[4].expect(protocol.EvDied, ks[3].id)
	r.await("reap 4")
	ks[4].must(ks[4].Dead(dead.id))
	connected := r.sizes()["joined connections"]
	ks[1].Close()
	r.reach("joined connections", connected-1)
	ks[4].settle()
	if r.noted("reap 1") {
		t.Error("reaped while process 2 may touch it")
	}
	r.Exited(ks[1].id, "signal: killed", false)
	r.await("reap 1")
}

// The pid of a process that leaves in order stays taken until everybody who was
// given it has let go, before the exit or after it.
func TestLeaverKeepsItsPid(t *testing.T) {
	r := newRig(t, 5, nil)
	ks := r.joinAll()
	left := ks[0]
	for _, k := range ks[1:4] {
		k.meet(left.id)
	}
	left.meet(ks[4].id)
	left.must(left.Finalize())
	for _, k := range ks[1:4] {
		k.expect(protocol.EvGone, left.id) // nobody watches
	}
	ks[1].must(ks[1].Dead(left.id))
	ks[1].settle()
	r.Exited(left.id, "exit status 0", true)
	ks[2].must(ks[2].Dead(left.id))
	ks[2].settle()
	if r.noted("reap 1") {
		t.Error("reaped while process 4 may touch it")
	}
	ks[3].must(ks[3].Dead(left.id))
	r.await("reap 1")
	// Whom it knew itself is free: it touches nobody after Finalize.
	ks[4].must(ks[4].Finalize())
	r.Exited(ks[4].id, "exit status 0", true)
	r.await("reap 5")
}

// What joined is gone without having left, and the launcher's child runs on, as
// a wrapper or as another program: it is dead for the others, at once or when
// the launcher says so, and once only. Its pid and those that it was given stay
// taken until the child has exited.
func TestLostConnection(t *testing.T) {
	for _, asked := range []bool{false, true} {
		var r *rig
		r = newRig(t, 3, func(c *Config) {
			c.LostWait = 10 * time.Millisecond
			if asked {
				c.Lost = func(p wire.ProcID) { r.note(fmt.Sprint("lost ", p.Serial)) }
			}
		})
		r.watch = true
		a, lost, b := r.join(0), r.join(1), r.join(2)
		a.meet(lost.id)
		lost.meet(b.id)
		lost.Close()
		if asked {
			r.await("lost 2")
			r.Lost(lost.id, "gone")
		}
		ev := a.expect(protocol.EvDied, lost.id)
		b.expect(protocol.EvDied, lost.id)
		if asked && ev.Text != "gone" {
			t.Errorf("event %+v", ev)
		}
		var gone *protocol.GoneError
		if _, err := b.Contact(lost.id); !errors.As(err, &gone) {
			t.Error(err)
		}
		a.must(a.Dead(lost.id))
		a.settle()
		b.must(b.Finalize())
		r.Exited(b.id, "exit status 0", true)
		if r.noted("reap") {
			t.Error("reaped while process 2 may run")
		}
		r.Exited(lost.id, "exit status 0", true)
		r.await("reap 2")
		r.await("reap 3")
		r.Exited(a.id, "signal: killed", false)
		r.await("reap 1")
	}
}

// What joins behind a wrapper is followed itself: its end is seen although
// another process holds its socket.
func TestEndBehindWrapper(t *testing.T) {
	if addr := os.Getenv("CONTROL_TEST_ADDR"); addr != "" {
		leaveSocketBehind(addr, os.Getenv("CONTROL_TEST_TOKEN"))
	}
	r := newRig(t, 2, func(c *Config) { c.LostWait = 10 * time.Millisecond })
	r.watch = true
	a := r.join(0)
	r.Started(r.procs[1].Proc, os.Getppid()) // the wrapper
	cmd := exec.Command(os.Args[0], "-test.run=^TestEndBehindWrapper$")
	cmd.Env = append(os.Environ(), "CONTROL_TEST_ADDR="+r.Addr(), "CONTROL_TEST_TOKEN="+r.Token(r.procs[1].Proc))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // what holds the socket
	cmd.Wait()
	a.expect(protocol.EvDied, r.procs[1].Proc)
	r.Exited(r.procs[1].Proc, "exit status 0", true)
	r.await("reap 2")
}

// leaveSocketBehind joins, hands the socket to another process, and dies.
func leaveSocketBehind(addr, token string) {
	var hello protocol.Hello
	hex.Decode(hello.Token[:], []byte(token))
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		panic(err)
	}
	if _, err := c.Write(protocol.ShortFrame(0, 0, &hello)); err != nil {
		panic(err)
	}
	if f, err := readFrame(c); err != nil || f.Kind != protocol.KindWelcome {
		panic(fmt.Sprint("no welcome: ", f.Kind, err))
	}
	socket, err := c.File()
	if err != nil {
		panic(err)
	}
	holder := exec.Command("sleep", "60")
	holder.ExtraFiles = []*os.File{socket}
	if err := holder.Start(); err != nil {
		panic(err)
	}
	unix.Kill(os.Getpid(), unix.SIGKILL)
	<-make(chan int)
}

// A Spawn fails after some of its processes have joined and met others: their
// pids are no less dangerous.
func TestPidsOfFailedSpawn(t *testing.T) {
	var r *rig
	parents, children := make(chan *child, 1), make(chan *child, 1)
	r = newRig(t, 1, func(c *Config) {
		c.Start = func(procs []protocol.StartProc) error {
			child := r.joinAs(procs[0], os.Getpid())
			(<-parents).meet(child.id)
			children <- child
			return errors.New("no room for the second")
		}
	})
	parent := r.join(0)
	parents <- parent
	if _, err := parent.Spawn(bg, nil, 2); err == nil {
		t.Fatal("the spawn did not fail")
	}
	child := <-children
	parent.expect(protocol.EvDied, child.id)
	r.Exited(child.id, "signal: killed", false)
	parent.settle()
	if r.noted("reap 2") {
		t.Error("reaped while the parent may touch it")
	}
	parent.must(parent.Dead(child.id))
	r.await("reap 2")
}

func TestReapAtOnce(t *testing.T) {
	r := newRig(t, 4, nil)
	r.watch = true
	a, b := r.join(0), r.join(1)
	a.must(a.Finalize())
	r.await("finalized 1")
	r.Exited(a.id, "exit status 0", true)
	r.await("reap 1")
	r.Exited(r.procs[2].Proc, "exit status 0", true) // never joined
	r.await("reap 3")
	r.Exited(r.procs[3].Proc, "exit status 1", false) // never joined, nobody knows it
	r.await("reap 4")
	b.expect(protocol.EvGone, a.id)
	b.expect(protocol.EvGone, r.procs[2].Proc)
	if ev := b.expect(protocol.EvDied, r.procs[3].Proc); ev.Text != "exit status 1" {
		t.Errorf("event %+v", ev)
	}
	for i, want := range []string{"left in order", "", "exit status 0", "exit status 1"} {
		if in := r.Snapshot()[i]; (in.State == protocol.Exited) != (i != 1) || in.How != want || r.hasFiles(in.Proc) != (i == 1) {
			t.Errorf("process %d: %+v; want %s", i+1, in, want)
		}
		if token := r.Token(r.procs[i].Proc); (token != "") != (i == 1) {
			t.Errorf("process %d: token %q", i+1, token)
		}
	}
	r.Exited(b.id, "exit status 0", true) // without Finalize, but nobody is left
	r.await("reap 2")
}

// Who asks for a process that never was is told so, and stays in the job: it may
// have read the name in memory that somebody else has damaged.
func TestWatchOfNobody(t *testing.T) {
	r := newRig(t, 2, nil)
	w, other := r.join(0), r.join(1)
	for _, p := range []wire.ProcID{{Job: w.id.Job, Serial: 3}, {Job: w.id.Job, Serial: 1<<32 - 1}, {Job: 5, Serial: 1}} {
		w.must(w.Watch(wire.MembersOf(p, other.id)))
		w.expect(protocol.EvNone, p)
	}
	w.must(w.Watch(wire.NewMembers(wire.Range{First: wire.ProcID{Job: w.id.Job, Serial: 2}, Count: 1 << 20})))
	for i := range uint32(head.MaxNone) {
		w.expect(protocol.EvNone, wire.ProcID{Job: w.id.Job, Serial: 3 + i})
	}
	other.must(other.Finalize())
	w.expect(protocol.EvGone, other.id)
}

func TestWatch(t *testing.T) {
	r := newRig(t, 6, nil)
	w := r.join(0)
	gone, died, late := r.join(1), r.join(2), r.join(3)
	gone.must(gone.Finalize())
	r.Exited(died.id, "signal: killed", false)
	w.must(w.Watch(r.world.Members))
	w.expect(protocol.EvGone, gone.id)
	w.expect(protocol.EvDied, died.id)
	late.must(late.Finalize())
	w.expect(protocol.EvGone, late.id)
	r.Exited(late.id, "exit status 0", true) // was told already
	r.Exited(r.procs[4].Proc, "exit status 0", true)
	if ev := w.expect(protocol.EvGone, r.procs[4].Proc); ev.Text != "exit status 0" {
		t.Errorf("event %+v", ev)
	}
	r.Exited(r.procs[5].Proc, "exit status 1", false)
	w.expect(protocol.EvDied, r.procs[5].Proc)
}

// Who waits for the dead is answered.
func TestDeathEndsWaits(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(r *rig, p wire.ProcID, k *child)
	}{
		{"killed", func(r *rig, p wire.ProcID, _ *child) { r.Exited(p, "signal: killed", false) }},
		{"finalized", func(r *rig, _ wire.ProcID, k *child) { k.must(k.Finalize()) }},
		{"quiet exit", func(r *rig, p wire.ProcID, _ *child) { r.Exited(p, "exit status 0", true) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 2, nil)
			a := r.join(0)
			r.Started(r.procs[1].Proc, os.Getpid())
			b, w, err := client.Dial(r.Addr(), r.Token(r.procs[1].Proc)) // does not announce
			if err != nil {
				t.Fatal(err)
			}
			unix.Close(w.Segment)
			unix.Close(w.Bell)
			defer b.Close()
			waits := []func() error{
				controltest.Async(t, func() error { _, err := a.Contact(w.Self); return err }),
				controltest.Async(t, func() error { return a.Fence(bg, r.world.Members) }),
				controltest.Async(t, func() error { _, err := a.Get(bg, "k", true); return err }),
				controltest.Async(t, func() error { _, err := a.Get(bg, "l", true); return err }),
			}
			r.parked(4)
			c.end(r, w.Self, &child{Client: b, t: t, id: w.Self})
			var gone *protocol.GoneError
			for i, wait := range waits {
				if err := wait(); !errors.As(err, &gone) || gone.Proc != w.Self {
					t.Errorf("wait %d: %v", i, err)
				}
			}
			if err := a.Fence(bg, r.world.Members); !errors.As(err, &gone) {
				t.Errorf("fence afterwards: %v", err)
			}
			if _, err := a.Contact(w.Self); !errors.As(err, &gone) {
				t.Errorf("contact afterwards: %v", err)
			}
			r.parked(0)
		})
	}
}

// The dead themselves wait for nothing any more.
func TestDeathForgetsItsRequests(t *testing.T) {
	r := newRig(t, 3, nil)
	a, b := r.join(0), r.join(1)
	waits := []func() error{
		controltest.Async(t, func() error { _, err := a.Contact(r.procs[2].Proc); return err }),
		controltest.Async(t, func() error { return a.Fence(bg, wire.MembersOf(a.id, b.id)) }),
		controltest.Async(t, func() error { _, err := a.Get(bg, "k", true); return err }),
	}
	r.parked(3)
	a.Close()
	for _, w := range waits {
		if err := w(); !errors.Is(err, protocol.ErrClosed) {
			t.Error(err)
		}
	}
	r.parked(0)
	b.must(b.Put("k", nil))
	fence := controltest.Async(t, func() error { return b.Fence(bg, wire.MembersOf(a.id, b.id)) })
	r.parked(1)
	r.Exited(a.id, "signal: killed", false)
	var gone *protocol.GoneError
	if err := fence(); !errors.As(err, &gone) {
		t.Error(err)
	}
	r.join(2)
}

// The spawner dies while its processes start.
func TestDeathDuringSpawn(t *testing.T) {
	begun, cont := make(chan struct{}), make(chan struct{})
	r := newRig(t, 2, func(c *Config) {
		c.Start = func([]protocol.StartProc) error { close(begun); <-cont; return nil }
	})
	r.watch = true
	a, b := r.join(0), r.join(1)
	spawn := controltest.Async(t, func() error { _, err := a.Spawn(bg, nil, 1); return err })
	<-begun
	a.Close()
	r.Exited(a.id, "signal: killed", false)
	if err := spawn(); !errors.Is(err, protocol.ErrClosed) {
		t.Error(err)
	}
	b.expect(protocol.EvDied, a.id)
	close(cont)
	child := wire.ProcID{Job: a.id.Job, Serial: 3}
	b.must(b.Watch(wire.MembersOf(child)))
	b.settle()
	r.Exited(child, "signal: killed", false)
	b.expect(protocol.EvDied, child)
	r.await("reap 3")
}

func TestHostEvents(t *testing.T) {
	r := newRig(t, 4, nil)
	a := r.join(0)
	for i, want := range []int{3, 2, 1} {
		r.Exited(r.procs[i+1].Proc, "exit status 0", true)
		if ev, err := a.Next(); err != nil || ev.Kind != protocol.EvHost || ev.LocalProcs != want || ev.MaxProcs != max(2, 8/want) {
			t.Errorf("event %+v, %v; want %d local processes", ev, err, want)
		}
	}
}

// Processes come and go, and nothing of them stays but their serials.
func TestGrowShrink(t *testing.T) {
	r := newRig(t, 1, nil)
	base := r.join(0)
	n := 1000
	if testing.Short() {
		n = 50
	}
	before := controltest.Leftover{}
	for i := range n {
		procs, _, err := r.AddJob([][]string{{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		k := r.joinAs(procs[0], os.Getpid())
		base.meet(k.id)
		k.meet(base.id)
		if i%2 == 0 {
			k.must(k.Finalize())
			k.Close()
			r.Exited(k.id, "exit status 0", true)
			base.expect(protocol.EvGone, k.id)
		} else {
			k.Close()
			r.Exited(k.id, "signal: killed", false)
			base.expect(protocol.EvDied, k.id)
		}
		base.must(base.Dead(k.id))
		base.settle()
		if i == 9 {
			before = controltest.Leftovers()
		}
	}
	controltest.WaitFor(t, "as many goroutines and descriptors as before", func() bool { return controltest.Leftovers().Within(before) })
	r.reach("connections", 1)
	left := r.sizes()
	for what, want := range map[string]int{
		"joined connections": 1, "fences": 0, "gets": 0, "tokens": 1, "on hosts": 1, "living": 1, "places": 1, "pids known": 0,
	} {
		if left[what] != want {
			t.Errorf("%s: %d left, want %d", what, left[what], want)
		}
	}
}

// Ends are told to who asks, once, and also of long ago; the first word is the
// last. What the head keeps of whom to tell does not grow.
func TestEndsAreToldToHolders(t *testing.T) {
	r := newRig(t, 5, nil)
	a, other := r.join(0), r.join(1)
	left, died := r.join(2), r.join(3)
	a.must(a.Watch(r.world.Members))
	a.settle()
	left.must(left.Finalize())
	r.Exited(left.id, "exit status 7", false) // fails the job, but has left
	r.Exited(died.id, "signal: killed", false)
	r.Exited(r.procs[4].Proc, "exit status 0", true) // never joined
	never := protocol.Event{Kind: protocol.EvGone, Proc: r.procs[4].Proc, Text: "exit status 0"}
	for round, k := range []*child{a, a, other} { // also who asks again, or late
		if round > 0 {
			k.must(k.Watch(r.world.Members))
		}
		for _, want := range []protocol.Event{{Kind: protocol.EvGone, Proc: left.id, Text: protocol.LeftInOrder}, {Kind: protocol.EvDied, Proc: died.id, Text: "signal: killed"}, never} {
			if ev := k.expect(want.Kind, want.Proc); ev != want {
				t.Errorf("process %d: %+v, want %+v", k.id.Serial, ev, want)
			}
		}
	}
	if n := r.sizes()["watched"]; n != 2 {
		t.Errorf("for 2 watches of 2 living processes in a row the head keeps %d spans", n)
	}
}
