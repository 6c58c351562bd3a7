// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// bench is a head with an agent that the test plays.
type bench struct {
	*testing.T
	*Supervisor
	far   *farHost
	plane *noPlane
}

// withJob runs f with a job of n processes; time is the test's own.
func withJob(t *testing.T, o launch.Options, n int, f func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		o.Apps = []launch.App{{NP: n, Argv: []string{"first"}}}
		b := &bench{T: t, Supervisor: New(&o, 1), far: &farHost{}, plane: &noPlane{}}
		b.Serve(b.plane, b.far)
		b.far.tell = func(ev launch.Event) { b.HandleEvent(0, ev) }
		if err := b.Supervisor.launch(); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			b.joined(b.procs.byID[id(i+1)])
		}
		f(b)
	})
}

func id(serial int) wire.ProcID { return wire.ProcID{Job: 1, Serial: uint32(serial)} }

func ids(serials ...int) (list []wire.ProcID) {
	for _, s := range serials {
		list = append(list, id(s))
	}
	return list
}

// settle lets the head do what was posted.
func (b *bench) settle() {
	synctest.Wait()
	for _, f := range b.take() {
		f()
	}
}

// after lets time pass.
func (b *bench) after(d time.Duration) {
	<-time.After(d)
	b.settle()
}

// grow launches n newcomers, which join if they can.
func (b *bench) grow(n int, join bool) error {
	b.Helper()
	starts, _, _ := b.plane.AddJob(make([][]string, n))
	answer := make(chan error, 1)
	go func() { answer <- b.Launch(starts) }()
	b.settle()
	err := <-answer
	for _, s := range starts {
		if join && err == nil {
			b.joined(b.procs.byID[s.Proc])
		}
	}
	return err
}

func (b *bench) exits(serial int, e launch.Ending) {
	b.HandleEvent(0, launch.Event{Kind: launch.EvExited, Proc: id(serial), End: e})
	b.HandleEvent(0, launch.Event{Kind: launch.EvReaped, Proc: id(serial)})
}

func (b *bench) leaves(serial int) {
	b.finalized(b.procs.byID[id(serial)])
	b.exits(serial, launch.Ending{})
}

// said takes a line that the agent was told, or that was printed.
func (b *bench) said(want string) {
	b.Helper()
	i := slices.IndexFunc(b.far.said, func(s string) bool { return strings.HasPrefix(s, want) })
	if i < 0 {
		b.Errorf("not said: %s\n%s", want, strings.Join(b.far.said, "\n"))
		return
	}
	b.far.said = slices.Delete(b.far.said, i, i+1)
}

func (b *bench) silent() {
	b.Helper()
	for _, s := range b.far.said {
		if strings.HasPrefix(s, "print") {
			b.Errorf("said: %s", s)
		}
	}
}

// ends: the job goes on, or has failed with this status; no record is left of
// processes that changes have brought.
func (b *bench) ends(status, records int) {
	b.Helper()
	if b.ending != (status != 0) || b.status != status || len(b.procs.byID) != records {
		b.Errorf("ending %v, status %d, %d records; want status %d, %d records", b.ending, b.status, len(b.procs.byID), status, records)
	}
}

var killed = launch.Ending{Signal: unix.SIGKILL}

// Before the decision nothing that a newcomer does ends the job, or is said.
func TestNewcomerBeforeTheDecision(t *testing.T) {
	for _, ft := range []bool{false, true} {
		for name, end := range map[string]func(b *bench){
			"killed":           func(b *bench) { b.exits(3, killed) },
			"status 3":         func(b *bench) { b.exits(3, launch.Ending{Code: 3}) },
			"without Finalize": func(b *bench) { b.exits(3, launch.Ending{}) },
			"in order":         func(b *bench) { b.leaves(3) },
			"behind its wrapper": func(b *bench) {
				b.HandleEvent(0, launch.Event{Kind: launch.EvLost, Proc: id(3)})
				b.exits(3, launch.Ending{})
			},
			"after the discard": func(b *bench) { b.Discard(ids(3, 4), time.Second); b.settle(); b.exits(3, launch.Ending{Code: 3}) },
			"killed when too old": func(b *bench) {
				b.Discard(ids(3, 4), time.Second)
				b.settle()
				b.after(2 * time.Second)
				b.said("signal 3 killed")
				b.said("signal 4 killed")
				b.exits(3, killed)
			},
		} {
			t.Run(name, func(t *testing.T) {
				withJob(t, launch.Options{FT: ft}, 2, func(b *bench) {
					if err := b.grow(2, true); err != nil {
						t.Fatal(err)
					}
					end(b)
					b.Discard(ids(3, 4), time.Second)
					b.settle()
					b.exits(4, launch.Ending{Code: 1})
					b.said("judged 3 ")
					b.said("judged 4 ")
					b.silent()
					b.ends(0, 2)
				})
			})
		}
	}
}

