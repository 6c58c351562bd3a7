// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"gompi/internal/engine"
	"gompi/internal/wire"
	"gompi/mpi"
	"gompi/mpitest"
)

// A rank that is told of a death by another, before it has heard of it from the
// control plane, fails with ErrProcFailed when Failed knows it, too.
func TestToldOfADeath(t *testing.T) {
	j := mpitest.NewJob(t)
	var ranks sync.WaitGroup
	begun := make(chan *mpi.Process)
	for _, sp := range j.Add(3) {
		p, err := j.Boot(sp)
		if err != nil {
			t.Fatal(err)
		}
		ranks.Go(func() {
			w := p.World()
			win, err := Allocate[int64](w, 1)
			if err == nil {
				err = w.Barrier()
			}
			if err != nil {
				t.Error(err)
			}
			switch w.Rank() {
			case 0:
				err := win.Fence(0)
				if !errors.Is(err, mpi.ErrProcFailed) || !slices.Equal(w.Failed(), []int{1}) {
					t.Errorf("Fence: %v, while %v are known to have failed", err, w.Failed())
				}
			case 2:
				// As if it had heard first.
				c := win.core
				c.epochs.barrier++
				if err := win.signal(opFence, c.parent(), c.upWord(), c.epochs.barrier|givenUp|bereft); err != nil {
					t.Error(err)
				}
			case 1:
				begun <- p
				return
			}
			if err := j.Leave(p); err != nil {
				t.Error(err)
			}
		})
	}
	victim := <-begun
	<-time.After(50 * time.Millisecond) // the others are told before that
	j.Kill(victim)
	ranks.Wait()
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
		if want := "there is no process " + nobody.String(); f.Class != engine.Transport || f.Err.Error() != want {
			t.Errorf("fate: %+v, want %q", f, want)
		}
		if err := win.Free(); err != nil {
			t.Error(err)
		}
	})
}
