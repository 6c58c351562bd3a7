// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// An operation on mpi://self means those who came with the caller; everywhere else the
// name is mpi://SELF. A Replace to the present size is done at once.
func TestSelfOfAnOperation(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			x, err := sessions.Joined(ctx)
			if err != nil {
				t.Fatal(err)
			}
			// until returns what a Watcher is handed.
			until := func(w *sessions.Watcher, err error) (c *sessions.Change) {
				for err == nil && c == nil {
					c, err = w.Check(sessions.Now)
				}
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			if x != nil && world.Size() == 2 { // the first newcomers
				if _, err := x.Commit(ctx); err != nil {
					t.Fatal(err)
				}
				w, err := sessions.Watch(ctx, "mpi://WORLD", sessions.Options{})
				if world.Rank() == 0 && err == nil {
					var op *sessions.Operation
					if op, err = sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: []string{"mpi://self"}, Add: []int{1}}); err == nil {
						defer op.Free()
					}
				}
				comm, err := until(w, err).Commit(ctx)
				if err != nil || comm.Size() != 3 || comm.Rank() != world.Rank() {
					t.Errorf("%v, %v of those who came together and one more", comm, err)
				}
				return
			}
			if x != nil {
				if comm, err := x.Commit(ctx); err != nil || comm.Rank() != 2 {
					t.Errorf("%v, %v for who came last", comm, err)
				}
				return
			}
			s := open(t)
			defer s.Close()
			for _, name := range []string{"mpi://self", "mpi://SELF"} {
				if c, err := s.Comm(name); err != nil || c.Size() != 1 {
					t.Errorf("%s: %v, %v", name, c, err)
				}
			}
			w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := world.Barrier(); err != nil {
				t.Fatal(err)
			}
			if world.Rank() == 0 {
				_, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: []string{"mpi://self"}, Add: []int{1}})
				if !errors.Is(err, sessions.ErrRefused) || !errors.Is(err, sessions.ErrSet) {
					t.Errorf("who came by no change: %v", err)
				}
				_, err = sessions.Submit(ctx, sessions.Request{Kind: sessions.Shrink, In: []string{"mpi://self"}, Ranks: []int{0}})
				if !errors.Is(err, mpi.ErrArg) {
					t.Errorf("ranks of what is not known: %v", err)
				}
				op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Replace, In: []string{"gompi://main"}, Size: 2, Names: []string{"", "", "same"}})
				if err != nil {
					t.Fatal(err)
				}
				out, err := op.Wait(ctx)
				if err != nil || out.State != sessions.Done || len(out.Outputs) != 1 || out.Outputs[0].Result != "app://same" || len(out.Outputs[0].List()) != 1 {
					t.Errorf("to the same size: %+v, %v", out, err)
				}
				if main, err := s.Main(); err != nil || sizeOf(s, main) != 2 || sizeOf(s, "app://same") != 2 {
					t.Errorf("%s is the main set, %v", main, err)
				}
				op.Free()
				if op, err = sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: []string{"gompi://main"}, Add: []int{2}}); err != nil {
					t.Fatal(err)
				}
				defer op.Free()
			}
			if comm, err := until(w, nil).Commit(ctx); err != nil || comm.Size() != 4 {
				t.Errorf("%v, %v after the grow", comm, err)
			}
		}, over(transport)...)
	})
}

func sizeOf(s *sessions.Session, name string) int {
	in, err := s.Info(name)
	if err != nil {
		return -1
	}
	return in.Size
}
