// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"context"
	"errors"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

// A Free whose context ends while another goroutine is inside an access leaves
// the window as it was.
func TestFreeGivesUp(t *testing.T) {
	mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		other, x := 1-w.Rank(), []int64{5}
		win, err := Allocate[int64](w, 2)
		must(err)
		must(win.Fence(0))
		must(Put(win, x, other, 0))
		access := win.core.targets[other].Load()
		access.open.Add(oneAccess)
		over, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- win.WithContext(over).Free() }()
		cancel()
		if err := <-ended; !errors.Is(err, mpi.ErrCancelled) {
			t.Fatalf("error is %v, want ErrCancelled", err)
		}
		access.leave()
		must(Put(win, x, other, 1))
		must(win.Fence(0))
		if m := Memory[int64](win); m[0] != 5 || m[1] != 5 {
			t.Fatalf("memory is %v", m)
		}
		must(win.Free())
	})
}
