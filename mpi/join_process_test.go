// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gompi/internal/core"
	"gompi/mpi"
	"gompi/mpitest"
)

// endingRank returns what says how its process is to end.
func endingRank(w *mpi.Comm, args []string) error {
	end := map[string]core.Ending{"left": core.EndLeft, "discarded": core.EndDiscarded}[args[0]]
	return &mpi.Error{Class: mpi.ErrComm, Op: "Commit", Peer: mpi.ProcNull, Err: fmt.Errorf("as a program wraps it: %w", end)}
}

// Who leaves by a change ends with status 0, and without a word.
func TestLeaverEndsInOrder(t *testing.T) {
	r := osRanks(t, 2, []string{"ending", "left"})
	if out := strings.TrimSpace(r.Stdout + r.Stderr); r.Status != 0 || out != "" {
		t.Errorf("status %d:\n%s", r.Status, out)
	}
}

// againRank is the rest of a program whose Main has returned: it takes part in the job
// again, with the others, though not at the same time.
func againRank(args []string) {
	ctx := context.Background()
	for i := range 3 {
		p, err := mpi.Acquire(ctx)
		if err != nil {
			fmt.Println("acquire:", err)
			return
		}
		if err := p.World().Barrier(); !errors.Is(err, mpi.ErrComm) {
			fmt.Println("a barrier of the former world:", err)
		}
		c, err := mpi.CommFromGroup(p.World().Group(), fmt.Sprint("again ", i))
		if err != nil {
			fmt.Println("comm:", err)
			return
		}
		if sum, err := mpi.AllreduceOne(c, 1, mpi.Sum); err != nil || sum != c.Size() {
			fmt.Println("sum", sum, err)
		}
		if i == 2 && c.Rank() == 0 { // nobody has asked for it when rank 0 has ended
			if err := mpi.Send(c, make([]byte, 3000), c.Size()-1, 0); err != nil {
				fmt.Println("send:", err)
			}
		}
		if i == 2 && c.Rank() == c.Size()-1 {
			if args[0] == "late" {
				<-time.After(50 * time.Millisecond)
			}
			if _, err := mpi.Recv(c, make([]byte, 3000), 0, 0); err != nil {
				fmt.Println("recv:", err)
			}
			if _, err := mpi.Recv(c, make([]byte, 1), 0, 0); !errors.Is(err, mpi.ErrLeft) {
				fmt.Println("a receive from who has ended:", err)
			}
		}
		if err := c.Free(); err != nil {
			fmt.Println("free:", err)
		}
		if err := p.Release(ctx); err != nil {
			fmt.Println("release:", err)
		}
	}
}

// A program whose Main has returned may use the job again, or end at any moment: what
// it has sent arrives, and the others learn that it has left in order.
func TestAfterMain(t *testing.T) {
	for _, transport := range []string{"shm", "tcp"} {
		for _, when := range []string{"soon", "late"} {
			r := osRanks(t, 3, []string{"again", when}, mpitest.Env("GOMPI_TRANSPORT="+transport))
			if out := r.Stdout + r.Stderr; r.Status != 0 || out != "" {
				t.Errorf("%s: status %d:\n%s", transport, r.Status, out)
			}
		}
	}
}

// finalizedRank calls Init and Finalize, and goes on with what sessions use.
func finalizedRank() {
	ctx := context.Background()
	p, err := mpi.Init()
	if err == nil {
		err = p.World().Barrier()
	}
	if err != nil {
		fmt.Println("before Finalize:", err)
		return
	}
	if err := p.Finalize(); err != nil {
		fmt.Println("Finalize:", err)
	}
	if err := p.Finalize(); !errors.Is(err, mpi.ErrFinalized) {
		fmt.Println("Finalize again:", err)
	}
	if _, err := mpi.Init(); !errors.Is(err, mpi.ErrFinalized) {
		fmt.Println("Init again:", err)
	}
	if err := p.World().Barrier(); err == nil {
		fmt.Println("the world of the finalized can be used")
	}
	for i := range 2 {
		q, err := mpi.Acquire(ctx)
		if err != nil {
			fmt.Println("acquire:", err)
			return
		}
		c, err := mpi.CommFromGroup(q.World().Group(), fmt.Sprint("finalized ", i))
		if err != nil {
			fmt.Println("comm:", err)
			return
		}
		if sum, err := mpi.AllreduceOne(c, 1, mpi.Sum); err != nil || sum != c.Size() {
			fmt.Println("sum", sum, err)
		}
		if err := errors.Join(c.Free(), q.Release(ctx)); err != nil {
			fmt.Println("release:", err)
		}
	}
}

// Sessions may be opened after Finalize, of a process that was launched as of one alone.
func TestAfterFinalize(t *testing.T) {
	r := osRanks(t, 3, []string{"finalized"})
	if out := r.Stdout + r.Stderr; r.Status != 0 || out != "" {
		t.Errorf("status %d:\n%s", r.Status, out)
	}
}
