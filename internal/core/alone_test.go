// SPDX-License-Identifier: Apache-2.0

package core

import (
	"errors"
	"testing"

	"gompi/internal/control"
	"gompi/internal/wire"
)

// A set of a process that nobody launched lives while it is held, as one of the head
// does: then its name is free, its values are gone, and nothing is left of it.
func TestAloneSetsEnd(t *testing.T) {
	world := wire.Set{Number: 3, Members: wire.MembersOf(wire.ProcID{Job: 5})}
	a := newAlone(world)
	ask := func(m, body control.Message) error { return a.Ask(t.Context(), m, body) }
	m := control.Algebra{Do: control.Union, In: []uint32{world.Number}, Names: []string{"me"}}
	for range 1000 {
		var b control.SetsBody
		if err := ask(&m, &b); err != nil {
			t.Fatal(err)
		}
		n := b.Sets[0].Number
		if err := ask(&m, &control.SetsBody{}); err == nil {
			t.Fatal("a name that is taken is given again")
		}
		var d control.DescribeBody
		if err := ask(&control.Text{Kind: control.KindLookup, Text: "app://me"}, &d); err != nil || d.Set.Number != n {
			t.Fatalf("app://me is %d: %v", d.Set.Number, err)
		}
		if err := ask(&control.SetPut{Set: n, Put: control.Put{Key: "k", Val: []byte("v")}}, nil); err != nil {
			t.Fatal(err)
		}
		a.Tell(&control.Release{Number: n, Had: control.Had{Opened: 2}}) // that of algebra
		if err := ask(&control.Set{Kind: control.KindDescribe, Number: n}, &d); err != nil || d.Had.Opened != 2 {
			t.Fatalf("a set that is held has %+v: %v", d.Had, err)
		}
		a.Tell(&control.Release{Number: n}) // that of the lookup
		if err := ask(&control.Set{Kind: control.KindDescribe, Number: n}, &d); !errors.Is(err, control.ErrNotFound) {
			t.Fatalf("a set that nobody holds: %v", err)
		}
		if err := ask(&control.SetGet{Set: n, Keys: []string{"k"}}, &control.ValuesBody{}); !errors.Is(err, control.ErrNotFound) {
			t.Fatalf("values of a set that nobody holds: %v", err)
		}
	}
	s, err := a.DefineSet(world.Members)
	if err != nil {
		t.Fatal(err)
	}
	a.ReleaseSet(s.Number)
	a.ReleaseSet(world.Number) // which stays
	if _, err := a.number(control.WorldURI); err != nil || len(a.sets) != 1 {
		t.Errorf("%d sets are left: %v", len(a.sets), err)
	}
}
