// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/sessions"
)

// TestSoakOpen: sessions that come and go leave nothing in the process nor in the head.
func TestSoakOpen(t *testing.T) {
	opens := testlab.Rounds(1000, 10_000)
	j := testjob.New(t)
	p, err := j.Boot(j.Add(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer j.Leave(p)
	visit := func(i int) {
		s, err := sessions.Open(p.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.NumPSets(); err != nil {
			t.Fatal(err)
		}
		name, err := s.Union("mpi://WORLD")
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Comm([]string{name, "mpi://SELF"}[i%2])
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			c.Free()
		}
		st, err := s.Store(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Put("key", []byte("value")); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		visit(i)
	}
	p.Core().Process().Control.Lookup("mpi://SELF") // the head has heard all
	before, first := j.Server.Sizes(), testlab.Take()
	for i := range opens {
		visit(i)
	}
	p.Core().Process().Control.Lookup("mpi://SELF")
	for what, n := range j.Server.Sizes() {
		if n > before[what]+1 { // the Lookup
			t.Errorf("%s: %d, %d before %d sessions", what, n, before[what], opens)
		}
	}
	if last := testlab.Take(); last.HeapBytes > first.HeapBytes+1<<20 {
		t.Errorf("%d KiB of heap, %d before %d sessions", last.HeapBytes>>10, first.HeapBytes>>10, opens)
	}
	runtime.KeepAlive(j)
}

// A process that nobody launched has sets, too.
func TestAlone(t *testing.T) {
	outer, err := sessions.Open(context.Background()) // holds the process
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	s, err := sessions.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.PSets()
	if err != nil || fmt.Sprint(list) != "[mpi://WORLD mpi://SELF]" {
		t.Errorf("sets %q: %v", list, err)
	}
	split := func() {
		t.Helper()
		names, err := s.Combine(sessions.Algebra{Do: sessions.Split, In: []string{"gompi://main"}, Sizes: []int{0, 1}, Names: []string{"", "me"}})
		if err != nil || fmt.Sprint(names) != "[gompi://empty app://me]" {
			t.Errorf("parts %q: %v", names, err)
		}
	}
	split()
	for k := range 10 {
		c, err := s.Comm("app://me")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Barrier(); err != nil || c.Size() != 1 {
			t.Errorf("communicator %d: %v", k, err)
		}
		if k%2 == 0 {
			s.Close() // and with it the set, which nobody else holds
			if s, err = sessions.Open(context.Background()); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Group("app://me"); !errors.Is(err, mpi.ErrSet) {
				t.Errorf("a set that nobody holds: %v", err)
			}
			split()
		}
	}
	if _, err := s.Group("app://you"); !errors.Is(err, mpi.ErrSet) {
		t.Errorf("no set: %v", err)
	}
	st, err := s.Store("mpi://SELF")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Put("a", []byte("b")); err != nil {
		t.Error(err)
	}
	if v, err := st.Get(context.Background(), true, "a"); err != nil || string(v[0]) != "b" {
		t.Errorf("value %q: %v", v, err)
	}
	var refused *sessions.RefusedError
	if _, err := sessions.Submit(context.Background(), sessions.Request{Kind: sessions.Grow, In: []string{"gompi://main"}, Add: []int{1}}); !errors.As(err, &refused) {
		t.Errorf("processes for one without a launcher: %v", err)
	}
	w, err := sessions.Watch(context.Background(), "gompi://main", sessions.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if c, err := w.Check(i); c != nil || err != nil {
			t.Fatal(c, err)
		}
	}
	if _, err := w.Check(3); !errors.Is(err, mpi.ErrArg) {
		t.Errorf("iterations that shrink: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
