// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// open begins a session that ends with the rank.
func open(t *mpitest.T) *sessions.Session {
	t.Helper()
	s, err := sessions.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSetsOfASession(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
		s := open(t)
		list, err := s.PSets()
		if err != nil || len(list) < 2 || list[0] != "mpi://WORLD" || list[1] != "mpi://SELF" {
			t.Fatalf("sets %q: %v", list, err)
		}
		if n, err := s.NumPSets(); err != nil || n < 2 {
			t.Errorf("%d sets: %v", n, err)
		}
		if name, err := s.PSet(1); err != nil || name != "mpi://SELF" {
			t.Errorf("set 1 is %q: %v", name, err)
		}
		for _, n := range []int{-1, 1000} {
			if _, err := s.PSet(n); !errors.Is(err, mpi.ErrArg) {
				t.Errorf("set %d: %v", n, err)
			}
		}
		for name, want := range map[string]sessions.Info{
			"mpi://world":   {Size: 3, Included: true, Hosts: 1, Primary: world.Rank() == 0},
			"MPI://Self":    {Size: 1, Included: true, Hosts: 1, Primary: true},
			"gompi://main":  {Size: 3, Included: true, Hosts: 1, Primary: world.Rank() == 0},
			"gompi://empty": {}, "": {},
		} {
			if i, err := s.Info(name); err != nil || !reflect.DeepEqual(i, want) {
				t.Errorf("%q: %+v, %v; want %+v", name, i, err, want)
			}
			if g, err := s.Group(name); err != nil || g.Size() != want.Size {
				t.Errorf("%q: a group of %d: %v", name, g.Size(), err)
			}
		}
		if i, err := s.Info("mpi://WORLD"); err != nil || i.Hints().Get("mpi_size") != "3" || i.Hints().Get("mpi_included") != "True" || i.Hints().Get("mpi_dyn") != "False" {
			t.Errorf("hints %v: %v", i.Hints(), err)
		}
		for _, name := range []string{"mpi://PARENT", "mpi://OTHER", "app://x", "GOMPI://main", "x", strings.Repeat("x", 2000)} {
			if _, err := s.Group(name); !errors.Is(err, mpi.ErrSet) {
				t.Errorf("%.20q: %v", name, err)
			}
		}
		main, err := s.Main()
		if g, gerr := s.Group(main); err != nil || gerr != nil || g.Compare(world.Group()) != mpi.Ident || !strings.HasPrefix(main, "gompi://") {
			t.Errorf("the main set is %s: %v, %v", main, err, gerr)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); !errors.Is(err, mpi.ErrSession) {
			t.Errorf("closed twice: %v", err)
		}
		if _, err := s.Group("mpi://WORLD"); !errors.Is(err, mpi.ErrSession) {
			t.Errorf("group of a closed session: %v", err)
		}
		if _, err := s.NumPSets(); !errors.Is(err, mpi.ErrSession) {
			t.Errorf("sets of a closed session: %v", err)
		}
	})
}

