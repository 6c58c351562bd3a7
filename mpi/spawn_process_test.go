// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/test/testlab"
	"gompi/mpi"
	"gompi/mpitest"
)

// self is a command of this test program.
func self(n int, args ...string) mpi.Command {
	exe, _ := os.Executable()
	return mpi.Command{Program: exe, Args: append([]string{"rank"}, args...), Procs: n}
}

// spawnedRank is a child that greets its parents; "die": it is killed first.
func spawnedRank(w *mpi.Comm, args []string) error {
	c, err := w.Process().Parent()
	if err != nil || c == nil {
		return fmt.Errorf("the parent is %v, %w", c, err)
	}
	if len(args) > 0 && args[0] == "die" && w.Rank() == w.Size()-1 {
		unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	err = greet(c)
	if len(args) > 0 && errors.Is(err, mpi.ErrProcFailed) {
		return nil
	}
	return err
}

// aroundRank finds what its parents have asked for.
func aroundRank(w *mpi.Comm, args []string) error {
	dir, _ := os.Getwd()
	if want := os.Getenv("AROUND"); want == "" || want != dir || args[0] != "a b" {
		return fmt.Errorf("in %q with AROUND=%q and %q", dir, want, args)
	}
	return spawnedRank(w, nil)
}

// spawnerRank spawns in one of several ways.
func spawnerRank(w *mpi.Comm, args []string) (err error) {
	me := w.Process().Self()
	switch args[0] {
	case "around":
		cmds := []mpi.Command{self(2, "around", "a b"), self(1, "around", "a b")}
		for i := range cmds {
			c := &cmds[i]
			c.Path, c.Program = filepath.Split(c.Program)
			c.Dir = args[1+i]
			c.Env = []string{"AROUND=" + c.Dir}
		}
		c, codes, err := mpi.CommSpawnMultiple(w, cmds, w.Size()-1)
		if err != nil || len(codes) != 3 {
			return fmt.Errorf("codes %v, %w", codes, err)
		}
		return greet(c)
	case "missing":
		_, codes, err := mpi.CommSpawnMultiple(w, []mpi.Command{self(1, "spawned"), {Program: "/no/such/program", Procs: 2}}, 0)
		if !errors.Is(err, mpi.ErrSpawn) || !strings.Contains(codes[1].Error(), "/no/such/program") || strings.Contains(codes[0].Error(), "/no/such/program") {
			return fmt.Errorf("codes %v, %w", codes, err)
		}
		_, _, err = mpi.CommSpawn(w, mpi.Command{Program: "/bin/true", Procs: 2}, 0) // joins nobody
		if !errors.Is(err, mpi.ErrSpawn) {
			return fmt.Errorf("of /bin/true: %w", err)
		}
		s, err := mpi.Spawn(w, []mpi.Command{{Program: "/bin/echo", Args: []string{"any program"}, Procs: 1}}, 0)
		if err != nil || len(s.Errors) != 1 || s.Errors[0] != nil {
			return fmt.Errorf("of /bin/echo: %v, %w", s, err)
		}
		return w.Barrier()
	case "hosts":
		for _, host := range args[1:] {
			cmd := self(3, "spawned")
			cmd.Hosts = []string{host}
			c, _, err := mpi.CommSpawn(w, cmd, 0)
			if err == nil {
				err = greet(c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	case "signal":
		c, _, err := mpi.CommSpawn(w, self(2, "signalled"), 0)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			for rank := range 2 { // they listen
				if _, err := mpi.Recv(c, make([]int, 1), rank, 0); err != nil {
					return err
				}
			}
			if err := w.Process().Signal(w.Group(), unix.SIGUSR1); !errors.Is(err, mpi.ErrSpawn) {
				return fmt.Errorf("a signal to the parents: %w", err)
			}
			if err := w.Process().Signal(c.RemoteGroup(), 99); !errors.Is(err, mpi.ErrArg) {
				return fmt.Errorf("signal 99: %w", err)
			}
			if err := w.Process().Signal(c.RemoteGroup(), unix.SIGUSR1); err != nil {
				return err
			}
		}
		return greet(c)
	case "ports":
		return serverRank(w, args[1:])
	case "orphan": // the parents but one are killed at any moment
		seed, _ := strconv.Atoi(args[1])
		rng := rand.New(rand.NewPCG(uint64(seed), uint64(w.Rank())))
		if w.Rank() > 0 {
			time.AfterFunc(time.Duration(rng.IntN(40_000))*time.Microsecond, func() { unix.Kill(os.Getpid(), unix.SIGKILL) })
		}
		for over := time.After(60 * time.Millisecond); ; {
			c, _, err := mpi.CommSpawn(me, self(1+rng.IntN(2), "spawned", "live"), 0)
			if err == nil {
				err = greet(c)
			}
			if err != nil {
				return err
			}
			select {
			case <-over:
				return nil
			default:
			}
		}
	case "row":
		return inARowRank(w, args)
	case "loop", "die":
		if w.Rank() == 0 && len(args) == 3 { // else spares come and go
			defer func(before int) { err = errors.Join(err, nothingLeft(w.Size(), before)) }(launcherFiles())
		}
		rounds, _ := strconv.Atoi(args[1])
		seed, _ := strconv.Atoi(args[2])
		rng := rand.New(rand.NewPCG(uint64(seed), uint64(w.Rank())))
		for i := range rounds {
			how := "live"
			if args[0] == "die" && rng.IntN(3) == 0 {
				how = "die"
			}
			c, _, err := mpi.CommSpawn(me, self(1+rng.IntN(2), "spawned", how), 0)
			if err == nil {
				err = greet(c)
			}
			if how == "die" && !errors.Is(err, mpi.ErrProcFailed) && !errors.Is(err, mpi.ErrSpawn) {
				return fmt.Errorf("round %d: a child was killed: %w", i, err)
			}
			if how == "live" && err != nil {
				return fmt.Errorf("round %d: %w", i, err)
			}
		}
		return w.Barrier()
	}
	return fmt.Errorf("no such way %q", args[0])
}

// signalledRank greets its parents when it has got a signal.
func signalledRank(w *mpi.Comm) error {
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGUSR1)
	c, err := w.Process().Parent()
	if err == nil {
		err = mpi.Send(c, []int{1}, 1, 0)
	}
	if err != nil {
		return err
	}
	<-got
	return greet(c)
}

// launcherFiles is how many descriptors gompirun has open.
func launcherFiles() int {
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", os.Getppid()))
	return len(fds)
}

// nothingLeft waits until gompirun holds no more than before; the other ranks may have
// ended by then.
func nothingLeft(ranks, before int) error {
	for i := 0; launcherFiles() > before+ranks; i++ {
		if i == 1000 {
			return fmt.Errorf("gompirun has %d descriptors, and had %d", launcherFiles(), before)
		}
		<-time.After(10 * time.Millisecond)
	}
	return nil
}

// serverRank starts another program, and each finds the other by a service, whichever
// comes first: args are "late" for who begins late, and who is killed then, or "".
func serverRank(w *mpi.Comm, args []string) error {
	p := w.Process()
	if _, err := mpi.Spawn(w, []mpi.Command{self(2, append([]string{"client"}, args...)...)}, 0); err != nil {
		return err
	}
	port := ""
	if w.Rank() == 0 {
		var err error
		if port, err = p.OpenPort(); err != nil {
			return err
		}
		if args[0] == "server" {
			<-time.After(20 * time.Millisecond)
		}
		if err := p.PublishName("greeter", port); err != nil {
			return err
		}
	}
	c, err := w.Accept(port, 0)
	if err != nil {
		return err
	}
	if args[1] == "server" && w.Rank() == w.Size()-1 {
		unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	return afterKill(greet(c), args[1])
}

// clientRank is that program.
func clientRank(w *mpi.Comm, args []string) error {
	port := ""
	if w.Rank() == 0 {
		if args[0] == "client" {
			<-time.After(20 * time.Millisecond)
		}
		for port == "" {
			var err error
			if port, err = w.Process().LookupName("greeter"); err != nil && !errors.Is(err, mpi.ErrName) {
				return err
			}
		}
	}
	c, err := w.Connect(port, 0)
	if err != nil {
		return err
	}
	if args[1] == "client" && w.Rank() == 1 {
		unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	return afterKill(greet(c), args[1])
}

// afterKill is an error that a death of somebody does not explain, nor that another one
// has given up because of that and has left.
func afterKill(err error, killed string) error {
	if killed != "" && !errors.Is(err, mpi.ErrProcFailed) && !errors.Is(err, mpi.ErrLeft) {
		return fmt.Errorf("the %s was killed: %w", killed, err)
	}
	if killed != "" {
		return nil
	}
	return err
}

// Two programs meet at a port, over all transports and between hosts, whichever comes
// first; with --ft either may lose a process.
func TestPortsOfPrograms(t *testing.T) {
	for _, c := range []struct{ late, killed, flags string }{
		{"server", "", "--transport shm"}, {"client", "", "--transport tcp"}, {"client", "", "--transport shm,tcp --pretend-hosts 2x2"},
		{"server", "client", "--ft"}, {"client", "server", "--ft"},
	} {
		r := spawns(t, 2, []string{"ports", c.late, c.killed}, mpitest.Flags(strings.Fields(c.flags)...))
		if strings.Contains(r.Stderr, "gompi: ") {
			t.Errorf("%+v:\n%s", c, r.Stderr)
		}
	}
}

func spawns(t *testing.T, np int, args []string, opts ...mpitest.ExecOption) mpitest.Result {
	t.Helper()
	r := osRanks(t, np, append([]string{"spawner"}, args...), opts...)
	if r.Status != 0 {
		t.Errorf("%s: status %d:\n%s%s", args, r.Status, r.Stdout, r.Stderr)
	}
	return r
}

// Real processes get the directory, path, environment and arguments that were asked for,
// and their output is named.
func TestSpawnProcesses(t *testing.T) {
	one, _ := filepath.EvalSymlinks(t.TempDir())
	two, _ := filepath.EvalSymlinks(t.TempDir())
	for _, transport := range []string{"shm", "tcp"} {
		spawns(t, 2, []string{"around", one, two}, mpitest.Flags("--transport", transport))
		spawns(t, 2, []string{"signal"}, mpitest.Flags("--transport", transport))
	}
	if out := spawns(t, 2, []string{"missing"}, mpitest.Flags("--tag")).Stdout; !strings.Contains(out, ".0] any program\n") {
		t.Errorf("output %q", out)
	}
	host, _ := os.Hostname()
	spawns(t, 2, []string{"hosts", host + "-1", host + "-0", host + "-1"}, mpitest.Flags("--pretend-hosts", "2x3", "--transport", "shm,tcp"))
	spawns(t, 1, []string{"loop", "3", "1", "spares"}, mpitest.Flags("--spare", "2", "--slots", "3"))
}

// Ranks spawn, part from their children and spawn again on the same slots, all at once.
func TestSoakSpawnLoops(t *testing.T) {
	rounds, seed := testlab.Rounds(5, 500), 1
	if testlab.Long() {
		seed = int(time.Now().UnixNano() & 0xffff)
		t.Log("seed", seed)
	}
	n := fmt.Sprint(rounds)
	for _, transport := range []string{"shm", "tcp"} {
		spawns(t, 3, []string{"loop", n, fmt.Sprint(seed)}, mpitest.Flags("--transport", transport, "--slots", "9"), mpitest.Timeout(10*time.Minute))
	}
}

// With --ft children are killed, and their parents go on.
func TestSoakSpawnKills(t *testing.T) {
	rounds, seed := testlab.Rounds(5, 500), 1
	if testlab.Long() {
		seed = int(time.Now().UnixNano() & 0xffff)
		t.Log("seed", seed)
	}
	r := osRanks(t, 3, []string{"spawner", "die", fmt.Sprint(rounds), fmt.Sprint(seed)}, mpitest.Flags("--ft", "--slots", "9"), mpitest.Timeout(10*time.Minute))
	if r.Status != 0 || strings.Contains(r.Stderr, "round ") {
		t.Errorf("status %d:\n%s", r.Status, r.Stderr[max(0, len(r.Stderr)-4000):])
	}
	if !strings.Contains(r.Stderr, "(SIGKILL)") {
		t.Errorf("nobody was killed:\n%s", r.Stderr)
	}
}

// With --ft parents are killed in the midst of spawning; their children end, and the
// others go on on the slots that come free.
func TestSoakSpawnOrphans(t *testing.T) {
	jobs, seed := testlab.Rounds(3, 200), 1
	if testlab.Long() {
		seed = int(time.Now().UnixNano() & 0xffff)
		t.Log("seed", seed)
	}
	for i := range jobs {
		spawns(t, 4, []string{"orphan", fmt.Sprint(seed + i)}, mpitest.Flags("--ft", "--slots", "12"))
	}
}
