// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// The test binary is also the program of the tests with real processes:
//
//	test rank WHAT ARGS...
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "rank" {
		what, args := os.Args[2], os.Args[3:]
		if what == "neighbor" && os.Getenv("GOMPI_RANK") != "0" && args[2] == "joins" {
			<-time.After(500 * time.Millisecond)
		}
		if what == "finalized" {
			finalizedRank()
			return
		}
		mpi.Main(func(_ context.Context, w *mpi.Comm) error { return osRank(w, what, args) })
		if what == "again" {
			againRank(args)
		}
		return
	}
	status := m.Run()
	mpitest.RemoveBuilt()
	os.Exit(status)
}

func osRank(w *mpi.Comm, what string, args []string) error {
	switch what {
	case "die":
		return dyingRank(w, args)
	case "again":
		return w.Barrier()
	case "ending":
		return endingRank(w, args)
	case "idle":
		return idleRank(w)
	case "collect":
		return collectingRank(w, args)
	case "programs":
		return programsRank(w, args)
	case "panic":
		return panickingRank(w)
	case "abort":
		code, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		w.Abort(code)
	case "stuck":
		return stuckRank(w)
	case "inside":
		return insideRank(w)
	case "host":
		return hostRank(w, args)
	case "neighbor":
		return neighborRank(w, args)
	case "spawner":
		return spawnerRank(w, args)
	case "spawned":
		return spawnedRank(w, args)
	case "signalled":
		return signalledRank(w)
	case "client":
		return clientRank(w, args)
	case "around":
		return aroundRank(w, args)
	case "guest":
		return guestRank(w)
	case "pid":
		fmt.Println("pid", os.Getpid())
		return w.Barrier()
	}
	return fmt.Errorf("unknown rank %q", what)
}

// osRanks runs the test binary as np ranks.
func osRanks(t *testing.T, np int, args []string, opts ...mpitest.ExecOption) mpitest.Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mpitest.Exec(t, np, append([]string{self, "rank"}, args...), opts...)
}

