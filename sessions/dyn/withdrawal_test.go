// SPDX-License-Identifier: Apache-2.0

package dyn_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/mpi"
	"gompi/sessions/dyn"
)

// givenUp: a Request whose context ends asks for nothing: neither one that waits for
// another change, nor one that waits for what was integrated without waiting.
func givenUp(ctx context.Context, world *mpi.Comm) error {
	d, joined, err := openMain(ctx)
	if err != nil || joined {
		return err
	}
	defer d.Close()
	vain := func(what string) error {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if _, err := d.Request(short, dyn.Add, mainSet, 1, ""); !errors.Is(err, mpi.ErrCancelled) {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	for round := range 2 {
		var delta string
		if world.Rank() == 0 {
			r, err := d.Request(ctx, dyn.Add, mainSet, 1, "")
			if err != nil {
				return err
			}
			defer r.Free()
			var c dyn.Change
			for c.Type == dyn.None {
				if c, err = d.Receive(mainSet); err != nil {
					return err
				}
			}
			if delta = c.Delta; delta != r.Delta {
				return fmt.Errorf("round %d: the change is of %s, not of %s", round, delta, r.Delta)
			}
			if err := vain("behind another change"); err != nil {
				return err
			}
			if _, err := d.Integrate(ctx, delta, false, nil, mpi.NewInfo("wait", "false")); err != nil {
				return err
			}
			if err := vain("behind what is integrated"); err != nil {
				return err
			}
		}
		if delta, err = told(world, delta); err != nil {
			return err
		}
		if world.Rank() > 0 {
			if _, err := d.Integrate(ctx, delta, false, nil, nil); err != nil {
				return err
			}
		}
	}
	return world.Barrier()
}
