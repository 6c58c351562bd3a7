// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/test/scenes"
	"gompi/internal/test/testjob"
	"gompi/mpi"
	"gompi/mpi/proc"
	"gompi/mpitest"
)

// programs are scenes that start what is no goroutine of a test.
var programs = []scenes.Scene{
	{Name: "any", Ranks: 1, Run: anyProgram},
	{Name: "killed", Ranks: 1, Run: killsStarted},
	{Name: "nodes", Ranks: 1, Run: nodes},
	{Name: "dies", Ranks: 2, Run: func(ctx context.Context, w *mpi.Comm) error {
		return dies(ctx, w, func() { unix.Kill(os.Getpid(), unix.SIGKILL) })
	}},
}

func runs(t *testing.T, np int, name string, flags ...string) mpitest.Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := mpitest.Exec(t, np, []string{self, "rank", name}, mpitest.Flags(flags...))
	if r.Status != 0 {
		t.Errorf("%s %v: status %d\n%s%s", name, flags, r.Status, r.Stdout, r.Stderr)
	}
	return r
}

// Any program can be started: how it exits is said, and is no matter of the job.
func TestAnyProgram(t *testing.T) {
	for _, flags := range [][]string{nil, {"--pretend-hosts", "2x3"}} {
		r := runs(t, 1, "any", flags...)
		if !strings.Contains(r.Stdout, "said by echo\n") || strings.Contains(r.Stderr, "gompi") {
			t.Errorf("%v: output %q, %q", flags, r.Stdout, r.Stderr)
		}
	}
	runs(t, 1, "killed", "--ft")
	runs(t, 2, "spawn", "--spare", "2") // of the children some are processes that are kept ready
}

func anyProgram(ctx context.Context, w *mpi.Comm) error {
	p := w.Process()
	reqs, err := proc.Allocate(ctx, p, proc.Places{N: 4, Execs: []string{"/bin/sh", "/bin/sleep", "/bin/echo", "/bin/true"}})
	if err != nil {
		return err
	}
	err = errors.Join(proc.SetArgs(reqs[0], "-c", "exit 7"), proc.SetArgs(reqs[1], "600"), proc.SetArgs(reqs[2], "said by echo"), mpi.Startall(reqs), mpi.Waitall(reqs))
	if err != nil {
		return err
	}
	if _, err := proc.RemoteAttach(w, reqs[3]); want(err, mpi.ErrSpawn, "cannot be attached") != nil && want(err, mpi.ErrSpawn, "was to be attached") != nil {
		return fmt.Errorf("one that joins nothing was attached: %w", err)
	}
	if err := errors.Join(want(proc.Signal(99, reqs[1]), mpi.ErrArg), want(proc.Signal(15, reqs[1], reqs[1]), mpi.ErrArg, "twice"), proc.Signal(unix.SIGTERM, reqs[1])); err != nil {
		return err
	}
	if err := mpi.Waitall(reqs); err != nil {
		return err
	}
	for i, status := range []int{7, 128 + 15, 0, 0} {
		if x, ok := proc.ExitOf(reqs[i]); !ok || x.Status != status || x.How == "" {
			return fmt.Errorf("process %d has exited with %+v, %v", i, x, ok)
		}
	}
	return errors.Join(proc.Signal(unix.SIGTERM, reqs[1]), mpi.FreeAll(reqs)) // it is passed over
}

// One that has joined and is killed is a death of the job.
func killsStarted(ctx context.Context, w *mpi.Comm) error {
	if started(w) {
		if _, err := w.Process().Parent(); err != nil {
			return err
		}
		select {}
	}
	reqs, err := proc.Allocate(ctx, w.Process(), proc.Places{N: 2})
	if err != nil {
		return err
	}
	if err := errors.Join(mpi.Startall(reqs), mpi.Waitall(reqs)); err != nil {
		return err
	}
	c, err := proc.RemoteAttach(w, reqs...)
	if err != nil {
		return err
	}
	if err := proc.Signal(unix.SIGKILL, reqs...); err != nil {
		return err
	}
	if err := mpi.Waitall(reqs); err != nil {
		return err
	}
	x, _ := proc.ExitOf(reqs[1])
	if x.Status != 128+9 {
		return fmt.Errorf("exit %+v", x)
	}
	_, err = mpi.Recv(c, make([]int, 1), 0, 0)
	return errors.Join(want(err, mpi.ErrProcFailed), mpi.FreeAll(reqs), c.Free())
}

// Who has requests dies: its places are free then, and what it has started runs by itself.
func TestRequesterDies(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := mpitest.Exec(t, 2, []string{self, "rank", "dies"}, mpitest.Flags("--ft", "--slots", "5"))
	if n := strings.Count(r.Stderr, "\n"); n != 1 || !strings.Contains(r.Stderr, "rank 1") || strings.Count(r.Stdout, "went on\n") != 2 {
		t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	for _, over := range []mpitest.Option{mpitest.Transport("inproc"), mpitest.Transport("shm")} {
		mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
			if err := dies(t.Context(), w, func() { t.Kill(-1) }); err != nil {
				t.Fatal(err)
			}
		}, over, mpitest.Slots(5))
	}
}

