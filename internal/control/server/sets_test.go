// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
)

// describe looks a set up.
func (c *child) describe(name string) (*protocol.DescribeBody, error) {
	var b protocol.DescribeBody
	err := c.Ask(bg, &protocol.Text{Kind: protocol.KindLookup, Text: name}, &b)
	return &b, err
}

// names are the news since a point.
func (c *child) names(since uint64) (list []string, next uint64) {
	c.t.Helper()
	var b protocol.NewsBody
	c.must(c.Ask(bg, &protocol.News{Since: since}, &b))
	for _, s := range b.Sets {
		list = append(list, s.Name)
	}
	return list, b.Next
}

func (c *child) algebra(m protocol.Algebra) ([]protocol.SetName, error) {
	var b protocol.SetsBody
	err := c.Ask(bg, &m, &b)
	return b.Sets, err
}

// own is the number of a set.
func (c *child) number(name string) uint32 {
	c.t.Helper()
	b, err := c.describe(name)
	c.must(err)
	return b.Set.Number
}

func withNames(c *Config) {
	c.PSets = []head.PSet{{Name: "even", Ranks: []int{2, 0}}, {Name: "one", Ranks: []int{1}}}
	c.HostNames = []string{"here"}
}

// Sets of the command line and of hosts, and names as they are compared.
func TestNamedSets(t *testing.T) {
	r := newRig(t, 3, withNames)
	a, b := r.join(0), r.join(1)
	even, err := a.describe("app://even")
	a.must(err)
	if want := wire.MembersOf(r.procs[2].Proc, a.id); !even.Set.Members.Equal(want) || even.Set.URI != "app://even" {
		t.Errorf("app://even is %+v", even.Set)
	}
	for name, same := range map[string]string{"mpi://world": protocol.WorldURI, "MPI://Self": protocol.SelfURI, protocol.MainURI: protocol.WorldURI} {
		if x, y := a.number(name), a.number(same); x != y {
			t.Errorf("%s is set %d, %s set %d", name, x, same, y)
		}
	}
	here, err := b.describe("gompi://host/here")
	b.must(err)
	if !here.Set.Members.Equal(r.world.Members) || here.Set.Number == r.world.Number {
		t.Errorf("the set of the host is %+v", here.Set)
	}
	if main, err := b.describe(protocol.MainURI); err != nil || main.Set.URI != protocol.SetURI(b.id.Job, r.world.Number) {
		t.Errorf("the main set is %+v: %v", main.Set, err)
	}
	for _, name := range []string{"app://Even", "APP://even", "even", "gompi://host/Here", "gompi://MAIN", "app://"} {
		if _, err := a.describe(name); !errors.Is(err, protocol.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []*child{a, b} {
		if list, _ := c.names(0); !reflect.DeepEqual(list, []string{"gompi://host/here", "app://even", "app://one"}) {
			t.Errorf("process %d hears of %q", c.id.Serial, list)
		}
	}
	// They end with their last members.
	a.must(b.Finalize())
	if _, err := a.describe("app://one"); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("a set whose only member has left: %v", err)
	}
	if even, err = a.describe("gompi://host/here"); err != nil || even.Left.Len() != 1 || even.Left.At(0) != b.id || even.Died.Len() != 0 {
		t.Errorf("who left is %v, who died %v: %v", even.Left, even.Died, err)
	}
	r.Exited(r.procs[2].Proc, "signal: killed", false)
	if even, err = a.describe("app://even"); err != nil || even.Died.Len() != 1 || even.Died.At(0) != r.procs[2].Proc {
		t.Errorf("who died is %v: %v", even.Died, err)
	}
}

func TestWrongPSets(t *testing.T) {
	for _, sets := range [][]head.PSet{{{Name: ""}}, {{Name: "a"}}, {{Name: "a", Ranks: []int{1, 1}}}, {{Name: "a", Ranks: []int{-1}}},
		{{Name: strings.Repeat("a", protocol.MaxName), Ranks: []int{0}}}, {{Name: "x://y", Ranks: []int{0}}}, {{Name: "a", Ranks: []int{0}}, {Name: "a", Ranks: []int{1}}}} {
		if _, err := NewServer(Config{JobConfig: JobConfig{Job: 9, PSets: sets}}); err == nil {
			t.Errorf("%.60v accepted", sets)
		}
	}
	s, err := NewServer(Config{JobConfig: JobConfig{Job: wire.JobID(os.Getpid()), PSets: []head.PSet{{Name: "a", Ranks: []int{2}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, _, err := s.AddJob([][]string{{"x"}, {"x"}}); err == nil || !strings.Contains(err.Error(), "rank 2, and there are 2") {
		t.Errorf("a set with rank 2 of 2: %v", err)
	}
}

func TestAlgebra(t *testing.T) {
	r := newRig(t, 5, nil)
	a, b := r.join(0), r.join(4)
	ids := func(ranks ...int) (m wire.Members) {
		var list []wire.ProcID
		for _, i := range ranks {
			list = append(list, r.procs[i].Proc)
		}
		return wire.MembersOf(list...)
	}
	define := func(ranks ...int) uint32 {
		s, err := a.DefineSet(ids(ranks...))
		a.must(err)
		return s.Number
	}
	x, y, z := define(3, 1, 0), define(1, 2), define(2, 1, 0)
	// What is queued for a process is no table.
	tables := func() map[string]int {
		m := r.Server.Sizes()
		delete(m, "bytes queued")
		return m
	}
	before := tables()
	for _, c := range []struct {
		m    protocol.Algebra
		want []wire.Members
	}{
		{protocol.Algebra{Do: protocol.Union, In: []uint32{x, y, z}}, []wire.Members{ids(3, 1, 0, 2)}},
		{protocol.Algebra{Do: protocol.Difference, In: []uint32{x, y, 0}}, []wire.Members{ids(3, 0)}},
		{protocol.Algebra{Do: protocol.Difference, In: []uint32{x, y, z}}, []wire.Members{ids(3)}},
		{protocol.Algebra{Do: protocol.Intersection, In: []uint32{x, z}}, []wire.Members{ids(1, 0)}},
		{protocol.Algebra{Do: protocol.Intersection, In: []uint32{x, 0}}, []wire.Members{{}}},
		{protocol.Algebra{Do: protocol.Split, In: []uint32{x}, Sizes: []uint32{2, 0, 1}}, []wire.Members{ids(3, 1), {}, ids(0)}},
	} {
		got, err := a.algebra(c.m)
		if err != nil || len(got) != len(c.want) {
			t.Fatalf("%+v: %v, %v", c.m, got, err)
		}
		for i, s := range got {
			if c.want[i].Len() == 0 {
				if s.Number != 0 || s.Name != protocol.EmptyURI {
					t.Errorf("%+v: part %d is %+v, want the empty set", c.m, i, s)
				}
				continue
			}
			d, err := a.describe(s.Name)
			a.must(err)
			if !d.Set.Members.Equal(c.want[i]) {
				t.Errorf("%+v: part %d is %v, want %v", c.m, i, d.Set.Members, c.want[i])
			}
			a.must(a.ReleaseSet(s.Number))
			a.must(a.ReleaseSet(s.Number))
		}
	}
	for _, m := range []protocol.Algebra{
		{Do: protocol.Union}, {Do: protocol.Union, In: []uint32{x}, Sizes: []uint32{1}}, {Do: protocol.Split, In: []uint32{x, y}, Sizes: []uint32{3}},
		{Do: protocol.Split, In: []uint32{x}, Sizes: []uint32{1, 3}}, {Do: protocol.Split, In: []uint32{x}, Sizes: []uint32{4}}, {Do: protocol.Split, In: []uint32{x}},
		{Do: protocol.Union, In: []uint32{x}, Names: []string{"a", "b"}}, {Do: protocol.Union, In: []uint32{x}, Names: []string{"app://"}},
		{Do: protocol.Split, In: []uint32{x}, Sizes: []uint32{2, 1}, Names: []string{"a", "a"}},
	} {
		if s, err := a.algebra(m); !errors.Is(err, protocol.ErrRefused) {
			t.Errorf("%+v: %v, %v", m, s, err)
		}
	}
	if _, err := a.algebra(protocol.Algebra{Do: protocol.Union, In: []uint32{99}}); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("union of no set: %v", err)
	}
	if after := tables(); !reflect.DeepEqual(after, before) {
		t.Errorf("sizes %v, %v before", after, before)
	}

	// Names are unique among living sets, and members hear of them.
	_, next := b.names(0)
	got, err := a.algebra(protocol.Algebra{Do: protocol.Split, In: []uint32{r.world.Number}, Sizes: []uint32{2, 3}, Names: []string{"", "app://rest"}})
	a.must(err)
	if got[1].Name != "app://rest" {
		t.Errorf("sets %+v", got)
	}
	if _, err := b.algebra(protocol.Algebra{Do: protocol.Union, In: []uint32{x}, Names: []string{"rest"}}); !errors.Is(err, protocol.ErrRefused) || !strings.Contains(err.Error(), "taken") {
		t.Errorf("a name that is taken: %v", err)
	}
	if list, _ := b.names(next); !reflect.DeepEqual(list, []string{"app://rest"}) {
		t.Errorf("a member hears of %q", list)
	}
	if list, _ := a.names(next); !reflect.DeepEqual(list, []string{got[0].Name, "app://rest"}) {
		t.Errorf("a member hears of %q", list)
	}
	a.must(a.ReleaseSet(got[1].Number))
	a.settle()
	if _, err := b.describe("app://rest"); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("a set that nobody holds: %v", err)
	}
	if err := b.Ask(bg, &protocol.Set{Kind: protocol.KindDescribe, Number: got[1].Number}, new(protocol.DescribeBody)); !errors.Is(err, protocol.ErrSetGone) {
		t.Errorf("its number: %v", err)
	}
	again, err := b.algebra(protocol.Algebra{Do: protocol.Union, In: []uint32{y}, Names: []string{"rest"}})
	if err != nil || again[0].Name != "app://rest" || again[0].Number == got[1].Number {
		t.Errorf("the name once more: %+v, %v", again, err)
	}
}

// What a member has opened of a set is remembered while the set lives.
func TestOpened(t *testing.T) {
	r := newRig(t, 2, nil)
	a, b := r.join(0), r.join(1)
	set, err := a.DefineSet(r.world.Members)
	a.must(err)
	uri := set.URI
	if d, err := b.describe(uri); err != nil || d.Use.Opened != 0 {
		t.Errorf("opened %d: %v", d.Use.Opened, err)
	}
	if d, err := b.describe(protocol.WorldURI); err != nil || d.Use.Opened != 1 {
		t.Errorf("opened %d of the world: %v", d.Use.Opened, err)
	}
	b.must(b.Tell(&protocol.Release{Number: set.Number, Use: protocol.SetUse{Opened: 3, Calls: 2}})) // once for two
	if d, err := b.describe(uri); err != nil || d.Use.Opened != 3 || d.Use.Calls != 2 {
		t.Errorf("had %+v: %v", d.Use, err)
	}
	if d, err := a.describe(uri); err != nil || d.Use.Opened != 0 {
		t.Errorf("opened %d by another: %v", d.Use.Opened, err)
	}
}

func TestMainSet(t *testing.T) {
	r := newRig(t, 2, nil)
	a, b := r.join(0), r.join(1)
	set, err := a.DefineSet(wire.MembersOf(b.id))
	a.must(err)
	setMain := func(n uint32) error {
		return a.Ask(t.Context(), &protocol.Set{Kind: protocol.KindMain, Number: n}, &protocol.Empty{Kind: protocol.KindReply})
	}
	a.must(setMain(set.Number))
	if err := setMain(99); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("a set that there is not as the main one: %v", err)
	}
	a.must(a.ReleaseSet(set.Number)) // the job holds it
	a.settle()
	if n := b.number(protocol.MainURI); n != set.Number {
		t.Errorf("the main set is %d, want %d", n, set.Number)
	}
}

func TestSetStore(t *testing.T) {
	r := newRig(t, 3, nil)
	a, b, c := r.join(0), r.join(1), r.join(2)
	set, err := a.DefineSet(r.world.Members)
	a.must(err)
	put := func(k *child, key, val string) error {
		return k.Ask(bg, &protocol.SetPut{Set: set.Number, Put: protocol.Put{Key: key, Val: []byte(val)}}, &protocol.Empty{})
	}
	get := func(k *child, m protocol.SetGet) (string, error) {
		var v protocol.ValuesBody
		m.Set = set.Number
		err := k.Ask(bg, &m, &v)
		s := ""
		for _, x := range v.Values {
			s += fmt.Sprintf("%v%s ", x.There, x.Val)
		}
		return s, err
	}
	a.must(put(a, "x", "1"))
	if s, err := get(b, protocol.SetGet{Keys: []string{"x", "y"}}); s != "true1 false " {
		t.Errorf("%q, %v", s, err)
	}
	wait := controltest.Async(t, func() error {
		s, err := get(b, protocol.SetGet{Keys: []string{"y", "x"}, Wait: true})
		if s != "true2 true1 " {
			t.Errorf("%q", s)
		}
		return err
	})
	r.parked(1)
	a.must(put(a, "y", "2"))
	a.must(wait())

	// All members get the answer of the first of them.
	if s, err := get(a, protocol.SetGet{Keys: []string{"x"}, Call: 1}); s != "true1 " {
		t.Errorf("%q, %v", s, err)
	}
	a.must(put(a, "x", "other"))
	if s, err := get(b, protocol.SetGet{Keys: []string{"x"}, Call: 1}); s != "true1 " {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := get(c, protocol.SetGet{Keys: []string{"y"}, Call: 1}); !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("other keys: %v", err)
	}
	if s, err := get(c, protocol.SetGet{Keys: []string{"x"}, Call: 1}); s != "true1 " {
		t.Errorf("%q, %v", s, err)
	}
	late := controltest.Async(t, func() error {
		s, err := get(a, protocol.SetGet{Keys: []string{"z"}, Call: 2, Wait: true})
		if s != "false " {
			t.Errorf("%q", s)
		}
		return err
	})
	r.parked(1)
	if s, err := get(b, protocol.SetGet{Keys: []string{"z"}, Call: 2}); s != "false " { // it does not wait
		t.Errorf("%q, %v", s, err)
	}
	a.must(late())
	if s, err := get(c, protocol.SetGet{Keys: []string{"z"}, Call: 2, Wait: true}); s != "false " {
		t.Errorf("%q, %v", s, err)
	}
	// A member that gives up has made its part of the call: all do, or one before the others call.
	quit := func(k *child, call uint64) {
		t.Helper()
		ctx, cancel := context.WithCancel(bg)
		over := controltest.Async(t, func() error {
			return k.Ask(ctx, &protocol.SetGet{Set: set.Number, Coll: set.Number, Keys: []string{"w"}, Wait: true, Call: call}, new(protocol.ValuesBody))
		})
		r.parked(1)
		cancel()
		if err := over(); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		r.parked(0)
	}
	for _, k := range []*child{a, b, c} {
		quit(k, 3)
	}
	quit(a, 4)
	for _, k := range []*child{b, c} {
		if s, err := get(k, protocol.SetGet{Keys: []string{"w"}, Call: 4}); s != "false " {
			t.Errorf("%q, %v", s, err)
		}
	}
	if n := r.sizes()["calls in sets"]; n != 0 {
		t.Errorf("%d calls are remembered", n)
	}

	for _, m := range []protocol.SetGet{{}, {Keys: []string{""}}} {
		if _, err := get(a, m); !errors.Is(err, protocol.ErrRefused) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if err := put(a, "", "v"); !errors.Is(err, protocol.ErrRefused) {
		t.Errorf("empty key: %v", err)
	}

	// It goes with the set.
	gone := controltest.Async(t, func() error {
		if _, err := get(b, protocol.SetGet{Keys: []string{"never"}, Wait: true}); !errors.Is(err, protocol.ErrSetGone) {
			t.Errorf("the set ends: %v", err)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(bg)
	cancelled := controltest.Async(t, func() error {
		err := c.Ask(ctx, &protocol.SetGet{Set: set.Number, Keys: []string{"never"}, Wait: true}, new(protocol.ValuesBody))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		return nil
	})
	r.parked(2)
	cancel()
	c.must(cancelled())
	a.must(a.ReleaseSet(set.Number))
	a.must(gone())
	if err := put(a, "x", "1"); !errors.Is(err, protocol.ErrSetGone) {
		t.Errorf("put: %v", err)
	}
	if n := r.sizes()["bytes in store"]; n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
