// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"

	"gompi/mpi"
)

// Loop is a whole program that is malleable: it calls Init, register, and then body and
// Checkpoint in turn, with the iteration, until body says done, which it does in the
// same iteration on all ranks. register registers the data; on a newcomer that hands it
// over, and body goes on behind the iteration of the commit. What body registers or
// changes of sizes it does by its module, whose Comm is the communicator of the
// iteration. The error is the first one; ErrLeaving of a process that leaves, which
// mpi.Main takes for its end in order. Collective over world at its end only in what body
// does.
func Loop(ctx context.Context, world *mpi.Comm, config Config, register func(*Module) error, body func(m *Module, iteration int) (done bool, err error)) (err error) {
	m, _, err := Init(ctx, world, config, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Finalize()) }()
	if err := register(m); err != nil {
		return err
	}
	for {
		done, err := body(m, m.Iteration())
		if done || err != nil {
			return err
		}
		if _, err := m.Checkpoint(Check); err != nil {
			return err
		}
	}
}
