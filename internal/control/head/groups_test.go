// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
	starts "gompi/internal/control/spawn"
)

// grouped is a job of some ranks on hosts of so many slots, one of which has asked for
// newcomers, who have their places.
func grouped(t *testing.T, ranks, hosts, slots int, r change.Request) *world {
	w := newWorld(t, 1, hosts, ranks)
	for i := range w.h.cfg.HostSlots {
		w.h.cfg.HostSlots[i] = slots
	}
	w.h.cfg.Slots = 0
	for n := range ranks {
		m := w.procs[uint32(n+1)]
		m.joined = true
		w.take(m.host, protocol.Report{Kind: protocol.ReportHello, Serial: m.id.Serial})
		w.ask(m, &protocol.Subscribe{Set: w.h.main, Options: protocol.Options{Step: 1, Lookahead: 1}})
	}
	w.ask(w.procs[1], &protocol.Submit{Request: r, Parts: make([]protocol.SubmitPart, 1)})
	if len(w.launches) != 1 {
		t.Fatalf("%v", w.log)
	}
	l := w.launches[0]
	procs := w.h.Bind(l)
	for _, p := range procs {
		m := w.add(p.Proc, p.Host)
		m.coming, m.op = true, l.Op
	}
	if !l.InGroups() {
		t.Fatalf("%+v does not start in groups", l)
	}
	w.h.Begin(l, procs)
	w.flush()
	return w
}

// began are the groups that were to start since it was asked last, as "group/step/by".
func (w *world) began() (list []string, groups []*Start) {
	for _, g := range w.groups {
		list = append(list, fmt.Sprintf("%d/%d/%d", g.Group, g.Step, g.By))
	}
	groups, w.groups = w.groups, nil
	slices.Sort(list)
	return list, groups
}

// comes up: all processes of a group run, and join one after the other.
func (w *world) comesUp(g *Start) {
	w.h.Started(g, nil)
	w.flush()
	for _, p := range g.Procs {
		if len(w.groups) > 0 {
			w.fail("groups start before all of group %d have joined", g.Group)
		}
		m := w.procs[p.Proc.Serial]
		m.forked, m.joined = true, true
		w.take(m.host, protocol.Report{Kind: protocol.ReportHello, Serial: m.id.Serial})
	}
}

// Groups start in the order of each strategy: none before those that it says are up, and
// all that may, at once. Of 2 that were there on hosts of 2 slots the rest starts 9 more.
func TestGroupsStartInOrder(t *testing.T) {
	for how, want := range map[starts.Strategy][][]string{
		starts.Sequential: {{"0/0/-1"}, {"1/1/-1"}, {"2/2/-1"}, {"3/3/-1"}, {"4/4/-1"}},
		starts.Multiple:   {{"0/0/-1", "1/0/-1", "2/0/-1", "3/0/-1", "4/0/-1"}, {}, {}, {}, {}},
		// Two before have two started; each of these, and the two again, the others.
		starts.Parallel: {{"0/0/-1", "1/0/-1"}, {"2/1/-1", "4/1/0"}, {"3/1/-1"}, {}, {}},
	} {
		t.Run(how.String(), func(t *testing.T) {
			w := grouped(t, 2, 6, 2, change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{9}, Start: how})
			var up []*Start
			for i, want := range want {
				got, now := w.began()
				if !slices.Equal(got, want) {
					t.Fatalf("when %d groups are up these start: %v; want %v", i, got, want)
				}
				up = append(up, now...)
				if len(up) == 0 {
					t.Fatal("no group is under way")
				}
				// In the order of groups.
				slices.SortFunc(up, func(a, b *Start) int { return a.Group - b.Group })
				o := w.h.ops[up[0].Op]
				if o.body.State != change.Granted {
					t.Fatalf("before all groups run the operation is %v", o.body.State)
				}
				w.comesUp(up[0])
				up = up[1:]
			}
			var o *op
			for _, o = range w.h.ops {
			}
			if o.body.State != change.Ready {
				t.Errorf("when all are up the operation is %v", o.body.State)
			}
			sizes := []string{}
			for _, s := range o.body.Outputs[0].Joining {
				sizes = append(sizes, fmt.Sprint(w.h.sets[s].members.Len()))
			}
			if got, want := strings.Join(sizes, " "), map[bool]string{true: "2 2 2 2 1", false: "9"}[how.Grouped()]; got != want {
				t.Errorf("sets of newcomers of %s, want %s", got, want)
			}
		})
	}
}

// A change that does not happen leaves nothing of groups that were not to start yet, nor
// of those that cannot.
func TestGroupsDiscarded(t *testing.T) {
	for name, end := range map[string]func(w *world, g *Start){
		"withdrawn": func(w *world, g *Start) {
			w.comesUp(g)
			w.ask(w.procs[1], &protocol.Op{Kind: protocol.KindWithdraw, Op: g.Op})
		},
		"cannot start": func(w *world, g *Start) { w.h.Started(g, errors.New("no such program")); w.flush() },
		"host lost":    func(w *world, g *Start) { w.lose(5) },
		"first lost":   func(w *world, g *Start) { w.comesUp(g); w.lose(g.Procs[0].Host) },
	} {
		t.Run(name, func(t *testing.T) {
			w := grouped(t, 1, 6, 1, change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{5}, Start: starts.Sequential})
			_, now := w.began()
			end(w, now[0])
			more, _ := w.began()
			for _, s := range more {
				if !strings.HasPrefix(s, "1/") {
					t.Errorf("group %s starts", s)
				}
			}
			w.groups = nil
			if n := w.h.Sizes()["of changes: operations"]; n != 0 {
				t.Errorf("%d operations are left", n)
			}
			w.finish()
		})
	}
}
