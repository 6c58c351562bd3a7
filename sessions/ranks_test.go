// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/test/scenes"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// TestMain is also the program of the ranks that tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "rank" && rankPrograms[os.Args[2]] != nil {
		rankPrograms[os.Args[2]]()
		return
	}
	scenes.Main(m, slices.Concat(dppScenes, declineScenes))
}

var rankPrograms = map[string]func(){
	"sets": setsProgram, "around": beforeAndAfterMain, "nomain": noMain, "kills": killsProgram, "cycles": cyclesProgram,
	"operation": operationProgram, "dies": diesProgram, "struck": struckProgram, "leaves": leavesProgram,
}

// rankProgram runs one of them under gompirun.
func rankProgram(t *testing.T, n int, name string, opts ...mpitest.ExecOption) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := mpitest.Exec(t, n, []string{self, "rank", name}, opts...)
	if r.Status != 0 {
		t.Fatalf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// enter is how a rank begins: over its world in iteration 0, or, of a newcomer, over
// the result of its change behind the agreed one.
func enter(ctx context.Context, world *mpi.Comm) (comm *mpi.Comm, i int, err error) {
	c, err := sessions.Joined(ctx)
	if err != nil || c == nil {
		return world, 0, err
	}
	if comm, err = c.Commit(ctx); err == nil {
		i, err = c.Iteration(ctx)
	}
	return comm, i + 1, err
}

// setsProgram uses sessions before, beside and after the world.
func setsProgram() {
	began := time.Now()
	first, err := sessions.Open(context.Background())
	took := time.Since(began)
	if err != nil {
		panic(err)
	}
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		s, err := sessions.Open(ctx)
		if err != nil {
			return err
		}
		list, err := s.PSets()
		if err != nil {
			return err
		}
		host := ""
		for _, name := range list {
			if strings.HasPrefix(name, "gompi://host/") {
				host = name
			}
		}
		all, err := s.Comm(host)
		if err != nil {
			return err
		}
		if n, err := mpi.AllreduceOne(all, 1, mpi.Sum); err != nil || n != 4 {
			return fmt.Errorf("%d on this host: %w", n, err)
		}
		if world.Rank() != 1 {
			c, err := s.Comm("app://most")
			if err != nil {
				return err
			}
			sum := make([]int64, 1<<10)
			for range 50 { // past the first calls, which are messages
				if err := mpi.Allreduce(c, []int64{int64(c.Rank())}, sum[:1], mpi.Max); err != nil || sum[0] != 2 {
					return fmt.Errorf("largest rank %d: %w", sum[0], err)
				}
			}
			if world.Rank() == 3 {
				fmt.Printf("rank 3 is %d of %s, opened in less than a second: %v\n", c.Rank(), strings.Join(list[3:], " "), took < time.Second)
			}
		}
		return s.Close()
	})
	if err := first.Close(); err != nil {
		panic(err)
	}
}

// Sessions of real processes, with sets of the command line.
func TestSetsOfProcesses(t *testing.T) {
	out := rankProgram(t, 4, "sets", mpitest.Flags("--pset", "most=3,0,2", "--pset", "one=1"))
	if want := "rank 3 is 0 of app://most app://one, opened in less than a second: true\n"; out != want {
		t.Errorf("printed %q, want %q", out, want)
	}
}
