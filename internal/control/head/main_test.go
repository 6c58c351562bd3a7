// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"strings"
	"testing"

	"gompi/internal/base/group"
	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// watching is a job of some ranks, all of which follow the main set.
func watching(t *testing.T, hosts, ranks int) *world {
	return watchingWith(t, hosts, ranks, protocol.Options{Step: 1, Lookahead: 1})
}

func watchingWith(t *testing.T, hosts, ranks int, o protocol.Options) *world {
	w := newWorld(t, 2, hosts, ranks)
	for n := range ranks {
		m := w.procs[uint32(n+1)]
		m.joined = true
		w.take(m.host, protocol.Report{Kind: protocol.ReportHello, Serial: m.id.Serial})
		w.ask(m, &protocol.Subscribe{Set: w.h.main, Options: o})
	}
	return w
}

// got asks, and decodes the answer into body; nil: it is empty.
func (w *world) got(serial uint32, x, body protocol.Message) error {
	w.t.Helper()
	w.last = protocol.Reply{Status: protocol.StatusRefused, Text: "no answer"}
	w.ask(w.procs[serial], x)
	err := w.last.Err()
	if err == nil && body != nil {
		err = protocol.Decode(body, w.last.Body)
	}
	return err
}

// asked for is an operation that was taken.
func (w *world) taken(serial uint32, r change.Request) *protocol.OpBody {
	w.t.Helper()
	var b protocol.OpBody
	if err := w.got(serial, &protocol.Submit{Request: r, Parts: make([]protocol.SubmitPart, max(1, len(r.Parts)))}, &b); err != nil || b.Op == 0 {
		w.fail("%v: %+v", err, b)
	}
	return &b
}

func (w *world) setMain(serial, set uint32) error {
	return w.got(serial, &protocol.Set{Kind: protocol.KindMain, Number: set}, nil)
}

// A set of a change that is not decided becomes the main one with that, or does not.
func TestMainSetOfUndecided(t *testing.T) {
	grow := change.Request{Kind: change.Grow, In: []uint32{1}, Join: []int{1}}
	union := func(w *world, b *protocol.OpBody) uint32 {
		var sets protocol.SetsBody
		if err := w.got(1, &protocol.Algebra{Do: protocol.Union, In: []uint32{b.Outputs[0].Joining[0], 1}}, &sets); err != nil {
			t.Fatal(err)
		}
		return sets.Sets[0].Number
	}
	defined := func(w *world, b *protocol.OpBody) uint32 {
		var set protocol.SetBody
		if err := w.got(1, &protocol.Members{Kind: protocol.KindDefine, Members: w.h.sets[b.Outputs[0].Result].members}, &set); err != nil {
			t.Fatal(err)
		}
		return set.S.Number
	}
	for what, of := range map[string]func(w *world, b *protocol.OpBody) uint32{
		"a set of its members": defined,
		"its result":           func(_ *world, b *protocol.OpBody) uint32 { return b.Outputs[0].Result },
		"the set of newcomers": func(_ *world, b *protocol.OpBody) uint32 { return b.Outputs[0].Joining[0] },
		"what was made of it":  union,
	} {
		t.Run(what, func(t *testing.T) {
			w := watching(t, 1, 2)
			first := w.h.main
			b := w.taken(1, grow)
			set := of(w, b)
			w.h.give(w.h.bySerial(1), set)
			if err := w.setMain(1, set); err != nil {
				t.Fatal(err)
			}
			if p := w.h.bySerial(1); w.h.isMember(set, p) { // nobody else need hold it
				for p.given[set] > 0 {
					w.tell(w.procs[1], &protocol.Release{Number: set})
				}
				if err := w.setMain(1, set); err != nil {
					t.Errorf("once more: %v", err)
				}
			}
			if w.h.main != first {
				t.Errorf("the main set is %d before the decision", w.h.main)
			}
			if err := w.got(1, &protocol.Op{Kind: protocol.KindWithdraw, Op: b.Op}, nil); err != nil {
				t.Fatal(err)
			}
			for len(w.reports) > 0 {
				w.deliver()
			}
			if o := w.h.ops[b.Op]; o == nil || o.body.State != change.Cancelled {
				t.Fatalf("%+v", o)
			}
			if w.h.main != first {
				t.Errorf("the main set is %d after the change was cancelled", w.h.main)
			}
			if err := w.setMain(1, set); !errors.Is(err, protocol.ErrSetGone) {
				t.Errorf("a set whose change was cancelled becomes the main one: %v", err)
			}
			if t.Failed() {
				return
			}
			w.finish()
		})
	}
}

