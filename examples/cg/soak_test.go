// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "rank" {
		mpi.Main(restless)
		return
	}
	code := m.Run()
	mpitest.RemoveBuilt()
	os.Exit(code)
}

// turns is what the ranks of a job know of its changes: the same on all.
type turns struct {
	Asked  int // before which iteration a change was asked for last
	Target int // how many ranks there are to be; 0: nothing was asked for yet
	Count  int // of changes that were asked for
}

// restless is a program that solves a system, whose size changes before every few
// iterations: rank, SEED, CHANGES, EVERY, MATRIX, B, HISTORY.
func restless(ctx context.Context, world *mpi.Comm) error {
	var number [3]int
	for i := range number {
		number[i], _ = strconv.Atoi(os.Args[2+i])
	}
	seed, changes, every := number[0], number[1], number[2]
	s := &solver{matrix: os.Args[5], rhs: os.Args[6], tol: 1e-10, most: 10_000}
	t := turns{Asked: -1}
	s.over = func(m *mam.Module) error {
		residual, _, err := s.check(s.x)
		if err != nil || m.Comm().Rank() != root {
			return err
		}
		if last := s.residuals[s.Done]; math.Abs(residual-last) > 1e-12 || t.Count != changes {
			return fmt.Errorf("residual %g, the recurrence has %g; %d changes of %d", residual, last, t.Count, changes)
		}
		b := make([]byte, 0, 8*(s.Done+1))
		for _, r := range s.history() {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r))
		}
		return os.WriteFile(os.Args[7], b, 0o666)
	}
	wait := func(m *mam.Module) error {
		for m.Comm().Size() != t.Target {
			if _, err := m.Checkpoint(mam.Wait); err != nil {
				return err
			}
		}
		if compared(t.Count, changes) && m.Comm().Rank() == root {
			return holds(m.Comm().Size())
		}
		return nil
	}
	ask := func(m *mam.Module) error {
		r, size := rand.New(rand.NewPCG(uint64(seed), uint64(s.Done))), m.Comm().Size()
		t.Asked, t.Count = s.Done, t.Count+1
		if t.Target = 1 + r.IntN(4); t.Target >= size {
			t.Target++
		}
		// States that are compared are of as many ranks.
		switch {
		case compared(t.Count+1, changes):
			if t.Target = 3; size == 3 {
				t.Target = 4
			}
		case compared(t.Count, changes):
			t.Target = 2
		}
		methods := []mam.Config{{}, {Method: mam.COL}, {Method: mam.P2P}, {Method: mam.RMALock}, {Method: mam.RMALockall}, {Method: mam.Pull}, {Method: mam.Pull, Strategy: mam.Blocking}}
		if err := m.SetConfig(methods[r.IntN(len(methods))]); err != nil {
			return err
		}
		if err := m.SetTarget(t.Target); err != nil {
			return err
		}
		if r.IntN(2) == 0 {
			return nil // it comes while the ranks iterate
		}
		return wait(m)
	}
	return mam.Loop(ctx, world, mam.Config{}, func(m *mam.Module) error {
		if err := s.register(m); err != nil {
			return err
		}
		return mam.ReplicatedOne(m, "turns", &t)
	}, func(m *mam.Module, i int) (bool, error) {
		if t.Target > 0 && m.Comm().Size() != t.Target {
			if err := wait(m); err != nil {
				return false, err
			}
		}
		if s.Begun && s.Done%every == 0 && t.Asked < s.Done && t.Count < changes {
			if err := ask(m); err != nil {
				return false, err
			}
		}
		return s.iterate(m, i)
	})
}

// compared says behind which changes it is looked what the processes hold: several times
// in the first fifth, since what comes when it is first needed comes and goes, and in the
// end.
func compared(count, changes int) bool {
	return count == changes || count <= changes/5 && count > changes/20 && count%(changes/25) == 0
}

// holds prints what this process has, and gompirun, when those that have left are gone.
func holds(ranks int) error {
	if err := testlab.Gone(ranks); err != nil {
		return err
	}
	l := testlab.Take()
	own := 0
	for _, n := range l.FDs {
		own += n
	}
	its, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", os.Getppid()))
	fmt.Println("holds", l.Goroutines, own, l.Maps, l.HeapBytes>>10, resident("self"), len(its), resident(strconv.Itoa(os.Getppid())))
	return nil
}

