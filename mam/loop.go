// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"

	"gompi/mpi"
)

// Loop runs a whole malleable program. It calls Init, register, and then, in turn, body with the
// iteration and Checkpoint, until body returns done, in the same iteration on all ranks. register
// registers the data; on a newcomer it gets the data that has come, and body goes on after the
// iteration of the commit. body may use its module, whose Comm is the communicator of the
// iteration. All processes of world call Loop; at its end only body decides whether it is
// collective. The error is the first one. A process that leaves gets ErrLeaving, which mpi.Main
// takes for an end in order.
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
