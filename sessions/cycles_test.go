// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// cycles is what rank 0 of a job does whose size goes up and down.
type cycles struct {
	ctx         context.Context
	by, of, did int
	op          *sessions.Operation
}

// turn asks for the next change when the last one is done; true: these were all.
func (y *cycles) turn() (bool, error) {
	if y.op != nil {
		if !y.op.State().Over() {
			return false, nil
		}
		x, err := y.op.Wait(y.ctx)
		if err == nil && x.State != sessions.Done {
			err = fmt.Errorf("change %d is %v: %w", y.did, x.State, x.Err)
		}
		if err != nil {
			return false, err
		}
		y.op.Free()
		y.op = nil
		if y.did++; y.did == y.of/5*2 || y.did == 2*y.of {
			holds()
		}
		if y.did == 2*y.of {
			return true, nil
		}
	}
	r := sessions.Request{Kind: sessions.Grow, In: []string{"gompi://main"}, Add: []int{y.by}}
	if y.did%2 == 1 {
		r = sessions.Request{Kind: sessions.Shrink, In: []string{"gompi://main"}, Sub: y.by}
	}
	var err error
	y.op, err = sessions.Submit(y.ctx, r)
	return false, err
}

// holds prints what this process and gompirun have.
func holds() {
	l := testlab.Take()
	its, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", os.Getppid()))
	fmt.Println("holds", l.Goroutines, l.Files(), l.Maps, l.HeapBytes>>10, len(its), testlab.StatusOf(os.Getppid(), "VmRSS"))
}

func cyclesProgram() {
	mpi.Main(func(ctx context.Context, comm *mpi.Comm) error {
		y := cycles{ctx: ctx}
		y.by, _ = strconv.Atoi(os.Args[3])
		y.of, _ = strconv.Atoi(os.Args[4])
		comm, i, err := enter(ctx, comm)
		if err != nil {
			return err
		}
		w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
		if err != nil {
			return err
		}
		for ; ; i++ {
			c, err := w.Check(i)
			if err != nil {
				return err
			}
			if c != nil {
				old := comm
				if comm, err = c.Commit(ctx); err != nil {
					return err // ErrLeaving
				}
				old.Free()
				continue
			}
			end := int64(0)
			if comm.Rank() == 0 {
				over, err := y.turn()
				if err != nil {
					return err
				}
				if over {
					end = 1
				}
			}
			if end, err = mpi.AllreduceOne(comm, end, mpi.Max); err != nil {
				return err
			}
			if end == 1 {
				return w.Close()
			}
		}
	})
}

// TestSoakCycles: ranks come and go by the same number many times, and nothing grows
// in those who stay, nor in gompirun.
func TestSoakCycles(t *testing.T) {
	by, of, limit := 6, testlab.Rounds(50, 1000), 3*time.Minute
	if testlab.Long() {
		by, limit = 84, time.Hour
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r := mpitest.Exec(t, 2, []string{self, "rank", "cycles", strconv.Itoa(by), strconv.Itoa(of)}, mpitest.Timeout(limit))
	if r.Status != 0 {
		t.Fatalf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	var all [2][6]int
	for i, line := range bytes.Split(bytes.TrimSpace([]byte(r.Stdout)), []byte("\n")) {
		a := &all[min(i, 1)]
		if n, err := fmt.Sscanf(string(line), "holds %d %d %d %d %d %d", &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]); n != 6 || i > 1 {
			t.Fatal(errors.Join(err, errors.New(r.Stdout)))
		}
	}
	// The bell of rank 1 comes when it must first be woken, which may be late, and stays.
	for i, what := range []string{"goroutines", "descriptors", "mappings", "KiB of heap", "descriptors of gompirun", "KiB of gompirun"} {
		slack := []int{1, 1, 0, 1 << 10, 4, 16 << 10}[i]
		if before, after := all[0][i], all[1][i]; after > before+slack {
			t.Errorf("%d %s after %d cycles, %d after %d", after, what, of, before, of/5)
		}
	}
	t.Logf("up and down by %d in %v each: after %d cycles %v, after %d %v", by, time.Since(began)/time.Duration(of), of/5, all[0], of, all[1])
}
