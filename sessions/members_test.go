// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/sessions"
)

// memberTest is a job of n processes that are told apart by rank.
func memberTest(t *testing.T, n int) (*testjob.Job, []*mpi.Process) {
	j := testjob.New(t)
	var procs []*mpi.Process
	for _, sp := range j.Add(n) {
		p, err := j.Boot(sp)
		if err != nil {
			t.Fatal(err)
		}
		procs = append(procs, p)
	}
	return j, procs
}

func sessionOf(t *testing.T, ctx context.Context) *sessions.Session {
	t.Helper()
	s, err := sessions.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Who looks at a set is told which members have died or left; primary is the first of
// those that live.
func TestPrimary(t *testing.T) {
	j, procs := memberTest(t, 4)
	last := sessionOf(t, procs[3].Context())
	third := sessionOf(t, procs[2].Context())
	is := func(s *sessions.Session, want sessions.Info) {
		t.Helper()
		var got sessions.Info
		for range 1_000_000 { // the news may be on its way
			var err error
			if got, err = s.Info("mpi://WORLD"); err != nil {
				t.Fatal(err)
			}
			if reflect.DeepEqual(got, want) {
				return
			}
			runtime.Gosched()
		}
		t.Fatalf("%+v, want %+v", got, want)
	}
	all := sessions.Info{Size: 4, Included: true, Hosts: 1}
	is(third, all)
	if err := j.Leave(procs[1]); err != nil {
		t.Fatal(err)
	}
	all.Left = []int{1}
	is(third, all)
	j.Kill(procs[0])
	all.Died = []int{0}
	is(last, all)
	all.Primary = true
	is(third, all)
	if h, _ := third.Info("mpi://WORLD"); h.Hints().Get("mpi_primary") != "True" {
		t.Errorf("hints %v", h.Hints())
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	if err := j.Leave(procs[2]); err != nil {
		t.Fatal(err)
	}
	is(last, sessions.Info{Size: 4, Included: true, Primary: true, Hosts: 1, Died: []int{0}, Left: []int{1, 2}})
	if err := last.Close(); err != nil {
		t.Error(err)
	}
	if err := j.Leave(procs[3]); err != nil {
		t.Error(err)
	}
}

// Close waits for members, until the context of Open ends, or they do.
func TestCloseGivesUp(t *testing.T) {
	for _, how := range []string{"context", "death"} {
		t.Run(how, func(t *testing.T) {
			j, procs := memberTest(t, 2)
			ctx, cancel := context.WithCancel(procs[0].Context())
			defer cancel()
			s := sessionOf(t, ctx)
			c, err := s.Comm("mpi://WORLD")
			if err != nil {
				t.Fatal(err)
			}
			r := mpi.Irecv(c, []int{0}, 1, 0)
			closed := make(chan error)
			go func() { closed <- s.Close() }()
			for _, err := s.Group("mpi://WORLD"); err == nil; _, err = s.Group("mpi://WORLD") {
				runtime.Gosched() // it has not begun
			}
			want := error(nil)
			if how == "context" {
				cancel()
				want = mpi.ErrCancelled
			} else {
				j.Kill(procs[1])
			}
			if err := <-closed; !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			if how == "context" {
				j.Kill(procs[1])
			}
			if _, err := r.Wait(); !errors.Is(err, mpi.ErrProcFailed) {
				t.Errorf("a receive of a closed session: %v", err)
			}
			if err := j.Leave(procs[0]); err != nil {
				t.Error(err)
			}
		})
	}
}

// Names have up to 1,023 bytes, with their scheme.
func TestLongNames(t *testing.T) {
	j, procs := memberTest(t, 1)
	s := sessionOf(t, procs[0].Context())
	const most = 1023
	for n, class := range map[int]error{most: nil, most + 1: mpi.ErrRefused, 5000: mpi.ErrArg} {
		name := strings.Repeat("n", n-len("app://"))
		names, err := s.Combine(sessions.Algebra{Do: sessions.Union, In: []string{"mpi://WORLD"}, Names: []string{name}})
		if !errors.Is(err, class) {
			t.Errorf("a name of %d bytes: %v", n, err)
		}
		_, err = s.Group("app://" + name)
		if class == nil && (err != nil || names[0] != "app://"+name) || class != nil && !errors.Is(err, mpi.ErrSet) {
			t.Errorf("a set with a name of %d bytes: %v", n, err)
		}
		if _, err := sessions.Submit(procs[0].Context(), sessions.Request{Kind: sessions.Grow, In: []string{"gompi://main"}, Add: []int{1}, Names: []string{name}}); err == nil {
			t.Error(fmt.Sprintf("a name of %d bytes that is taken, or too long", n))
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := j.Leave(procs[0]); err != nil {
		t.Error(err)
	}
}