// The k-th communicator of a set is the same one on all members, over sessions that
// come and go, also when the reserved ids are used up.
func TestCommsOfASet(t *testing.T) {
	for _, transport := range []string{"inproc", "shm"} {
		t.Run(transport, func(t *testing.T) {
			mpitest.Run(t, 4, func(t *mpitest.T, world *mpi.Comm) {
				odd := world.Rank()%2 == 1
				s := open(t)
				for k := range 12 {
					if odd == (k%3 == 0) { // sessions do not count
						if err := s.Close(); err != nil {
							t.Error(err)
						}
						s = open(t)
					}
					c, err := s.Comm("mpi://WORLD")
					if err != nil {
						t.Fatal(err)
					}
					got, err := mpi.AllreduceOne(c, k<<8+1, mpi.Sum)
					if err != nil || got != 4*(k<<8+1) {
						t.Errorf("communicator %d: sum %d: %v", k, got, err)
					}
					if k%2 == 0 {
						if err := c.Free(); err != nil {
							t.Error(err)
						}
					}
				}
				if c, err := s.Comm(""); c != nil || err != nil {
					t.Errorf("communicator of the empty set: %v, %v", c, err)
				}
				self, err := s.Comm("mpi://SELF")
				if err != nil || self.Size() != 1 {
					t.Errorf("own communicator: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if err := self.Free(); !errors.Is(err, mpi.ErrComm) {
					t.Errorf("a communicator of a closed session: %v", err)
				}
			}, mpitest.Transport(transport))
		})
	}
}

func TestAlgebraOfSets(t *testing.T) {
	mpitest.Run(t, 4, func(t *mpitest.T, world *mpi.Comm) {
		s := open(t)
		defer s.Close()
		var halves []string
		if world.Rank() == 0 {
			var err error
			if halves, err = s.Combine(sessions.Algebra{Do: sessions.Split, In: []string{"gompi://main"}, Sizes: []int{3, 1}, Names: []string{"most", "rest"}}); err != nil {
				t.Fatal(err)
			}
			if halves[0] != "app://most" || halves[1] != "app://rest" {
				t.Errorf("parts %q", halves)
			}
			for what, f := range map[string]func() (string, error){
				"union":        func() (string, error) { return s.Union("app://rest", "app://most") },
				"difference":   func() (string, error) { return s.Difference("mpi://WORLD", "app://rest") },
				"intersection": func() (string, error) { return s.Intersection("mpi://WORLD", "app://most", "mpi://SELF") },
				"nothing":      func() (string, error) { return s.Difference("mpi://SELF", "app://most", "") },
			} {
				name, err := f()
				if err != nil {
					t.Fatal(what, err)
				}
				want := map[string][]int{"union": {3, 0, 1, 2}, "difference": {0, 1, 2}, "intersection": {0}, "nothing": nil}[what]
				g, err := s.Group(name)
				ranks := make([]int, g.Size())
				for i := range ranks {
					ranks[i] = i
				}
				got, _ := g.Translate(ranks, world.Group())
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s is %v: %v", what, got, err)
				}
			}
			if _, err := s.Combine(sessions.Algebra{Do: sessions.Union, In: []string{"mpi://SELF"}, Names: []string{"most"}}); !errors.Is(err, mpi.ErrRefused) {
				t.Errorf("a name that is taken: %v", err)
			}
			if parts, err := s.Split("mpi://WORLD", []int{1, 2}); err != nil || len(parts) != 2 {
				t.Errorf("parts of a set, and one in none of them: %q, %v", parts, err)
			}
			if _, err := s.Split("mpi://WORLD", []int{3, 2}); !errors.Is(err, mpi.ErrRefused) {
				t.Errorf("a split into more than there are: %v", err)
			}
		}
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
		list, err := s.PSets()
		if err != nil || !strings.Contains(strings.Join(list, " "), "app://most app://rest") {
			t.Errorf("sets %q: %v", list, err)
		}
		if world.Rank() < 3 {
			c, err := s.Comm("app://most")
			if err != nil {
				t.Fatal(err)
			}
			if n, err := mpi.AllreduceOne(c, 1, mpi.Sum); n != 3 || err != nil {
				t.Errorf("%d: %v", n, err)
			}
		} else if _, err := s.Comm("app://most"); !errors.Is(err, mpi.ErrRank) {
			t.Errorf("communicator of a set of others: %v", err)
		}
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}

		// A set that is gone keeps its number and name.
		if world.Rank() == 0 {
			return
		}
		if err := s.Release("app://rest"); err != nil {
			t.Error(err)
		}
	})
}

