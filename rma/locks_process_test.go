// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rma_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// The test binary is also the program of the tests with real processes:
//
//	test rank WHAT ARGUMENT
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "rank" {
		mpi.Main(func(_ context.Context, w *mpi.Comm) error {
			if f := processRanks[os.Args[2]]; f != nil {
				return f(w, os.Args[3])
			}
			return lockRank(w, os.Args[2], os.Args[3])
		})
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "compute" {
		mpi.Main(func(_ context.Context, w *mpi.Comm) error { return computeRank(w) })
		return
	}
	status := m.Run()
	mpitest.RemoveBuilt()
	os.Exit(status)
}

// processRanks are the programs but for lockRank.
var processRanks = map[string]func(w *mpi.Comm, arg string) error{
	"sums":        func(w *mpi.Comm, length string) error { return sumRank(w, false, length) },
	"sums killed": func(w *mpi.Comm, length string) error { return sumRank(w, true, length) },
	"programs":    programsRank,
	"death":       deathRank,
	"busy":        busyRank,
	"denied":      deniedRank,
	"left":        leftRank,
}

// lockRank locks and unlocks the memory of ranks 0 and 1 for a time, and until all
// have had both locks alone, or know of the holder that has died. Two numbers there
// are equal whenever nobody has the lock alone. The last rank may be killed: with the
// lock, or on its way to it.
func lockRank(w *mpi.Comm, what, length string) error {
	d, err := time.ParseDuration(length)
	if err != nil {
		return err
	}
	win, err := rma.Allocate[int64](w, 2)
	if err != nil {
		return err
	}
	if err := w.Barrier(); err != nil {
		return err
	}
	end := time.Now().Add(d)
	dies := what != "all" && w.Rank() == w.Size()-1
	if dies && what == "waiter" {
		time.AfterFunc(d/2, kill)
	}
	r := rand.New(rand.NewPCG(uint64(w.Rank()), 5))
	var sum [2]int64
	failed, bad := false, 0 // bad: the lock that the victim has had
	var served mpi.Request  // a barrier of those who have had both locks
	enough := func() (bool, error) {
		switch {
		case what == "holder" && !failed: // the victim is killed, the others are told
			return false, nil
		case what != "all":
			return true, nil
		case sum[0] == 0 || sum[1] == 0:
			return false, nil
		case served == (mpi.Request{}):
			served = w.Ibarrier()
		}
		done, _, err := served.Test()
		return done, err
	}
	for over := false; !over || time.Now().Before(end); {
		at, alone := r.IntN(2), r.IntN(4) > 0
		if failed {
			at = 1 - bad
		}
		switch n, err := visit(win, at, alone, func() {
			if dies && what == "holder" && at == 0 && alone && time.Until(end) < d/2 {
				kill()
			}
		}); {
		case errors.Is(err, mpi.ErrProcFailed) && what != "all":
			if failed {
				// Over frames the victim may have died with an unlock, or a grant,
				// on its way.
				fmt.Println("both locks", err)
				end = time.Now()
			}
			failed, bad = true, at
		case err != nil:
			return err
		default:
			sum[at] += n
		}
		if !over {
			if over, err = enough(); err != nil {
				return err
			}
		}
	}
	if what != "all" {
		// The owners of the locks leave last.
		if err := living(w); err != nil {
			return err
		}
		fmt.Println("survived", failed)
		return nil
	}
	total := make([]int64, 2)
	if err := mpi.Allreduce(w, sum[:], total, mpi.Sum); err != nil {
		return err
	}
	fmt.Printf("rank %d: %d and %d of %v\n", w.Rank(), sum[0], sum[1], total)
	if m := rma.Memory[int64](win); w.Rank() < 2 && (m[0] != total[w.Rank()] || m[1] != m[0]) {
		return fmt.Errorf("rank %d has %v after %d visits", w.Rank(), m, total[w.Rank()])
	}
	return win.Free()
}

// living is a barrier of all ranks but the last.
func living(w *mpi.Comm) error {
	token := []byte{0}
	if w.Rank() > 0 {
		if err := mpi.Send(w, token, 0, 1); err != nil {
			return err
		}
		_, err := mpi.Recv(w, token, 0, 2)
		return err
	}
	for r := 1; r < w.Size()-1; r++ {
		if _, err := mpi.Recv(w, token, r, 1); err != nil {
			return err
		}
	}
	for r := 1; r < w.Size()-1; r++ {
		if err := mpi.Send(w, token, r, 2); err != nil {
			return err
		}
	}
	return nil
}

func kill() { unix.Kill(os.Getpid(), unix.SIGKILL) }

// visit takes a lock, counts itself in both numbers if it has it alone, and
// returns by how much.
func visit(win *rma.Window, at int, alone bool, inside func()) (n int64, err error) {
	kind := rma.LockShared
	if alone {
		kind = rma.LockExclusive
	}
	if err := win.Lock(kind, at, 0); err != nil {
		return 0, err
	}
	v := make([]int64, 2)
	if err = errors.Join(rma.Get(win, v, at, 0), win.Flush(at)); err != nil {
		return 0, err
	}
	if v[0] != v[1] {
		return 0, fmt.Errorf("the numbers of rank %d are %v under the lock", at, v)
	}
	inside()
	if alone {
		n = 1
		v[0]++
		v[1]++
		err = errors.Join(rma.Put(win, v[:1], at, 0), win.Flush(at), rma.Put(win, v[1:], at, 1))
	}
	return n, errors.Join(err, win.Unlock(at))
}

func lockRanks(t *testing.T, what string, d time.Duration, opts ...mpitest.ExecOption) (out, errs string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := mpitest.Exec(t, 8, []string{self, "rank", what, d.String()}, append(opts, mpitest.Timeout(d+time.Minute))...)
	if t.Log(r.Stdout); what == "all" && r.Status != 0 || strings.Contains(r.Stderr, "error") {
		t.Fatalf("status %d\n%s", r.Status, r.Stderr)
	}
	return r.Stdout, r.Stderr
}

// lockTime is how long the storm goes on.
func lockTime() time.Duration {
	if os.Getenv("GOMPI_TEST") == "long" {
		return time.Minute
	}
	return 300 * time.Millisecond
}

func TestLocksOfProcesses(t *testing.T) {
	ofProcesses(t)
	for _, transport := range []string{"shm", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			lockRanks(t, "all", lockTime(), mpitest.Env("GOMPI_TRANSPORT="+transport))
		})
	}
}

func TestLocksOfKilledProcesses(t *testing.T) {
	ofProcesses(t)
	for _, transport := range []string{"shm", "tcp"} {
		for _, what := range []string{"holder", "waiter"} {
			t.Run(transport+"/"+what, func(t *testing.T) {
				out, errs := lockRanks(t, what, time.Second, mpitest.Flags("--ft"), mpitest.Env("GOMPI_TRANSPORT="+transport))
				if n := strings.Count(out, "survived"); n != 7 {
					t.Fatalf("%d survived\n%s", n, errs)
				}
				if transport == "shm" && strings.Contains(out, "both locks") {
					t.Fatal("the victim has had one lock")
				}
				if n := strings.Count(out, "survived true"); what == "holder" && n != 7 {
					t.Fatalf("%d were told that the holder has died", n)
				}
			})
		}
	}
}
