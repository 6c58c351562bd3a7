// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
)

// late is a job whose clock the test turns, with a change that is accepted.
type late struct {
	*elastic
	now  *atomic.Int64
	ws   []*watcher
	news []*child
	op   uint32
	ack  bool // members vote at the head
	c    []changepage.Change
	was  []*changepage.Member // of the page on which the change is
}

// newLate is one of three members and a newcomer, of whom the first was handed the change; with several
// it is one of two sets, which no page decides.
func newLate(t *testing.T, several bool) *late {
	l := &late{now: new(atomic.Int64)}
	l.now.Store(1)
	l.elastic = newElastic(t, 3, func(cfg *Config) { cfg.Now = func() time.Duration { return time.Duration(l.now.Load()) } })
	ks := l.joinAll()
	grow := change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{1}}
	if several {
		l.ack = true
		set, err := ks[2].DefineSet(wire.MembersOf(ks[2].id))
		ks[2].must(err)
		main, err := ks[0].DefineSet(wire.MembersOf(ks[0].id, ks[1].id))
		ks[0].must(err)
		l.ws = append(l.ws, ks[0].follow(main), ks[1].follow(main), ks[2].follow(set))
		grow = change.Request{Kind: change.Multi, Parts: []change.Request{
			{Kind: change.Grow, In: []uint32{main.Number}, Join: []int{1}},
			{Kind: change.Replace, In: []uint32{set.Number}, Join: []int{1}},
		}}
	} else {
		for _, k := range ks {
			l.ws = append(l.ws, k.follow(l.world))
		}
	}
	grow.ToCommit = time.Hour
	if several {
		l.ws[0].member.Check(0)
	}
	l.op = l.ws[0].submit(grow).Op
	l.news = l.newcomers(0)
	l.ws[2].await(l.op, change.Ready)
	if several {
		l.ws[2].await(l.op, change.Adopting)
	} else {
		l.ws[2].begun()
	}
	for _, w := range l.ws {
		c, _ := w.page.Last()
		l.c, l.was = append(l.c, c), append(l.was, w.member)
	}
	l.hand(0)
	l.ws[2].await(l.op, change.Adopting)
	return l
}

// hand lets a member check until it is handed the change.
func (l *late) hand(i int) {
	w := l.ws[i]
	set, n := w.set, l.c[i]
	for w.member.Check(w.at) == 0 {
		w.at++
	}
	w.must(w.Tell(&protocol.StatusWord{Set: set.Number, Change: uint32(n)}))
	l.was[i].SetDelivered(n)
}

func (l *late) vote(i int) {
	if l.ack {
		l.ws[i].must(l.ws[i].Tell(&protocol.Op{Kind: protocol.KindVoted, Op: l.op}))
		l.ws[i].settle()
		return
	}
	if l.was[i].Vote(l.c[i]) {
		l.ws[i].must(l.ws[i].Tell(&protocol.StatusWord{Set: l.world.Number, Change: uint32(l.c[i])}))
	}
}

// pass lets time pass, and what is asked for then be done; it returns how far the change is.
func (l *late) pass(d time.Duration) protocol.OpBody {
	l.t.Helper()
	tool, err := client.DialTool(bg, l.Addr())
	if err != nil {
		l.t.Fatal(err)
	}
	defer tool.Close()
	l.now.Add(int64(d))
	for range 2 { // the second time what was looked at is known
		l.tick()
		if _, err := tool.Ops(bg); err != nil {
			l.t.Fatal(err)
		}
	}
	return l.ws[2].await(l.op, change.Queued)
}

