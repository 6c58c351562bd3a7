// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"errors"
	"fmt"

	"gompi/mpi"
	"gompi/sessions"
	"gompi/sessions/adapt"
)

// declined: a process cannot do its part in the window. What the others do there together
// fails, Commit says on all that there is no adaptation, and the next one happens.
func declined(ctx context.Context, world *mpi.Comm) error {
	p, _, err := adapt.Init(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Decline(nil); !errors.Is(err, mpi.ErrArg) {
		return fmt.Errorf("declined, without an adaptation: %w", err)
	}
	no := errors.New("no room")
	for _, fails := range []bool{true, false} {
		if world.Rank() == 0 {
			op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Shrink, In: []string{"gompi://main"}, Ranks: []int{2}})
			if err != nil {
				return err
			}
			defer op.Free()
		}
		var a adapt.Adaptation
		for a.Operation == adapt.None {
			if a, err = p.Probe(); err != nil {
				return err
			}
			if err := world.Barrier(); err != nil {
				return err
			}
		}
		w, err := p.Begin(ctx)
		if err == nil && fails {
			err = world.Barrier() // all have the window
		}
		if err != nil {
			return err
		}
		switch {
		case !fails:
		case world.Rank() == 1:
			err = p.Decline(no)
		case w.Future != nil:
			if err = w.Future.Barrier(); !errors.Is(err, mpi.ErrRevoked) || !errors.Is(err, sessions.ErrRolledBack) {
				return fmt.Errorf("in the window of what was declined: %v", err)
			}
			err = nil
		}
		if err != nil {
			return err
		}
		next, err := p.Commit(ctx)
		switch {
		case fails && !errors.Is(err, sessions.ErrRolledBack):
			return fmt.Errorf("committed, though one has declined: %v", err)
		case !fails && err != nil:
			return err
		case !fails:
			return size(next, 2)
		}
	}
	return nil
}
