// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"errors"
	"testing"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/mpi"
	"gompi/mpitest"
)

// A rank that is told of a death of which the control plane knows nothing does
// not wait for it: the call was given up. (Of a real one it hears first: see
// TestLearnFailure of the engine.)
func TestToldOfNoDeath(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		win, err := Allocate[int64](w, 1)
		if err != nil {
			t.Fatal(err)
		}
		if w.Rank() == 0 {
			if err := win.Fence(0); !errors.Is(err, mpi.ErrAborted) || len(w.Failed()) > 0 {
				t.Errorf("Fence: %v, while %v are known to have failed", err, w.Failed())
			}
			return
		}
		c := win.core
		c.epochs.barrier++
		if err := win.signal(opFence, c.parent(), c.upWord(), gaveUp(c.epochs.barrier, 1, bereft)); err != nil {
			t.Error(err)
		}
	})
}

// A rank that asks for a process that never was is told so, and stays in the
// job.
func TestFateOfNobody(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		win, err := Allocate[int64](w, 1)
		if err != nil {
			t.Fatal(err)
		}
		e := win.core.engine
		nobody := wire.ProcID{Job: e.Self().Job, Serial: 4711}
		f := e.Fate(nobody)
		if want := "there is no process " + nobody.String(); f.Class != fault.Unreachable || f.Err.Error() != want {
			t.Errorf("fate: %+v, want %q", f, want)
		}
		if err := win.Free(); err != nil {
			t.Error(err)
		}
	})
}
