// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// farHost is an agent of which the head sees no more than its words.
type farHost struct {
	said []string
	fail error // of start, after the first process
	busy bool  // starts are not done until the test says so
	tell func(launch.Event)
}

func (f *farHost) note(format string, a ...any) { f.said = append(f.said, fmt.Sprintf(format, a...)) }

func (f *farHost) Open() error { return nil }
func (f *farHost) Start(list []launch.Start) {
	for i, s := range list {
		if (f.fail != nil || f.busy) && i > 0 {
			break
		}
		f.note("start %d: %s of %d", s.Proc.Serial, s.Label.Name(), s.Label.Size)
		f.tell(launch.Event{Kind: launch.EvStarted, Proc: s.Proc, PID: 100 + int(s.Proc.Serial)})
	}
	if !f.busy {
		f.tell(launch.Begun(f.fail))
	}
}
func (f *farHost) Adopt(spare wire.ProcID, s launch.Start) {
	f.note("adopt %d as %d, %s", spare.Serial, s.Proc.Serial, s.Label.Name())
}
func (f *farHost) Halt(p wire.ProcID)                  { f.note("halt %d", p.Serial) }
func (f *farHost) SetMain(procs []wire.ProcID)         { f.note("main of %d", len(procs)) }
func (f *farHost) Signal(p wire.ProcID, s unix.Signal) { f.note("signal %d %v", p.Serial, s) }
func (f *farHost) SignalAll(s unix.Signal)             { f.note("signal all %v", s) }
func (f *farHost) ReportExit(p wire.ProcID, how string, clean bool) {
	f.note("judged %d %v: %s", p.Serial, clean, how)
}
func (f *farHost) Rename(list []launch.Named) {
	for _, n := range list {
		f.note("rename %d %s", n.Proc.Serial, n.Label.Name())
	}
}
func (f *farHost) ReportLost(p wire.ProcID, how string) { f.note("gone %d", p.Serial) }
func (f *farHost) Print(text string)                    { f.note("print %s", text) }
func (f *farHost) Resumed()                             {}
func (f *farHost) TakeStdin()                           {}
func (f *farHost) Drain()                               { f.note("drain") }
func (f *farHost) Close()                               {}

// noPlane is a control plane without processes.
type noPlane struct {
	last, spare   uint32
	waiting, gone []uint32 // spares
	leavers       map[uint32]bool
	unwanted      map[uint32]bool
	joined        map[uint32]bool // of those that this is asked of
	slow          chan struct{}   // AddSpares waits for it
	statuses      []string        // of ends that are awaited
	stacks        func() []protocol.StackReport
}

func (n *noPlane) AddJob(argv [][]string) ([]protocol.StartProc, wire.Set, error) {
	list := make([]protocol.StartProc, len(argv))
	for i := range list {
		n.last++
		list[i] = protocol.StartProc{Proc: wire.ProcID{Job: 1, Serial: n.last}, Argv: argv[i], Rank: i, Size: len(argv)}
	}
	return list, wire.Set{}, nil
}
func (n *noPlane) AddSpares(argv []string, k int) (list []protocol.StartProc, err error) {
	if n.slow != nil {
		<-n.slow
	}
	for range k {
		n.spare++
		list = append(list, protocol.StartProc{Proc: wire.ProcID{Serial: n.spare}, Argv: argv, Size: 1, Spare: n.spare})
	}
	return list, nil
}
func (n *noPlane) SpareRuns(p wire.ProcID, _ int, _ []string) {
	n.waiting = append(n.waiting, p.Serial)
}
func (n *noPlane) SpareGone(p wire.ProcID)     { n.gone = append(n.gone, p.Serial) }
func (n *noPlane) MayLeave(p wire.ProcID) bool { return n.leavers[p.Serial] }
func (n *noPlane) Ended(p wire.ProcID, status int) {
	n.statuses = append(n.statuses, fmt.Sprintf("%d: %d", p.Serial, status))
}
func (n *noPlane) Comes(p wire.ProcID) bool { return !n.unwanted[p.Serial] }
func (n *noPlane) State(p wire.ProcID) protocol.ProcState {
	if n.joined[p.Serial] {
		return protocol.Joined
	}
	return protocol.Starting
}
func (n *noPlane) Stacks(context.Context) []protocol.StackReport {
	if n.stacks == nil {
		return nil
	}
	return n.stacks()
}
func (*noPlane) Ops() []protocol.OpReport { return nil }
func (*noPlane) Ending(string)            {}
func (*noPlane) Close() error             { return nil }

