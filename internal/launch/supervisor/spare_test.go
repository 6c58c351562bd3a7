// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/launch"
)

// Spares become newcomers, are replaced, and end with the job; nobody hears of them.
func TestSpares(t *testing.T) {
	withJob(t, launch.Options{Spare: 2}, 2, func(b *bench) {
		b.settle()
		b.said("start 1: spare.1 of 1")
		b.said("start 2: spare.2 of 1")
		if len(b.plane.waiting) != 2 {
			t.Fatalf("%v may be taken", b.plane.waiting)
		}
		starts, _, _ := b.plane.AddJob(make([][]string, 2))
		starts[0].Spare = 2
		answer := make(chan error, 1)
		go func() { answer <- b.Launch(starts) }()
		b.settle()
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		b.said("adopt 2 as 3, new.0")
		b.said("start 4: new.1")
		b.Kept(ids(3, 4))
		b.settle()
		b.after(time.Second)
		b.settle()
		b.said("start 3: spare.3")
		b.exits(0, killed) // of no process
		spare := wire.ProcID{Serial: 1}
		b.HandleEvent(0, launch.Event{Kind: launch.EvExited, Proc: spare, End: killed})
		b.HandleEvent(0, launch.Event{Kind: launch.EvReaped, Proc: spare})
		b.after(time.Second)
		b.settle()
		b.said("start 4: spare.4")
		b.silent()

		// A spare that has ended is no newcomer, nor are those beside it.
		starts, _, _ = b.plane.AddJob(make([][]string, 2))
		starts[0].Spare = 1
		go func() { answer <- b.Launch(starts) }()
		b.settle()
		if err := <-answer; !errors.Is(err, errSpareEnded) {
			t.Error(err)
		}
		b.said("signal 6 killed")
		b.exits(6, killed)

		for serial := 1; serial <= 4; serial++ {
			b.joined(b.procs.byID[id(serial)])
			b.leaves(serial)
		}
		if b.over() || !b.spares.ended {
			t.Error("the job is over beside its spares")
		}
		b.after(time.Second)
		b.said("signal 3 killed")
		for _, serial := range []uint32{3, 4} {
			b.HandleEvent(0, launch.Event{Kind: launch.EvExited, Proc: wire.ProcID{Serial: serial}, End: killed})
			b.HandleEvent(0, launch.Event{Kind: launch.EvReaped, Proc: wire.ProcID{Serial: serial}})
		}
		b.over()
		b.said("drain")
		b.silent()
		if b.status != 0 || len(b.procs.byID) != 0 || len(b.plane.gone) != 3 {
			t.Errorf("status %d, %d records, %v gone", b.status, len(b.procs.byID), b.plane.gone)
		}
	})
}

// A spare may have joined as the newcomer before it is known as that.
func TestSpareJoinsEarly(t *testing.T) {
	withJob(t, launch.Options{Spare: 1}, 1, func(b *bench) {
		b.settle()
		starts, _, _ := b.plane.AddJob(make([][]string, 2))
		starts[0].Spare = 1
		b.plane.joined = map[uint32]bool{2: true}
		b.Joined(id(2))
		answer := make(chan error, 1)
		go func() { answer <- b.Launch(starts) }()
		b.settle()
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		b.joined(b.procs.byID[id(3)])
		b.Kept(ids(2, 3))
		b.settle()
		for serial := 1; serial <= 3; serial++ {
			b.leaves(serial)
		}
		b.silent()
		b.ends(0, 0)
	})
}

// Spares whose places are there when the job is over are not started.
func TestSparesComeTooLate(t *testing.T) {
	withJob(t, launch.Options{Spare: 1}, 1, func(b *bench) {
		b.settle()
		b.plane.slow = make(chan struct{})
		b.HandleEvent(0, launch.Event{Kind: launch.EvExited, Proc: wire.ProcID{Serial: 1}, End: killed})
		b.HandleEvent(0, launch.Event{Kind: launch.EvReaped, Proc: wire.ProcID{Serial: 1}})
		b.after(time.Second)
		b.joined(b.procs.byID[id(1)])
		b.leaves(1)
		if b.over(); !b.drained {
			t.Error("the job waits for a spare that it does not need")
		}
		close(b.plane.slow)
		b.settle()
		if slices.ContainsFunc(b.far.said, func(s string) bool { return strings.HasPrefix(s, "start 2: spare") }) || !slices.Equal(b.plane.gone, []uint32{1, 2}) {
			t.Errorf("%v are gone\n%s", b.plane.gone, strings.Join(b.far.said, "\n"))
		}
	})
}

// Spares that are lost with their host are no reason to wait for their end.
func TestSparesAreLost(t *testing.T) {
	withJob(t, launch.Options{Spare: 2}, 1, func(b *bench) {
		b.settle()
		b.HandleEvent(0, launch.Event{Kind: launch.EvHostLost, Text: "killed"})
		b.settle()
		if s := &b.spares; s.running != 0 || s.total != 0 || !b.over() {
			t.Errorf("of a host that is lost %d spares run, of %d", s.running, s.total)
		}
	})
}
