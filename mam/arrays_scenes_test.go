// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/controltest"
	"gompi/internal/test/scenes"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// keeper reads all slices that a rank has ever had, until it is stopped.
type keeper struct {
	mu   sync.Mutex
	kept [][]float64
	sum  float64
	stop chan struct{}
	done sync.WaitGroup
}

func (k *keeper) begin() {
	k.stop = make(chan struct{})
	k.done.Go(func() {
		for {
			select {
			case <-k.stop:
				return
			default:
			}
			k.mu.Lock()
			list := k.kept
			k.mu.Unlock()
			for _, x := range list {
				for i := 0; i < len(x); i += 64 {
					k.sum += x[i]
				}
			}
			runtime.Gosched()
		}
	})
}

func (k *keeper) keep(x []float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept[:len(k.kept):len(k.kept)], x)
}

func (k *keeper) end() { close(k.stop); k.done.Wait() }

// stale: a program keeps all slices that it ever had of an array, and reads them all the
// time, while the collector runs and its size changes: nothing faults, and what it has now
// is what it has to be.
func stale(ctx context.Context, world *mpi.Comm) error {
	m, _, err := mam.Init(ctx, world, mam.Config{Method: mam.InPlace}, nil)
	if err != nil {
		return err
	}
	defer m.Finalize()
	var d arrays
	if err := d.register(m); err != nil {
		return err
	}
	var k keeper
	k.begin()
	defer k.end() // before Finalize: then it is no memory any more
	k.keep(d.x)
	target := 5
	for m.Comm().Size() != 4 {
		if err := d.check(m, m.Iteration()); err != nil {
			return err
		}
		if err := m.Comm().Barrier(); err != nil {
			return err
		}
		d.compute()
		runtime.GC()
		target = map[int]int{3: 5, 5: 2, 2: 1, 1: 4}[m.Comm().Size()]
		if err := m.SetTarget(target); err != nil {
			return err
		}
		state, err := m.Checkpoint(mam.Check)
		if err != nil {
			return err
		}
		if state == mam.Completed {
			k.keep(d.x)
		}
	}
	return d.check(m, m.Iteration())
}

// frees: arrays are freed between changes, and others registered by their names; newcomers
// free what they were handed.
func frees(ctx context.Context, world *mpi.Comm) error {
	var x []int64
	n := func(times int) mam.Layout { return mam.Block(40_000 + 1000*times) }
	freed := 0
	m, role, err := mam.Init(ctx, world, mam.Config{Method: mam.InPlace}, nil)
	if err != nil {
		return err
	}
	defer m.Finalize()
	if err := mam.ReplicatedOne(m, "freed", &freed); err != nil {
		return err
	}
	of := func(i int) int64 { return int64(i) + int64(freed)<<32 }
	if err := mam.Array(m, "x", &x, n(freed)); err != nil {
		return err
	}
	last := 0 // size for which it was freed
	if role == mam.Source {
		put(m, x, "x", of)
		last = m.Comm().Size()
	}
	for {
		if err := is(m, "x", x, of); err != nil {
			return err
		}
		if last != m.Comm().Size() {
			last = m.Comm().Size()
			if err := m.Free("x"); err != nil || x != nil {
				return fmt.Errorf("Free leaves %d elements: %w", len(x), err)
			}
			freed++
			if err := mam.Array(m, "x", &x, n(freed)); err != nil {
				return err
			}
			for i := range x {
				if x[i] != 0 {
					return fmt.Errorf("element %d of new memory is %d", i, x[i])
				}
			}
			put(m, x, "x", of)
		}
		if freed == 3 {
			return nil
		}
		if err := m.SetTarget([]int{3, 1, 2}[freed]); err != nil {
			return err
		}
		if err := m.Comm().Barrier(); err != nil {
			return err
		}
		if _, err := m.Checkpoint(mam.Check); err != nil {
			return err
		}
	}
}

// strays is a program whose last rank writes where it must not, for a run with
// GOMPI_CHECK=1: into a block that it has no more.
var strays = scenes.Scene{Name: "strays", Run: func(ctx context.Context, world *mpi.Comm) error {
	m, role, err := mam.Init(ctx, world, mam.Config{}, nil)
	if err != nil {
		return err
	}
	defer m.Finalize()
	var x []byte
	if err := mam.Array(m, "x", &x, mam.Block(64*os.Getpagesize())); err != nil {
		return err
	}
	old := x
	for m.Comm().Size() == world.Size() && role == mam.Source {
		if err := m.SetTarget(world.Size() + 1); err != nil {
			return err
		}
		if _, err := m.Checkpoint(mam.Wait); err != nil {
			return err
		}
	}
	if role == mam.Source && world.Rank() == world.Size()-1 {
		x[len(x)/2]++
		fmt.Println("in its own block")
		old[len(old)-1]++
		fmt.Println("in another's block")
	}
	return m.Comm().Barrier()
}}

