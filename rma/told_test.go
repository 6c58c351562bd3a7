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

// A rank that finds in a word that another has given up a revoked window learns of the
// revocation, whichever of the two comes first.
func TestToldOfRevoke(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		for revoker := range w.Size() {
			win, err := Allocate[int64](w, 1)
			if err != nil {
				t.Fatal(err)
			}
			fence := func() {
				if err := win.Fence(0); !errors.Is(err, mpi.ErrRevoked) {
					t.Errorf("rank %d has revoked: %v", revoker, err)
				}
			}
			if w.Rank() == revoker {
				win.Revoke()
				fence()
			}
			if err := w.Barrier(); err != nil {
				t.Fatal(err)
			}
			if w.Rank() != revoker {
				fence()
			}
			if err := win.Free(); !errors.Is(err, mpi.ErrRevoked) {
				t.Errorf("rank %d has revoked: Free: %v", revoker, err)
			}
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
