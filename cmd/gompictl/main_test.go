// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/version"
	"gompi/internal/base/wire"
	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
	"gompi/internal/control/server"
	"gompi/launcher"
)

// The test binary is gompirun too, and the program that it starts.
func TestMain(m *testing.M) {
	args := os.Args[1:]
	switch {
	case launcher.IsGuardian(args):
		os.Exit(launcher.Main(args))
	case len(args) > 0 && args[0] == "gompirun":
		os.Exit(launcher.Main(args[1:]))
	case len(args) > 0 && args[0] == "gompictl":
		os.Args = args
		main()
		os.Exit(0)
	case len(args) > 0 && args[0] == "rank":
		os.Exit(rank())
	}
	os.Exit(m.Run())
}

// rank joins its job and answers until it is killed.
func rank() int {
	addr, token, _ := protocol.FromEnv()
	c, _, err := client.Dial(addr, token)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("joined", os.Getpid(), addr)
	for {
		ev, err := c.Next()
		if err != nil {
			return 1
		}
		if ev.Kind == protocol.EvStacks {
			c.Stacks(protocol.Stacks{ID: ev.ID, Queues: []byte("no messages"), Stacks: []byte("goroutine 1 [running]")})
		}
	}
}

// Jobs that do not answer hide no other.
func TestPsAsksAllAtOnce(t *testing.T) {
	const silent = 8
	for i := range silent {
		ln, err := net.Listen("unix", protocol.Address(wire.JobID(uint64(os.Getpid())<<8|uint64(i)), 0))
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
	}
	job := wire.JobID(uint64(os.Getpid())<<8 | silent)
	s, err := server.NewServer(server.Config{JobConfig: server.JobConfig{Job: job}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, _, err := s.AddJob([][]string{{"program"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var text bytes.Buffer
	if err := run(ctx, []string{"ps"}, terminal{out: &text}); err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(text.String(), fmt.Sprintf("\n%016x ", uint64(job)))
	if line, _, _ = strings.Cut(line, "\n"); !strings.Contains(line, "1 starting") {
		t.Errorf("job %016x is not shown:\n%s", uint64(job), text.String())
	}
	if n := strings.Count(text.String(), "does not answer"); n < silent {
		t.Errorf("%d jobs do not answer, want %d:\n%s", n, silent, text.String())
	}
}

// startJob starts two ranks, which run until the test has ended or stop is called.
func startJob(t *testing.T) (job string, pids []string, stop func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, "gompirun", "-np", "2", self, "rank")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cmd.Process.Signal(unix.SIGTERM)
		cmd.Wait()
		cancel()
	})
	t.Cleanup(stop)
	in := bufio.NewScanner(out)
	for len(pids) < 2 && in.Scan() {
		f := strings.Fields(in.Text())
		if len(f) != 3 {
			t.Fatalf("line %q", in.Text())
		}
		pids, job = append(pids, f[1]), strings.TrimPrefix(f[2], "@gompi-")
	}
	return job, pids, stop
}

func TestPsAndStacks(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	job, pids, _ := startJob(t)

	var text bytes.Buffer
	if err := run(ctx, []string{"ps"}, terminal{out: &text}); err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, job) {
			found = strings.Contains(line, "2 joined") && strings.Contains(line, pids[0]) && strings.Contains(line, pids[1])
		}
	}
	if !found {
		t.Errorf("ps does not show job %s with pids %v:\n%s", job, pids, text.String())
	}

	text.Reset()
	if err := run(ctx, []string{"stacks", strings.ToUpper(job[:8])}, terminal{out: &text}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{job, "no messages", "goroutine 1 [running]", pids[0], pids[1]} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"":                     "no command",
		"nonsense":             "unknown command",
		"ps x":                 "no arguments",
		"stacks":               "needs one JOB",
		"stacks nobody":        "no running job nobody",
		"top":                  "needs one JOB",
		"top nobody":           "no running job nobody",
		"top j --interval":     "--interval needs a value",
		"top j --interval 1ms": "at least 250ms",
		"top j --sort ranks":   "one of rank, host, cpu",
		"top j --all":          "no flag --all",
		"resize":               "needs a JOB and a size",
		"resize j 4":           "say +N for so many more",
		"resize j +0":          "is no size",
		"resize j +65537":      "+N with N from 1 to 65536",
		"resize j =65537":      "=N with N from 1 to 65536",
		"resize j =-1":         "is no size",
		"resize j +1 --sets a": "no flag --sets",
		"resize j +1 --set":    "--set needs the NAME",
		"resize nobody +1":     "no running job nobody",
		"ops":                  "needs one JOB",
		"cancel j":             "needs a JOB and the number",
		"cancel j first":       "is no number of an operation",
		"cancel j 0":           "is no number of an operation",
		"cancel nobody 1":      "no running job nobody",
		"psets j --png":        "no flag --png",
		"psets j --svg --dot":  "one of --dot and --svg",
	} {
		if err := run(context.Background(), strings.Fields(args), terminal{out: new(bytes.Buffer)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	for args, want := range map[string]string{"--help": "stacks JOB", "resize j --help": "--detach", "ops -h": "rolled back", "cancel j --help": "--commit-timeout", "psets --help": "--svg", "top --help": "NO_COLOR"} {
		var help bytes.Buffer
		if err := run(context.Background(), strings.Fields(args), terminal{out: &help}); err != nil || !strings.Contains(help.String(), want) {
			t.Errorf("%s: %v, %q", args, err, help.String())
		}
	}
}

// Mistakes in the command line are told from what goes wrong later: status 2.
func TestUsageErrors(t *testing.T) {
	for _, line := range []string{"", "pst", "ps x", "stacks", "stacks a b", "ops", "psets", "psets --dotted a", "psets --dot --svg a", "queue a b",
		"resize", "resize x", "resize x 4", "resize x +0", "resize x +1 --sett=a", "resize x +1 --set", "top", "top --sort", "top x --interval 1", "top x --sort y", "top -x y",
		"cancel", "cancel x", "cancel x 1 2", "cancel x 0", "cancel x first"} {
		if err := run(context.Background(), strings.Fields(line), terminal{out: io.Discard}); !errors.As(err, new(usageError)) {
			t.Errorf("gompictl %s: %v", line, err)
		}
	}
	if err := run(context.Background(), []string{"stacks", "nosuchjob"}, terminal{out: io.Discard}); err == nil || errors.As(err, new(usageError)) {
		t.Errorf("no such job: %v", err)
	}
	for _, flag := range []string{"--version", "-V"} {
		var out strings.Builder
		if err := run(context.Background(), []string{flag}, terminal{out: &out}); err != nil || !strings.HasPrefix(out.String(), "gompictl "+version.Gompi()+", protocol ") {
			t.Errorf("%s: %q, %v", flag, out.String(), err)
		}
	}
}
