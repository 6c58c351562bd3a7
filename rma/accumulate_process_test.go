// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rma_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// sumMany is how many numbers are added to at once.
const sumMany = 3000

// sumRank adds to the numbers of rank 0 for a time, to single ones and to all.
// The last rank, which adds in the upper half of each, may be killed anywhere
// in between; what the others have added is there, neither more nor less.
func sumRank(w *mpi.Comm, dies bool, length string) error {
	d, err := time.ParseDuration(length)
	if err != nil {
		return err
	}
	win, err := rma.Allocate[int64](w, sumMany)
	if err != nil {
		return err
	}
	if err := errors.Join(win.LockAll(0), w.Barrier()); err != nil {
		return err
	}
	one, last := int64(1), w.Rank() == w.Size()-1
	if last && dies {
		one = 1 << 32
		time.AfterFunc(d/2, kill)
	}
	r := rand.New(rand.NewPCG(uint64(w.Rank()), 9))
	buf, mine := make([]int64, sumMany), make([]int64, sumMany)
	for i := range buf {
		buf[i] = one
	}
	for end := time.Now().Add(d); !time.Now().After(end) || last && dies; {
		at, n := 0, sumMany
		if r.IntN(4) > 0 {
			at, n = r.IntN(3), 1
			_, err = rma.FetchAndOp(win, one, 0, at, mpi.Sum)
		} else {
			at = r.IntN(3)
			n -= at
			err = rma.Accumulate(win, buf[:n], 0, at, mpi.Sum)
		}
		if err = errors.Join(err, win.Flush(0)); err != nil {
			return err
		}
		for i := range n {
			mine[at+i]++
		}
	}
	return sumCheck(w, win, mine, dies)
}

// sumCheck compares what is there with what the living have added.
func sumCheck(w *mpi.Comm, win *rma.Window, mine []int64, dies bool) error {
	n := w.Size()
	if dies {
		n--
	}
	if w.Rank() > 0 {
		if err := mpi.Send(w, mine, 0, 3); err != nil {
			return err
		}
	} else {
		theirs := make([]int64, sumMany)
		for r := 1; r < n; r++ {
			if _, err := mpi.Recv(w, theirs, r, 3); err != nil {
				return err
			}
			for i := range mine {
				mine[i] += theirs[i]
			}
		}
		for i, v := range rma.Memory[int64](win) {
			if v&(1<<32-1) != mine[i] {
				return fmt.Errorf("error: number %d is %#x, want %#x", i, v, mine[i])
			}
		}
		fmt.Println("exact")
	}
	if dies {
		return living(w)
	}
	return errors.Join(win.UnlockAll(), win.Free())
}

func TestSumsOfProcesses(t *testing.T) {
	ofProcesses(t)
	for _, transport := range []string{"shm", "tcp"} {
		for _, what := range []string{"sums", "sums killed"} {
			t.Run(transport+"/"+what, func(t *testing.T) {
				out, errs := lockRanks(t, what, lockTime(), mpitest.Flags("--ft"), mpitest.Env("GOMPI_TRANSPORT="+transport))
				if !strings.Contains(out, "exact") {
					t.Fatalf("nothing was checked\n%s", errs)
				}
			})
		}
	}
}