func TestGoneSet(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		s := open(t)
		defer s.Close()
		barrier := func() {
			t.Helper()
			if err := world.Barrier(); err != nil {
				t.Fatal(err)
			}
		}
		if world.Rank() == 0 {
			if _, err := s.Combine(sessions.Algebra{Do: sessions.Union, In: []string{"mpi://WORLD"}, Names: []string{"all"}}); err != nil {
				t.Fatal(err)
			}
		}
		barrier()
		list, err := s.PSets()
		n := len(list)
		if err != nil || list[n-1] != "app://all" {
			t.Fatalf("sets %q: %v", list, err)
		}
		barrier()
		if world.Rank() == 0 {
			if err := s.Release("app://all"); err != nil {
				t.Error(err)
			}
			s.NumPSets() // the head has heard it
		}
		barrier()
		if _, err := s.Group("app://all"); !errors.Is(err, mpi.ErrSetGone) {
			t.Errorf("a set that is gone: %v", err)
		}
		if name, err := s.PSet(n - 1); name != "app://all" || err != nil {
			t.Errorf("its name is %q: %v", name, err)
		}
		barrier()
		if world.Rank() == 1 {
			if _, err := s.Combine(sessions.Algebra{Do: sessions.Union, In: []string{"mpi://WORLD"}, Names: []string{"all"}}); err != nil {
				t.Fatal(err)
			}
		}
		barrier()
		if list, err := s.PSets(); err != nil || len(list) != n+1 || list[n] != "app://all" {
			t.Errorf("sets %q: %v", list, err)
		}
		if g, err := s.Group("app://all"); err != nil || g.Size() != 2 {
			t.Errorf("the next one of that name: %v", err)
		}
		barrier()
	})
}

func TestMainOfAJob(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
		s := open(t)
		defer s.Close()
		if world.Rank() == 1 {
			two, err := s.Difference("mpi://WORLD", "mpi://SELF")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SetMain(two); err != nil {
				t.Error(err)
			}
			if err := s.SetMain(""); !errors.Is(err, mpi.ErrSet) {
				t.Errorf("an empty main set: %v", err)
			}
			s.NumPSets() // the head has heard it
		}
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
		if i, err := s.Info("gompi://main"); err != nil || i.Size != 2 || i.Included == (world.Rank() == 1) {
			t.Errorf("the main set: %+v, %v", i, err)
		}
	})
}

func TestStoreOfASet(t *testing.T) {
	mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
		s := open(t)
		defer s.Close()
		st, err := s.Store("mpi://WORLD")
		if err != nil {
			t.Fatal(err)
		}
		if world.Rank() == 2 {
			if err := st.Put("a", []byte("1")); err != nil {
				t.Error(err)
			}
			if _, err := st.IPut("b", nil).Wait(); err != nil {
				t.Error(err)
			}
		}
		vals, err := st.Get(t.Context(), true, "b", "a")
		if err != nil || fmt.Sprintf("%q", vals) != `["" "1"]` || vals[0] == nil {
			t.Errorf("values %q: %v", vals, err)
		}
		got, r := st.IGet(t.Context(), false, "a", "none")
		if _, err := r.Wait(); err != nil || string((*got)[0]) != "1" || (*got)[1] != nil {
			t.Errorf("values %q: %v", *got, err)
		}
		// All get what the first of them does.
		if err := st.Put("last", []byte{byte(world.Rank())}); err != nil {
			t.Error(err)
		}
		for range 3 {
			vals, err := st.GetAll(t.Context(), true, "last")
			if err != nil {
				t.Fatal(err)
			}
			low, err := mpi.AllreduceOne(world, vals[0][0], mpi.Min)
			if err != nil || low != vals[0][0] {
				t.Errorf("%d and %d in one call: %v", low, vals[0][0], err)
			}
		}
		all, r := st.IGetAll(t.Context(), true, "last", "a")
		if _, err := r.Wait(); err != nil || string((*all)[1]) != "1" {
			t.Errorf("values %q: %v", *all, err)
		}
		if _, err := st.Get(t.Context(), false); !errors.Is(err, mpi.ErrArg) {
			t.Errorf("no keys: %v", err)
		}
		if err := st.Put("", nil); !errors.Is(err, mpi.ErrArg) {
			t.Errorf("no key: %v", err)
		}
		if _, err := s.Store("gompi://empty"); !errors.Is(err, mpi.ErrSet) {
			t.Errorf("store of the empty set: %v", err)
		}
		if err := world.Barrier(); err != nil {
			t.Fatal(err)
		}
	})
}