// dies: rank 1 has all free slots, one of them with a process, when it is killed.
func dies(ctx context.Context, w *mpi.Comm, die func()) error {
	if started(w) {
		if c, err := w.Process().Parent(); c != nil || err != nil {
			return fmt.Errorf("the parent is %v, %w", c, err)
		}
		fmt.Println("went on")
		return nil
	}
	p := w.Process()
	if w.Rank() == 1 {
		reqs, err := proc.Allocate(ctx, p, proc.Places{N: 3})
		if err == nil {
			err = reqs[0].Start()
		}
		if err == nil {
			_, err = reqs[0].Wait()
		}
		if err != nil {
			return err
		}
		die()
	}
	if _, err := mpi.Recv(w, make([]int, 1), 1, 0); !errors.Is(err, mpi.ErrProcFailed) {
		return fmt.Errorf("rank 1 has died: %w", err)
	}
	reqs, err := proc.Allocate(ctx, p, proc.Places{N: 4, Scheduler: "wait=1m"})
	if err != nil {
		return err
	}
	fmt.Println("went on")
	return mpi.FreeAll(reqs)
}

// Places are on the nodes that are named, or match, and soft ones are what is free.
func TestNodes(t *testing.T) {
	runs(t, 1, "nodes", "--pretend-hosts", "2x3")
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		if err := nodes(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}, testjob.Hosts(2, 3), mpitest.Transport("tcp"))
	mpitest.Run(t, 1, func(t *mpitest.T, w *mpi.Comm) {
		p := w.Process()
		got := func(x proc.Places, n int) []*mpi.Persistent {
			t.Helper()
			reqs, err := proc.Allocate(t.Context(), p, x)
			if err != nil || len(reqs) != n {
				t.Fatalf("%d places of %+v, %v", len(reqs), x, err)
			}
			return reqs
		}
		some := got(proc.Places{N: 9, Soft: true}, 4)
		for _, x := range []proc.Places{{N: 1, Soft: true}, {N: 1, Scheduler: "wait=30ms"}, {N: 6}} {
			if _, err := proc.Allocate(t.Context(), p, x); want(err, mpi.ErrSpawn, "0 slots free") != nil {
				t.Fatalf("%+v: %v", x, err)
			}
		}
		// A hard one waits for what is given back, or until it is given up.
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := proc.Allocate(short, p, proc.Places{N: 1}); !errors.Is(err, mpi.ErrCancelled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
		more, err := proc.Iallocate(p, proc.Places{N: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := mpi.FreeAll(some[:2]); err != nil {
			t.Fatal(err)
		}
		if err := mpi.Waitall(more); err != nil {
			t.Fatal(err)
		}
		vain, err := proc.Iallocate(p, proc.Places{N: 3})
		if err != nil {
			t.Fatal(err)
		}
		if done, err := mpi.Testall(vain); done || err != nil {
			t.Fatal(done, err)
		}
		if err := vain[1].Cancel(); err != nil {
			t.Fatal(err)
		}
		ended := make([]mpi.Completion, 3)
		if err := mpi.WaitallStatuses(vain, ended); err != nil || !ended[0].Status.Cancelled || !ended[2].Status.Cancelled {
			t.Fatalf("%+v, %v", ended, err)
		}
		if err := errors.Join(mpi.FreeAll(vain), mpi.FreeAll(more), mpi.FreeAll(some[2:])); err != nil {
			t.Fatal(err)
		}
		if err := mpi.FreeAll(got(proc.Places{N: 4}, 4)); err != nil {
			t.Fatal(err)
		}
	}, mpitest.Slots(5))
}

// nodes takes places on two hosts of three slots, of which one is this process's.
func nodes(ctx context.Context, w *mpi.Comm) error {
	p := w.Process()
	at := func(x proc.Places) (names []string, reqs []*mpi.Persistent, err error) {
		if reqs, err = proc.Allocate(ctx, p, x); err != nil {
			return nil, nil, err
		}
		for _, r := range reqs {
			names = append(names, proc.Nodename(r))
		}
		return names, reqs, nil
	}
	names, reqs, err := at(proc.Places{N: 8, Soft: true})
	if err != nil || len(names) != 5 {
		return fmt.Errorf("soft places on %v, %w", names, err)
	}
	one, two := names[0], names[4]
	if one == two || !strings.HasSuffix(one, "0") || !strings.HasSuffix(two, "1") {
		return fmt.Errorf("places on %v", names)
	}
	if err := mpi.FreeAll(reqs); err != nil {
		return err
	}
	for _, x := range []struct {
		places proc.Places
		want   string
	}{
		{proc.Places{N: 3, Nodes: []string{two, one, strings.ToUpper(two)}}, two + one + two},
		{proc.Places{N: 2, Nodes: []string{"*1"}}, two + two},
		{proc.Places{N: 6, Nodes: []string{"*[1]"}, Soft: true}, two + two + two},
		{proc.Places{N: 2, Nodes: []string{"*", one[:len(one)-1] + "?"}}, one + one},
	} {
		names, reqs, err := at(x.places)
		if got := strings.Join(names, ""); got != x.want || err != nil {
			return fmt.Errorf("%+v: places on %v, %w", x.places, names, err)
		}
		if err := mpi.FreeAll(reqs); err != nil {
			return err
		}
	}
	return nil
}