// The main set that was named while a change was not decided is it once that is
// committed, if nobody has named another one.
func TestMainSetWithTheDecision(t *testing.T) {
	for _, other := range []bool{false, true} {
		w := watching(t, 1, 3)
		first := w.h.main
		b := w.taken(1, change.Request{Kind: change.Sub, In: []uint32{1}, Leave: 1})
		leaving := b.Outputs[0].Leaving
		w.h.give(w.h.bySerial(1), leaving)
		if err := w.setMain(1, leaving); err != nil {
			t.Fatal(err)
		}
		if other {
			if err := w.setMain(2, first); err != nil {
				t.Fatal(err)
			}
		}
		for range 6 {
			for serial := range uint32(3) {
				w.check(w.procs[serial+1])
			}
			for len(w.reports) > 0 {
				w.deliver()
			}
		}
		if o := w.h.ops[b.Op]; o == nil || o.body.State != change.Committed {
			t.Fatalf("%+v", o)
		}
		if want := map[bool]uint32{false: leaving, true: first}[other]; w.h.main != want {
			t.Errorf("the main set is %d, want %d", w.h.main, want)
		}
	}
}

// The main set is one of those that there are, which its namer knows.
func TestMainSetRefused(t *testing.T) {
	w := watching(t, 1, 2)
	alone := w.h.bySerial(2).self
	for set, want := range map[uint32]error{99: protocol.ErrNotFound, alone: protocol.ErrRefused} {
		if err := w.setMain(1, set); !errors.Is(err, want) {
			t.Errorf("set %d: %v", set, err)
		}
	}
	if err := w.setMain(2, alone); err != nil {
		t.Error(err)
	}
}

// What is made of newcomers whose change was rolled back would outlive the change.
func TestUndoneSetMakesNone(t *testing.T) {
	w := watching(t, 1, 2)
	b := w.taken(1, change.Request{Kind: change.Grow, In: []uint32{1}, Join: []int{1}})
	joining := b.Outputs[0].Joining[0]
	w.start()
	if w.h.ops[b.Op].body.State >= change.Committed {
		t.Skip("it could not be started")
	}
	if err := w.got(1, &protocol.Op{Kind: protocol.KindWithdraw, Op: b.Op}, nil); err != nil {
		t.Fatal(err)
	}
	for len(w.reports) > 0 {
		w.deliver()
	}
	if w.h.sets[joining] == nil {
		t.Fatal("nobody has the set of newcomers")
	}
	err := w.got(1, &protocol.Algebra{Do: protocol.Union, In: []uint32{joining, 1}}, &protocol.SetsBody{})
	if !errors.Is(err, protocol.ErrSetGone) || len(w.h.ofOp) > 0 {
		t.Errorf("a union with newcomers of a change that was rolled back: %v, %v", err, w.h.ofOp)
	}
}

// A set of newcomers of two changes that are not decided could go with one of them and not
// with the other: there is none.
func TestDefineSetOfTwoChanges(t *testing.T) {
	w := watching(t, 1, 2)
	var both []wire.Members
	for serial := uint32(1); serial <= 2; serial++ {
		self := w.h.bySerial(serial).self
		w.ask(w.procs[serial], &protocol.Subscribe{Set: self, Options: protocol.Options{Step: 1, Lookahead: 1}})
		b := w.taken(serial, change.Request{Kind: change.Grow, In: []uint32{self}, Join: []int{1}})
		both = append(both, w.h.sets[b.Outputs[0].Joining[0]].members)
	}
	err := w.got(1, &protocol.Members{Kind: protocol.KindDefine, Members: group.Union(both[0], both[1])}, nil)
	if !errors.Is(err, protocol.ErrRefused) || !strings.Contains(err.Error(), "two changes") {
		t.Errorf("a set of newcomers of two changes: %v", err)
	}
	for _, m := range both {
		if err := w.got(2, &protocol.Members{Kind: protocol.KindDefine, Members: m}, nil); err != nil {
			t.Errorf("a set of newcomers of one change: %v", err)
		}
	}
	w.consistent()
	w.finish()
}

// A change of a set that was made of outputs of another one, which is not decided, waits for
// that: the set may vanish.
func TestChangeOfDerivedSet(t *testing.T) {
	w := watching(t, 1, 3)
	first := w.taken(1, change.Request{Kind: change.Sub, In: []uint32{1}, Leave: 1})
	var sets protocol.SetsBody
	if err := w.got(1, &protocol.Algebra{Do: protocol.Difference, In: []uint32{1, first.Outputs[0].Leaving}}, &sets); err != nil {
		t.Fatal(err)
	}
	made := sets.Sets[0].Number
	for serial := uint32(1); serial <= 2; serial++ {
		w.ask(w.procs[serial], &protocol.Subscribe{Set: made, Options: protocol.Options{Step: 1, Lookahead: 1}})
	}
	next := w.taken(1, change.Request{Kind: change.Shrink, In: []uint32{made}, Leave: 1})
	if next.State != change.Queued {
		t.Errorf("it is %v", next.State)
	}
	w.ask(w.procs[1], &protocol.Op{Kind: protocol.KindWithdraw, Op: first.Op})
	for len(w.reports) > 0 {
		w.deliver()
	}
	var b protocol.OpBody
	if err := w.got(1, &protocol.Await{Op: next.Op, Until: change.Done}, &b); err != nil || b.State != change.Refused || b.Why != protocol.WhySetGone {
		t.Errorf("after the roll-back: %+v, %v", b, err)
	}
	w.consistent()
	w.finish()
}
