// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"reflect"
	"testing"

	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

func (k *child) submitNamed(r change.Request, names ...string) protocol.OpBody {
	k.t.Helper()
	var b protocol.OpBody
	k.must(k.Ask(bg, &protocol.Submit{Request: r, Parts: []protocol.SubmitPart{{Names: names}}}, &b))
	return b
}

// Outputs have the names that were asked for, members hear of them when the change is
// Ready, and what is made of them is gone with it, names and all.
func TestNamesOfOutputs(t *testing.T) {
	e := newElastic(t, 2, nil)
	var ws []*watcher
	for _, k := range e.joinAll() {
		ws = append(ws, k.follow(e.world))
	}
	a, b := ws[0], ws[1]
	grow := change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{1}}
	for _, names := range [][]string{{"x", "x"}, {"x", "y", "z"}, {"://"}} {
		if op := a.submitNamed(grow, names...); op.Op != 0 || op.Why != protocol.WhyName {
			t.Errorf("names %q: %+v", names, op)
		}
	}
	for i := range 2 {
		_, since := b.names(0)
		op := a.submitNamed(grow, "new", "app://all")
		if op.Op == 0 || len(op.Names) != 2 || op.Names[0].Name != "app://new" || op.Names[1].Name != "app://all" || op.Names[1].Number != op.Outputs[0].Result {
			t.Fatalf("submitted: %+v", op)
		}
		if again := b.submitNamed(change.Request{Kind: change.Shrink, In: []uint32{0}, Leave: 1}, "", "all"); again.Why != protocol.WhyName {
			t.Errorf("a name that is taken: %+v", again)
		}
		if list, _ := b.names(since); list != nil {
			t.Errorf("before it is Ready a member hears of %q", list)
		}
		// In S000's order: what is new is received, united with the set, and integrated.
		union, err := b.algebra(protocol.Algebra{Do: protocol.Union, In: []uint32{e.world.Number, op.Outputs[0].Joining[0]}, Names: []string{"united"}})
		if err != nil || union[0].Number != op.Outputs[0].Result || union[0].Name != "app://united" {
			t.Errorf("the union is %+v: %v", union, err)
		}
		part, err := b.algebra(protocol.Algebra{Do: protocol.Difference, In: []uint32{op.Outputs[0].Result, b.number(protocol.SelfURI)}, Names: []string{"part"}})
		b.must(err)
		news := e.newcomers(i)
		if i == 0 {
			if done := a.withdraw(op.Op); done.State != change.Cancelled {
				t.Fatalf("cancelled: %+v", done)
			}
			for _, name := range []string{"app://new", "app://all", "app://united", "app://part"} {
				if _, err := b.describe(name); !errors.Is(err, protocol.ErrNotFound) {
					t.Errorf("%s of a change that does not happen: %v", name, err)
				}
			}
			if err := b.Ask(bg, &protocol.Set{Kind: protocol.KindDescribe, Number: part[0].Number}, new(protocol.DescribeBody)); !errors.Is(err, protocol.ErrSetGone) {
				t.Errorf("what was made of it: %v", err)
			}
			continue
		}
		b.await(op.Op, change.Ready)
		if list, _ := b.names(since); !reflect.DeepEqual(list, []string{"app://united", "app://part", "app://new", "app://all"}) {
			t.Errorf("members hear of %q", list)
		}
		if d, err := news[0].describe("app://all"); err != nil || !d.Dynamic || d.Use.Opened != 1 || d.Set.Members.Len() != 3 {
			t.Errorf("the result is %+v: %v", d, err)
		}
		for _, w := range ws {
			w.checkVote()
		}
		news[0].must(news[0].Tell(&protocol.Op{Kind: protocol.KindVoted, Op: op.Op}))
		news[0].await(op.Op, change.Committed)
		if d, err := b.describe("app://part"); err != nil || d.Set.Members.Len() != 2 {
			t.Errorf("what was made of it: %+v, %v", d, err)
		}
	}
}

// withdraw cancels an operation.
func (k *child) withdraw(op uint32) protocol.OpBody {
	k.t.Helper()
	var b protocol.OpBody
	k.must(k.Ask(bg, &protocol.Op{Kind: protocol.KindWithdraw, Op: op}, &b))
	return b
}