// With GOMPI_CHECK=1 a process that writes into what is another's since a change dies of
// it, and not without.
func TestStrayWrite(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := mpitest.Exec(t, 2, []string{self, "rank", "strays"}, mpitest.Env("GOMPI_CHECK=1"))
	if r.Status == 0 || !strings.Contains(r.Stderr, "unexpected fault address") || !strings.Contains(r.Stdout, "in its own block") || strings.Contains(r.Stdout, "in another's block") {
		t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	if r := mpitest.Exec(t, 2, []string{self, "rank", "strays"}); r.Status != 0 || !strings.Contains(r.Stdout, "in another's block") {
		t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
}

// What does not move in place is told with -v, once, by rank 0.
func TestNotInPlaceIsTold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := mpitest.Exec(t, 3, []string{self, "rank", "inplace"}, mpitest.Flags("-v"))
	for _, want := range []string{`mam: "deal", cyclic of 999 elements, does not lie in place: it moves as other data does`, `mam: method pull for ["deal" "other" "step"], which are in no memory of the hosts`} {
		if r.Status != 0 || strings.Count(r.Stderr, want) < 1 {
			t.Errorf("status %d, without %q:\n%s%s", r.Status, want, r.Stdout, r.Stderr)
		}
	}
	if strings.Contains(r.Stderr, `"x", block`) || strings.Count(r.Stderr, `"deal", cyclic`) != 1 {
		t.Error(r.Stderr)
	}
}

// endless is a program with an array that prints which file it lies in, and never ends.
var endless = scenes.Scene{Name: "endless", Run: func(ctx context.Context, world *mpi.Comm) error {
	m, _, err := mam.Init(ctx, world, mam.Config{}, nil)
	if err != nil {
		return err
	}
	var x []byte
	if err := mam.Array(m, "x", &x, mam.Block(endlessBytes)); err != nil {
		return err
	}
	if err := m.Comm().Barrier(); err != nil {
		return err
	}
	fmt.Printf("lies in %d\n", fileOf("self", endlessBytes))
	<-ctx.Done()
	select {} // whatever becomes of the job
}}

const endlessBytes = 123 * 4096 // no other mapping is so long

// fileOf is the number of the file of which a process has mapped so many bytes, in any
// pieces; 0: it has none such, or is no more.
func fileOf(pid string, size int64) (inode uint64) {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "maps"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.Contains(f[5], "memfd:gompi") {
			continue
		}
		lo, hi, _ := strings.Cut(f[0], "-")
		from, _ := strconv.ParseInt(lo, 16, 64)
		to, _ := strconv.ParseInt(hi, 16, 64)
		if to-from == size {
			inode, _ = strconv.ParseUint(f[4], 10, 64)
			return inode
		}
	}
	return 0
}

// users are the processes that have a file, mapped or open.
func users(inode uint64) (pids []string) {
	all, _ := os.ReadDir("/proc")
	for _, p := range all {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		if fileOf(p.Name(), endlessBytes) == inode {
			pids = append(pids, p.Name()+" maps it")
			continue
		}
		fds, _ := os.ReadDir(filepath.Join("/proc", p.Name(), "fd"))
		for _, fd := range fds {
			var st unix.Stat_t
			name := filepath.Join("/proc", p.Name(), "fd", fd.Name())
			if to, err := os.Readlink(name); err == nil && strings.Contains(to, "memfd:gompi") && unix.Stat(name, &st) == nil && st.Ino == inode {
				pids = append(pids, p.Name()+" has it open")
				break
			}
		}
	}
	return pids
}

// Memory of arrays goes with the job, though gompirun and agents are killed and nobody
// tidies up.
func TestKilledWithAgent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes need Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(mpitest.Build(t, "gompi/cmd/gompirun"), "-np", "3", self, "rank", "endless")
	var out lines
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	controltest.WaitFor(t, "three ranks have an array", func() bool { return len(out.all()) >= 3 })
	var inode uint64
	if _, err := fmt.Sscanf(out.all()[0], "lies in %d", &inode); err != nil || inode == 0 {
		t.Error(out.all(), err)
	}
	if have := users(inode); len(have) != 4 { // three ranks, and the agent
		t.Errorf("%v", have)
	}
	if err := errors.Join(cmd.Process.Kill(), ignore(cmd.Wait())); err != nil {
		t.Fatal(err)
	}
	controltest.WaitFor(t, "nobody has the memory of a job that was killed", func() bool {
		time.Sleep(10 * time.Millisecond) //archtest:sleep who looks into all of /proc leaves others a processor
		return len(users(inode)) == 0
	})
}

// ignore is for the status of who was killed.
func ignore(err error) error {
	if errors.As(err, new(*exec.ExitError)) {
		return nil
	}
	return err
}

// lines is output.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// all are the whole lines so far.
func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := strings.Split(l.b.String(), "\n")
	return list[:len(list)-1]
}