// A change that was accepted and waits for a vote is rolled back after its deadline, and the
// reason names the processes that have not voted, whichever kind they are of.
func TestDecisionIsLate(t *testing.T) {
	for name, c := range map[string]struct {
		several bool
		members []int // that vote
		handed  []int // that are handed it beside
		news    bool
		want    string
	}{
		"a member that does not check": {members: []int{0, 1}, news: true, want: "rank 2 to come to iteration 1"},
		"a member that was handed it":  {members: []int{0, 1}, handed: []int{2}, news: true, want: "the votes of rank 2"},
		"a newcomer":                   {members: []int{0, 1, 2}, want: "the votes of new.0"},
		"all kinds":                    {members: []int{0}, handed: []int{1}, want: "rank 2 to come to iteration 1; the votes of rank 1, new.0"},
		"a member, of several sets":    {several: true, members: []int{0, 1}, news: true, want: "the votes of rank 2"},
		"a newcomer, of several sets":  {several: true, members: []int{0, 1, 2}, want: "the votes of new.0, new.0"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLate(t, c.several)
			for _, i := range append(c.handed, c.members...) {
				if i > 0 {
					l.hand(i)
				}
			}
			for _, i := range c.members {
				l.vote(i)
			}
			if c.news {
				for _, k := range l.news {
					k.must(k.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: l.op}))
					k.settle()
				}
			}
			if b := l.pass(time.Hour - 2); b.State != change.Adopting {
				t.Fatalf("before the deadline it is %v: %s", b.State, b.Text)
			}
			l.pass(time.Second)
			b := l.ws[2].await(l.op, change.Committed)
			if want := "the deadline is over: it waited for " + c.want; b.State != change.RolledBack || b.Why != protocol.WhyDeadline || b.Text != want {
				t.Errorf("%v %v %q, want %q", b.State, b.Why, b.Text, want)
			}
			for i, w := range l.ws {
				if s, ok := w.page.Decision(l.c[i]); s != changepage.RolledBack || !ok {
					t.Errorf("the page of member %d says %v, %v", i, s, ok)
				}
			}
		})
	}
}

// A user phase of three deadlines is committed if it reports, or its data move, and the next
// one without that is not.
func TestDecisionStandsWhileReported(t *testing.T) {
	for name, several := range map[string]bool{"one page": false, "several sets": true} {
		for kind, report := range map[string]func(l *late){
			"a member reports": func(l *late) { l.was[1].Report(l.c[1]) },
			"a member's bytes": func(l *late) { l.was[1].AddBytes(1) },
			"a newcomer reports": func(l *late) {
				l.news[0].must(l.news[0].Tell(&protocol.Op{Kind: protocol.KindProgress, Op: l.op}))
				l.news[0].settle()
			},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				for _, commits := range []bool{true, false} {
					l := newLate(t, several)
					for range 3 {
						report(l)
						if b := l.pass(time.Hour - 2); b.State != change.Adopting {
							t.Fatalf("it is %v: %s", b.State, b.Text)
						}
					}
					report(l)
					l.pass(time.Second)
					if !commits {
						l.was[1].Report(l.c[1] + 1) // of another change
						l.pass(time.Hour)
						if b := l.pass(time.Hour); b.State != change.RolledBack || !strings.Contains(b.Text, "new.0") {
							t.Errorf("when nobody reports it is %v: %s", b.State, b.Text)
						}
						continue
					}
					for i := range l.ws {
						if i > 0 {
							l.hand(i)
						}
						l.vote(i)
					}
					for _, k := range l.news {
						k.must(k.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: l.op}))
					}
					if b := l.ws[2].await(l.op, change.Committed); b.State != change.Committed && b.State != change.Done {
						t.Errorf("it is %v: %s", b.State, b.Text)
					}
				}
			})
		}
	}
}

