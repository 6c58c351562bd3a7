// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/control"
	"gompi/internal/onehost"
	"gompi/internal/wire"
)

// farHost is an agent of which the head sees no more than its words.
type farHost struct {
	said []string
	fail error // of start, after the first process
}

func (f *farHost) note(format string, a ...any) { f.said = append(f.said, fmt.Sprintf(format, a...)) }

func (f *farHost) open() error { return nil }
func (f *farHost) start(list []starting) (pids []int, err error) {
	for i, s := range list {
		if f.fail != nil && i > 0 {
			return pids, f.fail
		}
		f.note("start %d: %s of %d", s.Proc.Serial, s.name(), s.size)
		pids = append(pids, 100+int(s.Proc.Serial))
	}
	return pids, nil
}
func (f *farHost) signal(p wire.ProcID, s unix.Signal) { f.note("signal %d %v", p.Serial, s) }
func (f *farHost) signalAll(s unix.Signal)             { f.note("signal all %v", s) }
func (f *farHost) judged(p wire.ProcID, how string, clean bool) {
	f.note("judged %d %v: %s", p.Serial, clean, how)
}
func (f *farHost) gone(p wire.ProcID, how string) { f.note("gone %d", p.Serial) }
func (f *farHost) print(text string)              { f.note("print %s", text) }
func (f *farHost) resumed()                       {}
func (f *farHost) drain()                         { f.note("drain") }
func (f *farHost) close()                         {}

// noPlane is a control plane without processes.
type noPlane struct{ last uint32 }

func (n *noPlane) AddJob(argv [][]string) ([]onehost.StartProc, wire.Set, error) {
	list := make([]onehost.StartProc, len(argv))
	for i := range list {
		n.last++
		list[i] = onehost.StartProc{Proc: wire.ProcID{Job: 1, Serial: n.last}, Argv: argv[i], Rank: i, Size: len(argv)}
	}
	return list, wire.Set{}, nil
}
func (*noPlane) State(wire.ProcID) control.ProcState          { return control.Starting }
func (*noPlane) Stacks(context.Context) []control.StackReport { return nil }
func (*noPlane) Ending(string)                                {}
func (*noPlane) Close() error                                 { return nil }

// TestHeadOfAnotherHost: the head needs nothing of a host but the agent's words.
// It says what ends mean, and keeps no record of what is gone.
func TestHeadOfAnotherHost(t *testing.T) {
	far, plane := &farHost{}, &noPlane{}
	h := &head{
		o: &options{apps: []app{{np: 3, argv: []string{"x"}}}}, procs: newTable(), server: plane, agent: far,
		ft: true, ready: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	if err := h.launch(); err != nil {
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
	go func() { refused <- h.spawn(starts) }()
	<-h.ready
	for _, f := range h.take() {
		f()
	}
	if err := <-refused; err != far.fail {
		t.Errorf("spawn: %v", err)
	}
	said("signal 4 killed")
	h.hear(event{kind: evExited, proc: p(4), end: ending{signal: unix.SIGKILL}})
	said("judged 4 false: spawned process 4 (rank 0 of 2) (pid 104) was ended: one beside it")
	h.hear(event{kind: evReaped, proc: p(4)})
	if h.failed || len(h.procs.byID) != 3 || len(h.procs.list) != 3 {
		t.Errorf("failed %v, %d processes, %d in the list", h.failed, len(h.procs.byID), len(h.procs.list))
	}

	h.joined(h.procs.byID[p(1)])
	h.hear(event{kind: evLost, proc: p(1)})
	said("print gompirun: rank 0 (pid 101): the program that called Init ended")
	said("gone 1")
	h.hear(event{kind: evDropped, proc: p(2), text: "garbage"})
	h.hear(event{kind: evExited, proc: p(2), end: ending{signal: unix.SIGKILL}})
	said("judged 2 false: rank 1 (pid 102) was killed by signal 9")
	for _, serial := range []uint32{1, 3} {
		h.hear(event{kind: evExited, proc: p(serial)})
	}
	h.hear(event{kind: evExited, proc: p(99)}) // nobody's
	said("judged 3")
	if h.over() {
		t.Error("the job is over before its output is out")
	}
	said("drain")
	h.hear(event{kind: evDrained})
	if !h.over() {
		t.Error("the job is not over")
	}
}