// One that ends without having joined is no failure, nor is the rest's waiting.
func TestNewcomerThatNeverJoins(t *testing.T) {
	withJob(t, launch.Options{}, 2, func(b *bench) {
		b.grow(2, false)
		b.exits(4, launch.Ending{})
		b.joined(b.procs.byID[id(3)])
		b.said("judged 4 true: new.1 (pid 104) exited with status 0")
		b.Discard(ids(3, 4), time.Second)
		b.settle()
		b.leaves(3)
		b.silent()
		b.ends(0, 2)
	})
}

// What cannot be started is told to who asked, and to nobody else.
func TestNewcomerThatCannotStart(t *testing.T) {
	withJob(t, launch.Options{}, 2, func(b *bench) {
		b.far.fail = errors.New("no such program")
		if err := b.grow(3, false); err == nil || err.Error() != "no such program" {
			t.Error(err)
		}
		b.said("start 3: new.0 of 3")
		b.said("signal 3 killed")
		b.Discard(ids(3, 4, 5), time.Second)
		b.HandleEvent(0, launch.Event{Kind: launch.EvDropped, Proc: id(3), Text: "it has no place any more"})
		b.exits(3, killed)
		b.settle()
		b.said("judged 3 false: new.0 (pid 103) was ended: a process started with it")
		b.silent()
		b.ends(0, 2)
	})
}

// A change may be withdrawn when its newcomers have places, but nobody has begun to
// start them: then nobody does. A spare that was to be one ends.
func TestDiscardBeforeTheLaunch(t *testing.T) {
	withJob(t, launch.Options{Spare: 1}, 1, func(b *bench) {
		b.settle()
		starts, _, _ := b.plane.AddJob(make([][]string, 2))
		starts[1].Spare = 1
		b.plane.unwanted = map[uint32]bool{2: true, 3: true}
		b.Discard(ids(2, 3), time.Second)
		answer := make(chan error, 1)
		go func() { answer <- b.Launch(starts) }()
		b.settle()
		if err := <-answer; !errors.Is(err, protocol.ErrEnding) {
			t.Error(err)
		}
		b.said("adopt 1 as 3, new.1")
		b.said("signal 3 killed")
		b.exits(3, killed)
		for _, s := range b.far.said {
			if strings.HasPrefix(s, "start 2: new") {
				t.Error(s)
			}
		}
		b.silent()
		b.ends(0, 1)
	})
}

// A change that is withdrawn while its newcomers are forked brings no more of them;
// likewise the end of the job.
func TestLaunchIsHalted(t *testing.T) {
	for _, ends := range []bool{false, true} {
		withJob(t, launch.Options{KillGrace: time.Second}, 2, func(b *bench) {
			b.far.busy = true
			starts, _, _ := b.plane.AddJob(make([][]string, 3))
			answer := make(chan error, 1)
			go func() { answer <- b.Launch(starts) }()
			b.settle()
			b.said("start 3: ")
			if ends {
				b.exits(2, killed)
				b.said("print gompirun: rank 1 (pid 102) was killed")
			} else {
				b.Discard(ids(3, 4, 5), time.Second)
				b.settle()
			}
			b.said("halt ")
			if b.procs.live == 0 || b.over() {
				t.Error("the job is over")
			}
			b.HandleEvent(0, launch.Begun(errors.New("halted")))
			if err := <-answer; err == nil {
				t.Error("a halted launch is none")
			}
			b.said("signal 3 killed")
			b.exits(3, killed)
			b.said("judged 3 false: new.0 (pid 103) was ended")
			b.silent()
			if len(b.procs.byID) > 2 {
				t.Errorf("%d records", len(b.procs.byID))
			}
		})
	}
}