// A tool ends a change that members were handed, and is told of one that was committed, or
// was over before.
func TestToolBreaks(t *testing.T) {
	for name, several := range map[string]bool{"one page": false, "several sets": true} {
		t.Run(name, func(t *testing.T) {
			l := newLate(t, several)
			tool, err := client.DialTool(bg, l.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer tool.Close()
			for range 2 { // it is over the second time
				r, err := tool.Break(bg, l.op)
				if err != nil || r == nil || r.Op.State != change.Cancelled {
					t.Fatalf("%+v, %v", r, err)
				}
			}
			if b := l.ws[2].await(l.op, change.Committed); b.State != change.Cancelled {
				t.Errorf("%+v", b)
			}
			if _, err := tool.Break(bg, l.op+7); err == nil || !strings.Contains(err.Error(), "not found") {
				t.Errorf("an operation that there is not: %v", err)
			}
		})
	}
	l := newLate(t, false)
	tool, err := client.DialTool(bg, l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	l.ws[0].must(l.ws[0].Tell(&protocol.Op{Kind: protocol.KindCompleted, Op: l.op}))
	l.ws[0].await(l.op, change.Committed)
	if r, err := tool.Break(bg, l.op); err != nil || r == nil || r.Op.State != change.Committed && r.Op.State != change.Done {
		t.Errorf("one that was committed: %+v, %v", r, err)
	}
}

// A process that declines a change ends it at once for all, unless it has voted, or the change
// was committed; the reason names it and has its words.
func TestDecline(t *testing.T) {
	decline := func(k *child, op uint32) {
		t.Helper()
		k.must(k.Tell(&protocol.Decline{Op: op, Reason: "no room\xff"}))
	}
	for name, several := range map[string]bool{"one page": false, "several sets": true} {
		for who, decline := range map[string]struct {
			by   func(l *late)
			want string
		}{
			"a member that was handed it":     {func(l *late) { decline(l.ws[0].child, l.op) }, "rank 0: no room?"},
			"a member that was not handed it": {func(l *late) { decline(l.ws[2].child, l.op) }, "rank 2: no room?"},
			"a newcomer":                      {func(l *late) { decline(l.news[0], l.op) }, "new.0: no room?"},
			"one that dies": {func(l *late) {
				decline(l.ws[1].child, l.op)
				l.ws[1].Close()
			}, "rank 1: no room?"},
			"two, without words": {func(l *late) {
				for i := range 2 {
					l.ws[i].must(l.ws[i].Tell(&protocol.Decline{Op: l.op}))
					l.ws[i].settle()
				}
			}, "rank 0"},
		} {
			t.Run(name+", "+who, func(t *testing.T) {
				l := newLate(t, several)
				decline.by(l)
				b := l.ws[2].await(l.op, change.Committed)
				if want := "a process declines the change: " + decline.want; b.State != change.RolledBack || b.Why != protocol.WhyDeclined || b.Text != want {
					t.Errorf("%v %v %q, want %q", b.State, b.Why, b.Text, want)
				}
				for i, w := range l.ws {
					if s, ok := w.page.Decision(l.c[i]); s != changepage.RolledBack || !ok {
						t.Errorf("the page of member %d says %v, %v", i, s, ok)
					}
				}
			})
		}
		t.Run(name+", too late", func(t *testing.T) {
			l := newLate(t, several)
			k := l.news[0]
			k.must(k.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: l.op}))
			decline(k, l.op) // its vote stands
			k.settle()
			decline(l.ws[0].child, l.op+1) // there is no such
			l.ws[0].settle()
			if b := l.ws[2].await(l.op, change.Queued); b.State != change.Adopting {
				t.Fatalf("%v: %s", b.State, b.Text)
			}
			l.ws[1].must(l.ws[1].Tell(&protocol.Op{Kind: protocol.KindCompleted, Op: l.op}))
			l.ws[1].await(l.op, change.Committed)
			decline(l.ws[0].child, l.op)
			l.ws[0].settle()
			if b := l.ws[2].await(l.op, change.Committed); b.State > change.Done {
				t.Errorf("%v: %s", b.State, b.Text)
			}
		})
		// Whichever comes first counts, for all.
		t.Run(name+", beside Complete", func(t *testing.T) {
			for range 20 {
				l := newLate(t, several)
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					decline(l.ws[0].child, l.op)
				}()
				if several {
					l.ws[1].must(l.ws[1].Tell(&protocol.Op{Kind: protocol.KindCompleted, Op: l.op}))
				} else if l.ws[1].page.Commit(l.c[1]) {
					l.ws[1].must(l.ws[1].Tell(&protocol.StatusWord{Set: l.world.Number, Change: uint32(l.c[1])}))
				}
				<-gone
				b := l.ws[2].await(l.op, change.Committed)
				want := changepage.Committed
				if b.State > change.Done {
					want = changepage.RolledBack
				}
				for i, w := range l.ws {
					if s, ok := w.page.Decision(l.c[i]); s != want || !ok {
						t.Fatalf("it is %v, the page of member %d says %v, %v", b.State, i, s, ok)
					}
				}
			}
		})
	}
	// A process outside of the sets cannot decline the change.
	l := newLate(t, true)
	if err := l.news[1].Tell(&protocol.Decline{Op: l.op + 7, Reason: strings.Repeat("n", 2*protocol.MaxReason)}); err != nil {
		t.Error(err)
	}
	l.news[1].settle()
	if b := l.ws[2].await(l.op, change.Queued); b.State != change.Adopting {
		t.Errorf("%v: %s", b.State, b.Text)
	}
}
