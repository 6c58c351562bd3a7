// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"gompi/internal/wire"
	"gompi/mpitest"
	"gompi/transport"
	"gompi/transport/faulty"
)

// awkward wraps a transport so that it delays, refuses and tells little at a
// time.
var awkward = mpitest.Wrap(func(t transport.Transport, self wire.ProcID) (transport.Transport, error) {
	return faulty.New(t, faulty.Plan{Seed: uint64(self.Serial), Delay: 0.1, DelayPolls: 20, Full: 0.1, MaxEvents: 3})
})
