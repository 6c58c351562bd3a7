// SPDX-License-Identifier: Apache-2.0

package dyn_test

import (
	"context"
	"errors"
	"fmt"

	"gompi/mpi"
	"gompi/sessions/dyn"
)

// declined: a process cannot do its part of a change. Integrate says on all that it does not
// happen, and the next one does.
func declined(ctx context.Context, world *mpi.Comm) error {
	d, joined, err := openMain(ctx)
	if err != nil || joined {
		return err
	}
	defer d.Close()
	for _, fails := range []bool{true, false} {
		var delta string
		if world.Rank() == 0 {
			r, err := d.Request(ctx, dyn.Add, mainSet, 1, "")
			if err != nil {
				return err
			}
			defer r.Free()
			for delta == "" {
				c, err := d.Receive(mainSet)
				if err != nil {
					return err
				}
				delta = c.Delta
			}
		}
		if delta, err = told(world, delta); err != nil {
			return err
		}
		if fails && world.Rank() == 1 {
			if err := d.Decline(ctx, delta, errors.New("no room")); err != nil {
				return err
			}
		}
		if _, err := d.Integrate(ctx, delta, false, nil, nil); errors.Is(err, mpi.ErrRolledBack) != fails || !fails && err != nil {
			return fmt.Errorf("Integrate: %v", err)
		}
		if err := world.Barrier(); err != nil {
			return err
		}
	}
	return nil
}