// Once the change is committed a newcomer is a process like any other, also one that
// has ended before that was known.
func TestNewcomerAfterTheDecision(t *testing.T) {
	for _, early := range []bool{false, true} {
		withJob(t, launch.Options{}, 2, func(b *bench) {
			b.grow(1, true)
			if early {
				b.exits(3, launch.Ending{Code: 5})
				b.silent()
				b.ends(0, 3)
			}
			b.Kept(ids(3))
			b.Main(ids(1, 2, 3))
			b.settle()
			if !early {
				b.said("rename 3 rank 2")
				b.exits(3, launch.Ending{Code: 5})
				b.said("print gompirun: rank 2 (pid 103) exited with status 5")
			} else {
				b.said("print gompirun: new.0 (pid 103) exited with status 5")
			}
			b.ends(5, 2)
		})
	}
}

// Who leaves by a change may end as it likes; who is late is ended.
func TestLeavers(t *testing.T) {
	withJob(t, launch.Options{KillGrace: time.Second}, 4, func(b *bench) {
		b.Main(ids(2))
		b.Leave(ids(1, 3, 4))
		b.settle()
		b.said("rename 2 rank 0")
		b.said("rename 1 left.0")
		b.exits(1, launch.Ending{Code: 3})
		b.said("judged 1 false: left.0 (pid 101) exited with status 3")
		b.silent()
		b.Terminate(ids(1, 3, 4))
		b.settle()
		b.said("print gompirun: left.2 (pid 103) and 1 more did not end in time")
		b.said("signal 3 terminated")
		b.leaves(4)
		b.after(2 * time.Second)
		b.said("signal 3 killed")
		b.exits(3, killed)
		b.silent()
		b.ends(0, 1)
		b.leaves(2)
		if b.ends(0, 0); b.procs.live != 0 {
			t.Errorf("%d live", b.procs.live)
		}
	})
}

// Names follow the main set.
func TestNamesInMain(t *testing.T) {
	withJob(t, launch.Options{}, 2, func(b *bench) {
		b.grow(2, true)
		if n := b.procs.byID[id(4)].Label.Tag(); n != "[new.1] " {
			t.Errorf("tag %q", n)
		}
		b.Main(ids(2, 4, 3))
		b.Kept(ids(3, 4))
		b.settle()
		for serial, want := range map[int]string{1: "[p1.0] ", 2: "[0] ", 3: "[2] ", 4: "[1] "} {
			if got := b.procs.byID[id(serial)].Label.Tag(); got != want {
				t.Errorf("process %d is tagged %q, want %q", serial, got, want)
			}
		}
		b.grow(1, true)
		b.Kept(ids(5))
		b.settle()
		b.said("rename 5 process 5 (rank 0 of 1)")
	})
}

// A leaver that ends before the head knows of the commit is judged when it does.
func TestLeaverEndsEarly(t *testing.T) {
	for _, commits := range []bool{true, false} {
		withJob(t, launch.Options{}, 3, func(b *bench) {
			b.plane.leavers = map[uint32]bool{2: true}
			b.exits(2, launch.Ending{Code: 3})
			b.said("judged 2 false: rank 1 (pid 102) exited with status 3")
			b.silent()
			b.ends(0, 3)
			if commits {
				b.Leave(ids(2))
				b.settle()
				b.silent()
				b.ends(0, 2)
			} else {
				b.Stay(ids(1, 2))
				b.settle()
				b.said("print gompirun: rank 1 (pid 102) exited with status 3")
				b.ends(3, 2)
			}
		})
	}
}

// With --ft a job has ended well if a process has that did not leave by a change: not, if
// all that remained were killed.
func TestLeaversDoNotEndTheJobWell(t *testing.T) {
	for name, c := range map[string]struct {
		early bool // the leaver ends before the head knows of the commit
		stays bool // which does not come
		well  bool // one that remains ends in order
		want  int
	}{
		"all others killed":             {want: 137},
		"all others killed, known late": {early: true, want: 137},
		"no change":                     {early: true, stays: true},
		"one ends well":                 {well: true},
	} {
		t.Run(name, func(t *testing.T) {
			withJob(t, launch.Options{FT: true}, 3, func(b *bench) {
				b.plane.leavers = map[uint32]bool{3: true}
				decided := func() {
					if c.stays {
						b.Stay(ids(1, 2, 3))
					} else {
						b.Leave(ids(3))
					}
					b.settle()
				}
				if !c.early {
					decided()
				}
				b.leaves(3)
				if c.early {
					decided()
				}
				b.exits(1, killed)
				if c.well {
					b.leaves(2)
				} else {
					b.exits(2, killed)
				}
				if got := b.exit(); got != c.want {
					t.Errorf("status %d, want %d", got, c.want)
				}
			})
		})
	}
}