// resident is the KiB of a process.
func resident(pid string) (kib int) {
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	for line := range strings.Lines(string(status)) {
		fmt.Sscanf(line, "VmRSS: %d kB", &kib)
	}
	return kib
}

// slowSystem writes a system that takes more than a thousand iterations: the Laplacian of a
// line, moved so far from singular, with any right-hand side.
func slowSystem(t *testing.T, seed uint64) (matrix, rhs string) {
	const n, shift = 4000, 4e-4
	a := fmt.Sprintf("%%%%MatrixMarket matrix coordinate real symmetric\n%d %d %d\n", n, n, 2*n-1)
	b := fmt.Sprintf("%%%%MatrixMarket matrix array real general\n%d 1\n", n)
	var rows, values strings.Builder
	r := rand.New(rand.NewPCG(seed, 0))
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&rows, "%d %d %v\n", i, i, 2+shift)
		if i > 1 {
			fmt.Fprintf(&rows, "%d %d -1\n", i, i-1)
		}
		fmt.Fprintf(&values, "%v\n", r.NormFloat64())
	}
	return write(t, "line.mtx", a+rows.String()), write(t, "b.mtx", b+values.String())
}

// TestSoakCG: one solver whose size changes many times, by every method, comes to the same
// end as one that stays, in the same iterations; and nothing grows in the process that
// stays, nor in gompirun.
func TestSoakCG(t *testing.T) {
	changes, every, limit := testlab.Rounds(50, 1000), 20, 3*time.Minute
	if testlab.Long() {
		every, limit = 1, time.Hour
	}
	seed := testlab.Seed(t)
	matrix, rhs := slowSystem(t, seed)
	var static [][]float64
	for ranks := 1; ranks <= 5; ranks++ {
		mpitest.Run(t, ranks, func(t *mpitest.T, world *mpi.Comm) {
			if s := solveFile(t, world, matrix, rhs, 10_000); world.Rank() == root {
				static = append(static, s.history())
			}
		})
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, began := filepath.Join(t.TempDir(), "history"), time.Now()
	r := mpitest.Exec(t, 2, []string{self, "rank", fmt.Sprint(seed), fmt.Sprint(changes), fmt.Sprint(every), matrix, rhs, file}, mpitest.Timeout(limit))
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var history []float64
	for ; len(b) >= 8; b = b[8:] {
		history = append(history, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	band, worst := spread(static), 0.0
	for k := range min(len(history), len(band)) {
		worst = max(worst, math.Abs(history[k]/static[0][k]-1)/(band[k]+1e-15))
	}
	if d := len(history) - len(static[0]); worst > 10 || d < -1 || d > 1 || history[len(history)-1] >= 1e-10 {
		t.Errorf("%d iterations to %g, those that stay %d; residuals differ %.1f times as much as by the order of summation", len(history)-1, history[len(history)-1], len(static[0])-1, worst)
	}
	var before, after [7]int // the most of the first fifth, and the end
	lines := bytes.Split(bytes.TrimSpace([]byte(r.Stdout)), []byte("\n"))
	for _, line := range lines {
		a := &after
		for i := range before {
			before[i] = max(before[i], after[i])
		}
		if n, err := fmt.Sscanf(string(line), "holds %d %d %d %d %d %d %d", &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6]); n != len(a) {
			t.Fatalf("%v of\n%s", err, r.Stdout)
		}
	}
	if len(lines) != 5 {
		t.Errorf("looked %d times:\n%s", len(lines), r.Stdout)
	}
	// A goroutine, a neighbour's bell and memory, and the two descriptors by which memory
	// is watched, which come with the first data that moves while it is written, may be
	// there or not.
	for i, what := range []string{"goroutines", "descriptors", "mappings", "KiB of heap", "KiB of the process", "descriptors of gompirun", "KiB of gompirun"} {
		slack := []int{1, 4, 2, 1 << 10, 8 << 10, 4, 16 << 10}[i]
		if after[i] > before[i]+slack {
			t.Errorf("%d %s after %d changes, at most %d in the first %d", after[i], what, changes, before[i], changes/5)
		}
	}
	t.Logf("%d iterations with %d changes in %v, residuals within %.1f of what the order of summation makes (%.1e); in the first %d changes at most %v, at the end %v",
		len(history)-1, changes, time.Since(began).Round(time.Millisecond), worst, band[len(band)-1], changes/5, before, after)
}
