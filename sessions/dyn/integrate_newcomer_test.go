// SPDX-License-Identifier: Apache-2.0

package dyn_test

import (
	"context"
	"errors"
	"fmt"

	"gompi/mpi"
	"gompi/sessions/dyn"
)

// early: who knows the delta from who has asked for the change integrates it before it
// can be received, and waits for the newcomers; what is taken back before that is so for
// all.
func early(ctx context.Context, world *mpi.Comm) error {
	d, err := dyn.Open(ctx, mainSet)
	if err != nil {
		return err
	}
	defer d.Close()
	c, err := d.Receive("mpi://self")
	if err != nil {
		return err
	}
	if c.Type != dyn.None {
		_, err := d.Integrate(ctx, c.Delta, false, nil, nil)
		return err
	}
	for _, back := range []bool{false, true} {
		var r *dyn.Requested
		if world.Rank() == 0 {
			if r, err = d.Request(ctx, dyn.Add, mainSet, 1, ""); err != nil {
				return err
			}
			defer r.Free()
			c.Delta = r.Delta
		}
		if c.Delta, err = told(world, c.Delta); err != nil {
			return err
		}
		if !back {
			if terminate, err := d.Integrate(ctx, c.Delta, false, nil, nil); err != nil || terminate {
				return fmt.Errorf("terminate %v: %w", terminate, err)
			}
			continue
		}
		if world.Rank() > 0 {
			if _, err := d.Integrate(ctx, c.Delta, false, nil, nil); !errors.Is(err, mpi.ErrRolledBack) && err != nil {
				return fmt.Errorf("integrated what is taken back: %w", err)
			}
			continue
		}
		if err := r.Operation().Cancel(ctx); errors.Is(err, mpi.ErrTooLate) { // the others were quicker
			_, err = d.Integrate(ctx, c.Delta, false, nil, nil)
			if err != nil {
				return err
			}
		} else if err != nil || r.Status() != dyn.Invalid {
			return fmt.Errorf("taken back, it is %v: %w", r.Status(), err)
		}
	}
	return world.Barrier()
}
