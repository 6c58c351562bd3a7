// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// A host that is lost while the ranks of the command line are started ends the job, with
// --ft too, and that is said once.
func TestHostLostInTheBeginning(t *testing.T) {
	var hosts [2]farHost
	sv := New(&launch.Options{Apps: []launch.App{{NP: 2, Argv: []string{"x"}}}, FT: true}, 2)
	sv.Serve(&noPlane{}, &hosts[0], &hosts[1])
	for i := range hosts {
		hosts[i].busy = true
		hosts[i].tell = func(ev launch.Event) { sv.HandleEvent(uint32(i), ev) }
	}
	if err := sv.launch(); err != nil {
		t.Fatal(err)
	}
	sv.HandleEvent(0, launch.Event{Kind: launch.EvHostLost, Text: "killed"})
	said := 0
	for i := range hosts {
		for _, s := range hosts[i].said {
			if strings.HasPrefix(s, "print ") {
				said++
				t.Log(s)
			}
		}
	}
	if said != 1 || !sv.ending || sv.status != launch.ExitFailure {
		t.Errorf("%d lines, ending %v, status %d", said, sv.ending, sv.status)
	}
}

// The last process ends while a Spawn of its is prepared: what the head does
// not come to any more is refused, and gompirun ends.
func TestSpawnAfterTheEnd(t *testing.T) {
	for _, early := range []bool{false, true} {
		sv := New(&launch.Options{}, 1)
		sv.Serve(&noPlane{}, &farHost{tell: func(ev launch.Event) { sv.HandleEvent(0, ev) }})
		spawned, closed := make(chan error, 1), make(chan struct{})
		spawn := func() { spawned <- sv.Spawn([]protocol.StartProc{{Argv: []string{"x"}}}) }
		if early {
			go spawn()
			<-sv.ready // it was posted
			sv.close()
		} else {
			sv.close()
			go spawn()
		}
		go func() {
			if err := <-spawned; !errors.Is(err, protocol.ErrEnding) {
				t.Error(err)
			}
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(20 * time.Second):
			t.Fatalf("posted before the end %v: Spawn waits for a head that has ended", early)
		}
	}
}

// How a process ends that somebody waits for is told before its exit, and is no failure of
// the job, unless it has joined.
func TestAwaitedEnds(t *testing.T) {
	for _, joins := range []bool{false, true} {
		plane := &noPlane{joined: map[uint32]bool{}}
		var host farHost
		sv := New(&launch.Options{Apps: []launch.App{{NP: 1, Argv: []string{"x"}}}}, 1)
		sv.Serve(plane, &host)
		host.tell = func(ev launch.Event) { sv.HandleEvent(0, ev) }
		if err := sv.launch(); err != nil {
			t.Fatal(err)
		}
		p := wire.ProcID{Job: 1, Serial: 7}
		w := &world{}
		q := newProc(&protocol.StartProc{Proc: p, Argv: []string{"x"}, Size: 1, Awaited: true}, launch.Spawned, w)
		sv.procs.add(q)
		sv.procs.started(q, 107)
		if joins {
			sv.joined(q)
		}
		sv.HandleEvent(0, launch.Event{Kind: launch.EvExited, Proc: p, End: launch.Ending{Code: 3}})
		if len(plane.statuses) != 1 || plane.statuses[0] != "7: 3" || sv.ending != joins {
			t.Errorf("joins %v: told %v, the job ends %v", joins, plane.statuses, sv.ending)
		}
	}
}
