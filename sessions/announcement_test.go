// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// A layer moves data to newcomers while the loop goes on; nobody is handed the change
// before all have released it, and then it is the one that the layer has seen.
func TestHold(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			x, err := sessions.Joined(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if x != nil {
				if err := x.Ready(); err != nil {
					t.Error(err)
				}
				inter, err := x.Inter(ctx)
				if err != nil {
					t.Fatal(err)
				}
				word := []int{0}
				if _, err := mpi.Recv(inter, word, 0, 1); err != nil || word[0] != 7 {
					t.Errorf("%v, %v from the member", word, err)
				}
				comm, err := x.Commit(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := comm.Barrier(); err != nil {
					t.Error(err)
				}
				return
			}
			w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{Hold: true, Prepare: true})
			if err != nil {
				t.Fatal(err)
			}
			type seen struct {
				c   *sessions.Change
				err error
			}
			layer := make(chan seen, 1)
			asked := make(chan struct{})
			go func() {
				c, err := w.Coming(ctx)
				if err == nil {
					<-asked // the loop goes on in the meantime
					var inter *mpi.Comm
					if inter, err = c.Inter(ctx); err == nil && world.Rank() == 0 {
						err = mpi.Send(inter, []int{7}, 0, 1)
						err = errors.Join(err, mpi.Send(inter, []int{7}, 1, 1))
					}
					err = errors.Join(err, w.Release(c))
				}
				layer <- seen{c, err}
			}()
			comm := world
			for i := 0; comm == world; i++ {
				c, err := w.Check(i)
				if err != nil {
					t.Fatal(err)
				}
				if c != nil {
					if i < 20 {
						t.Error("handed a change that is held")
					}
					if s := <-layer; s.c != c || s.err != nil {
						t.Errorf("handed %p, the layer has seen %p, %v", c, s.c, s.err)
					}
					if comm, err = c.Commit(ctx); err != nil {
						t.Fatal(err)
					}
					continue
				}
				switch {
				case i == 3 && comm.Rank() == 0:
					if _, err := t.Grow(2); err != nil {
						t.Fatal(err)
					}
				case i == 20:
					close(asked)
				}
				if err := ring(comm, []int64{int64(i), 0}); err != nil {
					t.Fatal(err)
				}
			}
			if err := comm.Barrier(); err != nil {
				t.Error(err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if _, err := w.Coming(ctx); !errors.Is(err, sessions.ErrSession) {
				t.Errorf("a change of a watch that was closed: %v", err)
			}
		}, over(transport)...)
	})
}

// A layer that waits for the next change keeps nobody from leaving by one, nor from
// ending.
func TestComingEnds(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{Hold: true})
			if err != nil {
				t.Fatal(err)
			}
			layer := make(chan error)
			go func() {
				for {
					c, err := w.Coming(ctx)
					if err != nil {
						layer <- err
						return
					}
					if err := w.Release(c); err != nil {
						t.Error(err)
					}
				}
			}()
			if world.Rank() == 0 {
				if _, err := t.Shrink(2); err != nil {
					t.Fatal(err)
				}
			}
			var c *sessions.Change
			for i := 0; c == nil; i++ {
				if c, err = w.Check(i); err != nil {
					t.Fatal(err)
				}
				if err := world.Barrier(); err != nil && c == nil {
					t.Fatal(err)
				}
			}
			if _, err = c.Commit(ctx); world.Rank() == 2 != errors.Is(err, sessions.ErrLeaving) {
				t.Error(err)
			}
			if world.Rank() != 2 {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := <-layer; !errors.Is(err, sessions.ErrSession) {
				t.Errorf("a layer ends with %v", err)
			}
		}, over(transport)...)
	})
}
