// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// noPlane is a control plane that nobody joins.
type noPlane struct {
	reader wire.ProcID // who got standard input
	stdin  *os.File
}

func (noPlane) Addr() string                     { return "" }
func (noPlane) Token(wire.ProcID) string         { return "" }
func (noPlane) Started(wire.ProcID, int)         {}
func (noPlane) Joined(wire.ProcID) bool          { return false }
func (noPlane) Heard(wire.ProcID, func()) bool   { return true }
func (noPlane) Exited(wire.ProcID, string, bool) {}
func (noPlane) Lost(wire.ProcID, string)         {}

// alone is an agent whose goroutine and head the test is.
type alone struct {
	*Spawner
	t      *testing.T
	work   chan func()
	events []launch.Event
}

func newAlone(t *testing.T, o *launch.Options) *alone {
	a := &alone{t: t, work: make(chan func(), 1<<12)}
	discard := func([]byte) error { return nil }
	var err error
	a.Spawner, err = New(o, 1, func(int) int { return 0 }, Streams{Out: [2]func([]byte) error{discard, discard}},
		func(ev launch.Event) { a.events = append(a.events, ev) }, func(f func()) { a.work <- f })
	if err == nil {
		a.Serve(&noPlane{})
		err = a.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.SignalAll(unix.SIGKILL)
		for a.live > 0 {
			a.until(launch.EvExited)
		}
		a.Close()
	})
	return a
}

// until works until an event of this kind comes, and takes it.
func (a *alone) until(k launch.EventKind) launch.Event {
	a.t.Helper()
	for {
		for i, ev := range a.events {
			if ev.Kind == k {
				a.events = append(a.events[:i], a.events[i+1:]...)
				return ev
			}
		}
		a.step()
	}
}

// step waits for work and does it.
func (a *alone) step() {
	a.t.Helper()
	select {
	case f := <-a.work:
		f()
	case <-time.After(time.Minute):
		a.t.Fatal("nothing to do")
	}
}

func sleepers(n int) []launch.Start {
	list := make([]launch.Start, n)
	for i := range list {
		s := &list[i]
		s.Proc = wire.ProcID{Job: 1, Serial: uint32(i + 1)}
		s.StartProc = protocol.StartProc{Proc: s.Proc, Argv: []string{"sleep", "100"}, Rank: i, Size: n}
		s.Label = launch.Label{Serial: s.Proc.Serial, Rank: i, Size: n}
	}
	return list
}

// The agent does not wait for forks: it can end a start that is at work, and signals
// reach those that are not there yet.
func TestStartIsNoWait(t *testing.T) {
	a := newAlone(t, &launch.Options{Apps: []launch.App{{}}})
	list := sleepers(100)
	a.Start(list)
	if len(a.events) > 0 {
		t.Errorf("the agent waits for %d forks", len(a.events))
	}
	a.Signal(list[0].Proc, unix.SIGTERM)
	a.Halt(list[99].Proc)
	ev := a.until(launch.EvBegun)
	if err := ev.Err(); err == nil || len(a.pids) == 100 || len(a.byID) != len(a.pids) {
		t.Errorf("%v: %d of %d are started", err, len(a.pids), len(a.byID))
	}
	if len(a.pids) > 0 {
		if ev := a.until(launch.EvExited); ev.Proc != list[0].Proc || ev.End.Signal != unix.SIGTERM {
			t.Errorf("%+v", ev)
		}
	}
	a.Halt(list[0].Proc) // in vain
	a.Start(nil)
	if ev := a.until(launch.EvBegun); ev.Err() != nil {
		t.Error(ev.Err())
	}
}

// Where many are started for each processor their timers may be later.
func TestSlack(t *testing.T) {
	for _, n := range []int{oversubscribedAbove, oversubscribedAbove + 1} {
		a := newAlone(t, &launch.Options{Apps: []launch.App{{}}})
		a.topo.All = a.topo.All[:1]
		file := filepath.Join(t.TempDir(), "slack")
		list := sleepers(n)
		list[0].Argv = []string{"sh", "-c", "cat /proc/self/timerslack_ns > " + file}
		a.Start(list)
		a.until(launch.EvExited)
		b, err := os.ReadFile(file)
		if want := fmt.Sprintf("%d\n", slackOf(n, 1)); err != nil || string(b) != want {
			t.Errorf("%d processes on one processor: a slack of %q ns, not %q (%v)", n, b, want, err)
		}
	}
	if few, many := slackOf(oversubscribedAbove, 1), slackOf(oversubscribedAbove+1, 1); few != childSlack || many != oversubscribedSlack {
		t.Errorf("slack of %v and %v", few, many)
	}
}

// What is allowed to ranks is so to the agent, where it may say that of its threads.
func TestOwnSlack(t *testing.T) {
	setOwnSlack()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for _, x := range threads {
		if b, err := os.ReadFile("/proc/" + x.Name() + "/timerslack_ns"); err == nil && string(b) == fmt.Sprintf("%d\n", childSlack) {
			late++
		}
	}
	if late <= 1 {
		t.Skip("it may not")
	}
	if late < len(threads)-1 { // one may have come meanwhile
		t.Errorf("%d of %d threads have a slack of %v", late, len(threads), childSlack)
	}
}

// Once the output may end nothing is started: what it says would be lost.
func TestStartAfterDrain(t *testing.T) {
	a := newAlone(t, &launch.Options{Apps: []launch.App{{}}})
	a.Drain()
	a.until(launch.EvDrained)
	a.Start(sleepers(2))
	if ev := a.until(launch.EvBegun); ev.Err() == nil || len(a.byID) > 0 {
		t.Errorf("%d processes are started: %v", len(a.byID), ev.Err())
	}
}

// The agent does not wait for a pid to be free: the kernel may take long over it.
func TestReapIsNoWait(t *testing.T) {
	a := newAlone(t, &launch.Options{Apps: []launch.App{{}}})
	slow := make(chan struct{})
	a.free = func(pid int) {
		<-slow
		reap(pid)
	}
	list := sleepers(2)
	a.Start(list[:1])
	a.until(launch.EvBegun)
	a.Signal(list[0].Proc, unix.SIGKILL)
	a.until(launch.EvExited)
	a.Reap(list[0].Proc)
	a.Reap(list[0].Proc) // in vain
	a.Start(list[1:])
	a.until(launch.EvBegun)
	for _, ev := range a.events {
		if ev.Kind == launch.EvReaped {
			t.Error("reaped before its pid is free")
		}
	}
	close(slow)
	if ev := a.until(launch.EvReaped); ev.Proc != list[0].Proc {
		t.Errorf("%+v", ev)
	}
}
