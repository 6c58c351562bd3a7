// SPDX-License-Identifier: Apache-2.0

package core

import (
	"errors"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// A set of a process that nobody launched lives while it is held, as one of the head
// does: then its name is free, its values are gone, and nothing is left of it.
func TestAloneSetsEnd(t *testing.T) {
	world := wire.Set{Number: 3, Members: wire.MembersOf(wire.ProcID{Job: 5})}
	a := newSingleton(world)
	ask := func(m, body protocol.Message) error { return a.Ask(t.Context(), m, body) }
	m := protocol.Algebra{Do: protocol.Union, In: []uint32{world.Number}, Names: []string{"me"}}
	for range 1000 {
		var b protocol.SetsBody
		if err := ask(&m, &b); err != nil {
			t.Fatal(err)
		}
		n := b.Sets[0].Number
		if err := ask(&m, &protocol.SetsBody{}); err == nil {
			t.Fatal("a name that is taken is given again")
		}
		var d protocol.DescribeBody
		if err := ask(&protocol.Text{Kind: protocol.KindLookup, Text: "app://me"}, &d); err != nil || d.Set.Number != n {
			t.Fatalf("app://me is %d: %v", d.Set.Number, err)
		}
		if err := ask(&protocol.SetPut{Set: n, Put: protocol.Put{Key: "k", Val: []byte("v")}}, nil); err != nil {
			t.Fatal(err)
		}
		a.Tell(&protocol.Release{Number: n, Use: protocol.SetUse{Opened: 2}}) // that of algebra
		if err := ask(&protocol.Set{Kind: protocol.KindDescribe, Number: n}, &d); err != nil || d.Use.Opened != 2 {
			t.Fatalf("a set that is held has %+v: %v", d.Use, err)
		}
		a.Tell(&protocol.Release{Number: n}) // that of the lookup
		if err := ask(&protocol.Set{Kind: protocol.KindDescribe, Number: n}, &d); !errors.Is(err, protocol.ErrNotFound) {
			t.Fatalf("a set that nobody holds: %v", err)
		}
		if err := ask(&protocol.SetGet{Set: n, Keys: []string{"k"}}, &protocol.ValuesBody{}); !errors.Is(err, protocol.ErrNotFound) {
			t.Fatalf("values of a set that nobody holds: %v", err)
		}
	}
	s, err := a.DefineSet(world.Members)
	if err != nil {
		t.Fatal(err)
	}
	a.ReleaseSet(s.Number)
	a.ReleaseSet(world.Number) // which stays
	if _, err := a.number(protocol.WorldURI); err != nil || len(a.sets) != 1 {
		t.Errorf("%d sets are left: %v", len(a.sets), err)
	}
}
