// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// TestEvents: who listens is told of changes, of what is gone and of who ends, once
// each, and of an operation its latest state.
func TestEvents(t *testing.T) {
	transports(t, func(t *testing.T, transport string) {
		nothingLeft(t)
		mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
			ctx := t.Context()
			w, err := sessions.Watch(ctx, mainSet, sessions.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if err := world.Barrier(); err != nil {
				t.Fatal(err)
			}
			told := make(chan error, 1)
			if world.Rank() == 0 {
				begun := make(chan struct{})
				go func() { told <- listen(ctx, begun) }()
				select { // what is over before somebody listens nobody is told of
				case <-begun:
				case err := <-told:
					t.Fatal(err)
				}
			}
			var c *sessions.Change
			for i := 0; c == nil; i++ {
				if c, err = w.Check(i); err != nil {
					t.Fatal(err)
				}
				if err := world.Barrier(); err != nil && !errors.Is(err, mpi.ErrLeft) {
					t.Fatal(err)
				}
			}
			comm, err := c.Commit(ctx)
			if errors.Is(err, sessions.ErrLeaving) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if comm.Rank() == 1 {
				t.Kill(-1)
			}
			if err := <-told; err != nil {
				t.Error(err)
			}
			if err := listenWrong(ctx); err != nil {
				t.Error(err)
			}
		}, over(transport)...)
	})
}

// listen asks for a removal and for the end of a set, and waits until it has heard of
// both, and of the death of a rank. It closes begun when it has heard of the removal.
func listen(ctx context.Context, begun chan struct{}) error {
	s, err := sessions.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	parts, err := s.Split("mpi://WORLD", []int{1, 2})
	if err != nil {
		return err
	}
	op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Shrink, In: []string{mainSet}, Sub: 1})
	if err != nil {
		return err
	}
	defer op.Free()
	last, died, gone := sessions.State(0), false, false
	for e, err := range sessions.Events(ctx, mainSet, parts[0]) {
		if err != nil {
			return err
		}
		switch {
		case e.Missed != 0:
			return errors.New("events are missing")
		case e.What == sessions.Changing && e.Set == mainSet && e.Kind == sessions.Shrink && e.Outcome.State >= last && e.Outcome.Err == nil:
			if last == 0 {
				if err := s.Close(); err != nil {
					return err
				}
				close(begun)
			}
			last = e.Outcome.State
		case e.What == sessions.Died && e.Set == mainSet && e.Rank == 1 && !died:
			died = true
		case e.What == sessions.Gone && e.Set == parts[0] && !gone:
			gone = true
		default:
			return errors.New("unexpected: " + e.What.String() + " " + e.Set + " " + e.Outcome.State.String())
		}
		if last == sessions.Done && died && gone {
			return nil
		}
	}
	return errors.New("an end without a reason")
}

// listenWrong listens to what cannot be, and to nothing more.
func listenWrong(ctx context.Context) error {
	for _, err := range sessions.Events(ctx, mainSet, "app://none") {
		if !errors.Is(err, sessions.ErrSet) {
			return errors.New("of no set")
		}
	}
	for range sessions.Events(ctx) {
		return errors.New("an event of nothing")
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	n := 0
	for _, err := range sessions.Events(ctx, mainSet) {
		if n++; !errors.Is(err, mpi.ErrCancelled) {
			return err
		}
	}
	if n != 1 {
		return errors.New("an end without an error")
	}
	return nil
}

// TestEventsOfMain: a change of the main set is told to who begins to listen when it
// is committed and its leavers are still there.
func TestEventsOfMain(t *testing.T) {
	nothingLeft(t)
	heard := make(chan struct{})
	mpitest.Run(t, 2, func(t *mpitest.T, world *mpi.Comm) {
		ctx := t.Context()
		w, err := sessions.Watch(ctx, mainSet, sessions.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if world.Rank() == 0 {
			op, r, err := sessions.ISubmit(ctx, sessions.Request{Kind: sessions.Shrink, In: []string{mainSet}, Sub: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer op.Free()
			if _, err := r.Wait(); err != nil || op.State() < sessions.Granted {
				t.Errorf("%v: %v", op.State(), err)
			}
		}
		var c *sessions.Change
		for c == nil {
			if c, err = w.Check(sessions.Now); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Commit(ctx); errors.Is(err, sessions.ErrLeaving) {
			<-heard
			return
		} else if err != nil {
			t.Fatal(err)
		}
		defer close(heard)
		for e, err := range sessions.Events(ctx, mainSet) {
			if err != nil || e.What != sessions.Changing || e.Kind != sessions.Shrink || e.Set != mainSet {
				t.Errorf("%+v, %v", e, err)
			}
			break
		}
	})
}

// TestISubmit: the request ends with the grant, or says why there was none.
func TestISubmit(t *testing.T) {
	nothingLeft(t)
	mpitest.Run(t, 1, func(t *mpitest.T, world *mpi.Comm) {
		ctx := t.Context()
		if c, err := sessions.Joined(ctx); err != nil || c != nil {
			if err == nil {
				_, err = c.Commit(ctx)
			}
			if !errors.Is(err, sessions.ErrRolledBack) {
				t.Error(err)
			}
			return
		}
		w, err := sessions.Watch(ctx, mainSet, sessions.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(n int) (*sessions.Operation, mpi.Request) {
			t.Helper()
			op, r, err := sessions.ISubmit(ctx, sessions.Request{Kind: sessions.Grow, In: []string{mainSet}, Add: []int{n}})
			if err != nil {
				t.Fatal(err)
			}
			return op, r
		}
		first, r := ask(1)
		defer first.Free()
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
		second, waits := ask(2)
		defer second.Free()
		if done, _, err := waits.Test(); done || err != nil {
			t.Errorf("an operation behind another is granted: %v", err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var refused *sessions.RefusedError
		if _, err := waits.Wait(); !errors.Is(err, sessions.ErrRefused) && !errors.As(err, &refused) {
			t.Errorf("of one that is refused: %v", err)
		}
		if _, _, err := sessions.ISubmit(ctx, sessions.Request{}); !errors.As(err, &refused) {
			t.Errorf("malformed: %v", err)
		}
	})
}