// TestHeadOfAnotherHost: the head needs nothing of a host but the agent's words.
// It says what ends mean, and keeps no record of what is gone.
func TestHeadOfAnotherHost(t *testing.T) {
	far, plane := &farHost{}, &noPlane{}
	sv := New(&launch.Options{Apps: []launch.App{{NP: 3, Argv: []string{"x"}}}, FT: true}, 1)
	sv.Serve(plane, far)
	far.tell = func(ev launch.Event) { sv.HandleEvent(0, ev) }
	if err := sv.launch(); err != nil {
		t.Fatal(err)
	}
	p := func(serial uint32) wire.ProcID { return wire.ProcID{Job: 1, Serial: serial} }
	said := func(want string) {
		t.Helper()
		if !slices.ContainsFunc(far.said, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("not said: %s\n%s", want, strings.Join(far.said, "\n"))
		}
	}
	said("start 2: rank 1 of 3")

	// One beside it cannot be started: who runs is ended, and that is no failure.
	far.fail = errors.New("no room")
	starts, _, _ := plane.AddJob(make([][]string, 2))
	refused := make(chan error, 1)
	go func() { refused <- sv.Spawn(starts) }()
	<-sv.ready
	sv.runPosted()
	if err := <-refused; err == nil || err.Error() != far.fail.Error() {
		t.Errorf("spawn: %v", err)
	}
	said("signal 4 killed")
	sv.HandleEvent(0, launch.Event{Kind: launch.EvExited, Proc: p(4), End: launch.Ending{Signal: unix.SIGKILL}})
	said("judged 4 false: spawned process 4 (rank 0 of 2) (pid 104) was ended: a process started with it")
	sv.HandleEvent(0, launch.Event{Kind: launch.EvReaped, Proc: p(4)})
	if sv.failed || len(sv.procs.byID) != 3 || len(sv.procs.list) != 3 {
		t.Errorf("failed %v, %d processes, %d in the list", sv.failed, len(sv.procs.byID), len(sv.procs.list))
	}

	sv.joined(sv.procs.byID[p(1)])
	sv.HandleEvent(0, launch.Event{Kind: launch.EvLost, Proc: p(1)})
	said("print gompirun: rank 0 (pid 101): the program that called Init ended")
	said("gone 1")
	sv.HandleEvent(0, launch.Event{Kind: launch.EvDropped, Proc: p(2), Text: "garbage"})
	sv.HandleEvent(0, launch.Event{Kind: launch.EvExited, Proc: p(2), End: launch.Ending{Signal: unix.SIGKILL}})
	said("judged 2 false: rank 1 (pid 102) was killed by signal 9")
	for _, serial := range []uint32{1, 3} {
		sv.HandleEvent(0, launch.Event{Kind: launch.EvExited, Proc: p(serial)})
	}
	sv.HandleEvent(0, launch.Event{Kind: launch.EvExited, Proc: p(99)}) // nobody's
	said("judged 3")
	if sv.over() {
		t.Error("the job is over before its output is out")
	}
	said("drain")
	sv.HandleEvent(0, launch.Event{Kind: launch.EvDrained})
	if !sv.over() {
		t.Error("the job is not over")
	}
}

// Where no process is left the first interrupts ends the wait for a reader; one before
// that does not: what has come is still read.
func TestInterruptOfWhoIsLeft(t *testing.T) {
	for _, before := range []bool{true, false} {
		far := &farHost{}
		sv := New(&launch.Options{Apps: []launch.App{{NP: 1, Argv: []string{"x"}}}}, 1)
		sv.Serve(&noPlane{}, far)
		far.tell = func(ev launch.Event) { sv.HandleEvent(0, ev) }
		if err := sv.launch(); err != nil {
			t.Fatal(err)
		}
		if before {
			sv.signal(unix.SIGTERM)
		}
		sv.HandleEvent(0, launch.Event{Kind: launch.EvExited, Proc: wire.ProcID{Job: 1, Serial: 1}})
		sv.HandleEvent(0, launch.Event{Kind: launch.EvReaped, Proc: wire.ProcID{Job: 1, Serial: 1}})
		if sv.over() {
			t.Error("the job is over before its output is out")
		}
		sv.signal(unix.SIGTERM)
		if !sv.over() || sv.exit() != launch.ExitSignal+int(unix.SIGTERM) {
			t.Errorf("interrupted before %v: over %v, status %d", before, sv.over(), sv.exit())
		}
	}
}
