// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
)

// The deadline of members who hold a change back begins anew while a newcomer that is ready
// has more data, and for no others.
func TestNewcomersFill(t *testing.T) {
	w := watchedWorld(t, 2)
	n, err := w.b.Submit(0, Request{Kind: Grow, In: []uint32{0}, Join: []int{1}, Prepare: true, ToReady: 10 * time.Second, ToAccept: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	p, sec := wire.ProcID{Job: 1, Serial: 3}, func(n int) time.Duration { return time.Duration(n) * time.Second }
	w.b.Launched(0, n, nil)
	w.b.Prepared(sec(1), p)
	w.b.ops[n].held = map[wire.ProcID]struct{}{{Job: 1, Serial: 1}: {}}
	withdrawn := false
	tick := func(at time.Duration) {
		w.b.Tick(at)
		w.b.Flush(func(e *Effect) { withdrawn = withdrawn || e.Do == Withdraw && e.Op == n })
	}
	for at := 8; at < 50; at += 8 {
		tick(sec(at))
		w.b.NewcomerProgress(sec(at), p)
		w.b.NewcomerProgress(sec(at), wire.ProcID{Job: 1, Serial: 2}) // a member
	}
	if s, _ := w.b.State(n); s != Ready || withdrawn {
		t.Fatalf("with bytes coming all the time it is %v, withdrawn %v", s, withdrawn)
	}
	tick(sec(58)) // and it is looked what has come to members
	w.b.NewcomerProgress(sec(58), wire.ProcID{Job: 1, Serial: 2})
	if tick(sec(58) + checkTime); !withdrawn {
		t.Error("it waits for a newcomer to which nothing comes")
	}
}

// The deadline of newcomers begins anew while one that is not ready comes nearer to it, and
// for nothing else: who hangs is told of when the others are ready, or stand still.
func TestNewcomersComeNearer(t *testing.T) {
	w := watchedWorld(t, 2)
	n, err := w.b.Submit(0, Request{Kind: Grow, In: []uint32{0}, Join: []int{2}, Prepare: true, ToReady: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var why string
	run := func() {
		w.b.Flush(func(e *Effect) {
			if e.Do == StateChanged && e.Why != nil {
				why = e.Why.Error()
			}
		})
	}
	run()
	first, second := wire.ProcID{Job: 1, Serial: 3}, wire.ProcID{Job: 1, Serial: 4}
	sec := func(n int) time.Duration { return time.Duration(n) * time.Second }
	w.b.NewcomerProgress(sec(4), first) // it runs, though not all do
	w.b.Launched(sec(5), n, nil)
	for at := 9; at < 50; at += 5 {
		w.b.Tick(sec(at))
		w.b.NewcomerProgress(sec(at), second)
	}
	if s, _ := w.b.State(n); s != Launching {
		t.Fatalf("with bytes coming all the time it is %v: %s", s, why)
	}
	w.b.Prepared(sec(50), second)
	for at := 50; at < 60; at++ {
		w.b.NewcomerProgress(sec(at), second)                          // it is ready
		w.b.NewcomerProgress(sec(at), wire.ProcID{Job: 1, Serial: 1})  // a member
		w.b.NewcomerProgress(sec(at), wire.ProcID{Job: 1, Serial: 99}) // nobody
		w.b.Tick(sec(at))
	}
	run()
	if _, err := w.b.State(n); err == nil || !strings.Contains(why, "it waited for [1/3] to be ready") {
		t.Errorf("while one hangs: %v, %q", err, why)
	}
	if at, ok := w.b.Next(); ok {
		t.Errorf("a deadline at %v", at)
	}
}