// dyingRank plays a scene (args[0]) in which the victim kills itself after
// args[1] steps. Each line printed begins with a time.
func dyingRank(w *mpi.Comm, args []string) error {
	var s scene
	for _, x := range scenes() {
		if x.name == args[0] {
			s = x
		}
	}
	steps, err := strconv.Atoi(args[1])
	if err != nil || s.name == "" {
		return fmt.Errorf("scene %q: %v", args, err)
	}
	say := func(what string, err error) {
		fmt.Printf("%d %s %d %q\n", time.Now().UnixNano(), what, w.Rank(), fmt.Sprint(err)) // several errors are several lines
	}
	over := make(chan struct{})
	switch {
	case w.Rank() == victim:
		return die(w, s, steps, say)
	case w.Rank() >= bystander && !s.all:
		// There is no telling here when the partner knows: a message does.
		go func() {
			defer close(over)
			if w.Rank() == bystander {
				mpi.Recv(w, make([]int64, 1), partner, 8)
			}
		}()
		if err := talkOn(w, over); err != nil {
			return err
		}
	default:
		for err = nil; err == nil; {
			err = s.mate(w)
		}
		if !errors.Is(err, mpi.ErrProcFailed) {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		say("learnt", err)
		if !s.all {
			if err := mpi.Send(w, make([]int64, 1), bystander, 8); err != nil {
				return err
			}
		}
	}
	// The living go on.
	next, prev := 1+w.Rank()%(cast-1), 1+(w.Rank()+cast-3)%(cast-1)
	if _, err := mpi.Sendrecv(w, make([]int64, 20_000), next, 6, make([]int64, 20_000), prev, 6); err != nil {
		return fmt.Errorf("%s: the living among themselves: %w", s.name, err)
	}
	return nil
}

// die takes steps, with a goroutine beside that kills the process in the midst
// of the last.
func die(w *mpi.Comm, s scene, steps int, say func(string, error)) error {
	last := make(chan struct{})
	go func() {
		<-last
		// Somewhere in the step, not always at its beginning.
		for range steps * 37 % 101 {
			runtime.Gosched()
		}
		say("killed", nil)
		unix.Kill(os.Getpid(), unix.SIGKILL)
	}()
	for i := 0; ; i++ {
		if i == steps {
			close(last)
		}
		if err := s.alone(w); err != nil {
			return err
		}
	}
}

// idleTime is how long idle ranks are watched.
const idleTime = 3 * time.Second

// idleRank waits in Recv; rank 0 prints the percentage of one processor that
// all ranks together used meanwhile.
func idleRank(w *mpi.Comm) error {
	word := []int64{int64(os.Getpid())}
	if w.Rank() > 0 {
		if err := mpi.Send(w, word, 0, 1); err != nil {
			return err
		}
		_, err := mpi.Recv(w, word, 0, 2)
		return err
	}
	pids := []int{os.Getpid()}
	for len(pids) < w.Size() {
		if _, err := mpi.Recv(w, word, mpi.AnySource, 1); err != nil {
			return err
		}
		pids = append(pids, int(word[0]))
	}
	wait := func(d time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		mpi.Recv(w.WithContext(ctx), word, 1, 3)
	}
	used := func() (sum time.Duration) {
		for _, pid := range pids {
			d, err := testlab.CPU(pid)
			if err != nil {
				fmt.Println(err)
			}
			sum += d
		}
		return sum
	}
	wait(500 * time.Millisecond) // until all have fallen asleep
	before := used()
	wait(idleTime)
	fmt.Printf("used %.3f percent\n", 100*float64(used()-before)/float64(idleTime))
	for r := 1; r < w.Size(); r++ {
		if err := mpi.Send(w, word, r, 2); err != nil {
			return err
		}
	}
	return nil
}

// collections is how many garbage collections collectingRank measures.
const collections = 40

// collectingRank: rank 0 waits in Recv for messages that come now and then, so
// that it polls nearly all the time, while another goroutine of it collects
// garbage; it prints the times, the processor time that the rank used
// meanwhile, and the times of collections in between while rank
// 0 computes and yields, to goroutines and processes, after every 20 us: what
// the machine itself takes just now.
func collectingRank(w *mpi.Comm, args []string) error {
	procs, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	word := make([]int64, 1)
	if w.Rank() == 1 {
		for word[0] == 0 {
			for end := time.Now().Add(300 * time.Microsecond); time.Now().Before(end); {
			}
			if err := mpi.Send(w, word, 0, 1); err != nil {
				return err
			}
			if found, _, err := w.Iprobe(0, 2); err != nil || found {
				word[0] = 1
				mpi.Recv(w, make([]int64, 1), 0, 2)
			}
		}
		return mpi.Send(w, word, 0, 1)
	}
	runtime.GOMAXPROCS(procs)
	const pause, resume = true, false
	ask, answer, end := make(chan bool), make(chan bool), make(chan bool)
	var waiting, used, control testlab.Spread
	collect := func(s *testlab.Spread) {
		began := time.Now()
		runtime.GC()
		s.Add(time.Since(began))
	}
	go func() {
		for range collections {
			before := cpuTime()
			collect(&waiting)
			used.Add(cpuTime() - before)
			ask <- pause
			<-answer
			collect(&control)
			ask <- resume
			<-answer
		}
		close(end)
	}()
	for word[0] == 0 {
		if _, err := mpi.Recv(w, word, 1, 1); err != nil {
			return err
		}
		select {
		case <-ask:
			answer <- pause
			for paused := true; paused; {
				select {
				case <-ask:
					paused = false
				default:
					for end := time.Now().Add(20 * time.Microsecond); time.Now().Before(end); {
					}
					runtime.Gosched()
					unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
				}
			}
			answer <- resume
		case <-end:
			end = nil
			fmt.Println("p90", waiting.At(0.9).Microseconds(), "us, processor", used.At(0.9).Microseconds(), "us, control", control.At(0.9).Microseconds(), "us;", &waiting)
			if err := mpi.Send(w, word, 1, 2); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
