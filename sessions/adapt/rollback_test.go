// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/internal/test/scenes"
	"gompi/mpi"
	"gompi/sessions"
	"gompi/sessions/adapt"
)

// undone: a process that joins dies in the window. What the window has made fails,
// Commit says that there is no adaptation, and the old world goes on, to the next one.
func undone(ctx context.Context, world *mpi.Comm) error {
	p, status, err := adapt.Init(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	done := 0
	if status == adapt.Joining {
		w, err := p.Begin(ctx)
		if err != nil {
			return err
		}
		if done, err = mpi.BcastOne(w.Future, 0, 0); err != nil {
			return err
		}
		if done == 0 {
			scenes.Die(ctx)
		}
		world, err = p.Commit(ctx)
		return errors.Join(err, size(world, 3))
	}
	for done < 2 {
		if world.Rank() == 0 {
			op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Replace, In: []string{"gompi://main"}, Add: []int{1}, Sub: 1})
			if err != nil {
				return err
			}
			defer op.Free()
		}
		var a adapt.Adaptation
		for a.Operation == adapt.None {
			// Who was late finds nothing of what was rolled back.
			if done, err = mpi.BcastOne(world, done, 0); err != nil {
				return fmt.Errorf("the old world, after %d adaptations: %w", done, err)
			}
			if a, err = p.Probe(); err != nil {
				return err
			}
		}
		if leaves := world.Rank() == 2; a.Operation != adapt.Migration || (a.Status == adapt.Leaving) != leaves {
			return fmt.Errorf("rank %d probes %+v", world.Rank(), a)
		}
		if err := window(ctx, p, done); done == 1 && err != nil || done == 0 && !errors.Is(err, mpi.ErrRolledBack) && !errors.Is(err, mpi.ErrProcFailed) {
			return fmt.Errorf("adaptation %d, its window: %w", done, err)
		}
		next, err := p.Commit(ctx)
		switch {
		case done == 0 && !errors.Is(err, sessions.ErrRolledBack):
			return fmt.Errorf("committed, though one has died: %w", err)
		case done == 0:
			if _, err := p.Begin(ctx); !errors.Is(err, mpi.ErrArg) {
				return fmt.Errorf("a window without an adaptation: %w", err)
			}
		case err != nil:
			return err
		default:
			world = next
		}
		done++
	}
	return size(world, 3)
}

// late: an adaptation is rolled back before anybody begins its window: its sets are gone
// by then.
func late(ctx context.Context, world *mpi.Comm) error {
	p, _, err := adapt.Init(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	var op *sessions.Operation
	var a adapt.Adaptation
	for found := 0; found == 0; {
		if world.Rank() == 0 && (op == nil || op.State() == sessions.RolledBack) { // before anybody has looked
			r := sessions.Request{Kind: sessions.Shrink, In: []string{"gompi://main"}, Sub: 1, Deadlines: sessions.Deadlines{Whole: 50 * time.Millisecond}}
			if op, err = sessions.Submit(ctx, r); err != nil {
				return err
			}
			defer op.Free()
		}
		if a, err = p.Probe(); err != nil {
			return err
		}
		if a.Operation != adapt.None {
			found = 1
		}
		// Who looks after the roll-back finds nothing.
		if found, err = mpi.AllreduceOne(world, found, mpi.Max); err != nil {
			return err
		}
	}
	if world.Rank() == 0 {
		if x, err := op.Wait(ctx); err != nil || x.State != sessions.RolledBack {
			return fmt.Errorf("what nobody commits is %v: %w", x.State, err)
		}
	}
	if err := world.Barrier(); err != nil {
		return err
	}
	if a.Operation == adapt.None {
		return size(world, 3)
	}
	leaves := world.Rank() == 2
	if _, err := p.Begin(ctx); !leaves && !errors.Is(err, mpi.ErrRolledBack) || leaves && err != nil {
		return fmt.Errorf("rank %d, a window of what was rolled back: %w", world.Rank(), err)
	}
	if _, err := p.Commit(ctx); !errors.Is(err, mpi.ErrRolledBack) {
		return fmt.Errorf("rank %d, committed what was rolled back: %w", world.Rank(), err)
	}
	return size(world, 3)
}

// window is what the processes of the old world do in it.
func window(ctx context.Context, p *adapt.Process, done int) error {
	w, err := p.Begin(ctx)
	if err != nil {
		return err
	}
	if w.Future != nil {
		if _, err := mpi.BcastOne(w.Future, done, 0); err != nil {
			return err
		}
	}
	if done == 0 { // with one who dies
		return w.Inter.Barrier()
	}
	return nil
}

func size(world *mpi.Comm, n int) error {
	if sum, err := mpi.AllreduceOne(world, 1, mpi.Sum); err != nil || sum != n {
		return fmt.Errorf("%d processes, %d wanted: %w", sum, n, err)
	}
	return nil
}
