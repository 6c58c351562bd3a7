// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/controltest"
	"gompi/internal/launch/spawner"
)

// running is a gompirun in the background.
type running struct {
	*exec.Cmd
	t    *testing.T
	out  *bufio.Reader
	errs bytes.Buffer
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{Cmd: command(t, args...), t: t}
	r.Stderr = &r.errs
	out, err := r.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.out = bufio.NewReader(out)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// expect reads lines, in any order.
func (r *running) expect(lines ...string) {
	r.t.Helper()
	left := map[string]int{}
	for _, l := range lines {
		left[l]++
	}
	for range lines {
		l, err := r.out.ReadString('\n')
		if err != nil {
			r.Process.Kill()
			r.Wait()
			r.t.Fatalf("%v; stderr %s", err, r.errs.String())
		}
		l = strings.TrimSuffix(l, "\n")
		if left[l]--; left[l] < 0 {
			r.t.Fatalf("unexpected line %q, still wanted %v", l, left)
		}
	}
}

func (r *running) end() int {
	r.t.Helper()
	io.Copy(io.Discard, r.out)
	r.Wait()
	return r.ProcessState.ExitCode()
}

func TestSignalsAreForwarded(t *testing.T) {
	r := start(t, "-np", "2", "RANK", "signals")
	r.expect("ready", "ready")
	for _, s := range []unix.Signal{unix.SIGHUP, unix.SIGUSR1, unix.SIGTERM, unix.SIGCONT, unix.SIGUSR2} {
		r.Process.Signal(s)
		r.expect(unix.SignalName(s), unix.SignalName(s))
	}
	if s := r.end(); s != 0 || r.errs.Len() > 0 {
		t.Errorf("status %d, stderr %q", s, r.errs.String())
	}
}

func TestFirstInterruptEndsProgramsThatLetIt(t *testing.T) {
	r := start(t, "-np", "3", "RANK", "wait")
	r.expect("joined", "joined", "joined")
	r.Process.Signal(unix.SIGINT)
	if s := r.end(); s != 130 || !strings.Contains(r.errs.String(), "was killed by signal 2 (SIGINT)") || strings.Count(r.errs.String(), "\n") != 1 {
		t.Errorf("status %d, stderr %q", s, r.errs.String())
	}
}

// An interrupt while processes are being forked is heard, and leaves none behind.
func TestInterruptDuringTheStart(t *testing.T) {
	cmd := command(t, "-np", "200", "sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	controltest.WaitFor(t, "the first process", func() bool {
		pids = childrenOf(cmd.Process.Pid)
		return len(pids) > 2
	})
	cmd.Process.Signal(unix.SIGINT)
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 128+int(unix.SIGINT) {
		t.Errorf("status %d", got)
	}
	for _, pid := range pids {
		controltest.WaitFor(t, fmt.Sprintf("end of %d", pid), func() bool { return !lives(pid) })
	}
}

func TestSecondInterruptKills(t *testing.T) {
	r := start(t, "-np", "2", "RANK", "stubborn")
	r.expect("ready", "ready")
	r.Process.Signal(unix.SIGINT)
	r.expect("SIGINT", "SIGINT")
	r.Process.Signal(unix.SIGINT)
	if s := r.end(); s != 130 || r.errs.Len() > 0 {
		t.Errorf("status %d, stderr %q", s, r.errs.String())
	}
}

// Once no rank is left the first interrupt is enough: all that keeps gompirun is
// a reader who does not read.
func TestInterruptEndsTheWaitForAReader(t *testing.T) {
	cmd := command(t, "-np", "1", "head", "-c", "100000", "/dev/zero") // more than one pipe holds, less than two
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	for full := 0; full < 50<<10 || len(children(t, cmd.Process.Pid)) > 1; { // the guardian
		full, _ = unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	// A head that has not heard of the end yet passes the first one on.
	for again := true; again; {
		cmd.Process.Signal(unix.SIGTERM)
		select {
		case <-ended:
			again = false
		case <-time.After(5 * time.Second):
		}
	}
	if s := cmd.ProcessState.ExitCode(); s != 143 {
		t.Errorf("status %d, want 143", s)
	}
}

func TestStopAndContinue(t *testing.T) {
	r := start(t, "-np", "2", "RANK", "signals")
	r.expect("ready", "ready")
	r.Process.Signal(unix.SIGTSTP)
	var ws unix.WaitStatus
	if _, err := unix.Wait4(r.Process.Pid, &ws, unix.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("gompirun did not stop: %v, %v", ws, err)
	}
	// The ranks have been told, but may not have run yet.
	stopped := 0
	for deadline := time.Now().Add(20 * time.Second); stopped != 2; runtime.Gosched() {
		stopped = 0
		for _, pid := range children(t, r.Process.Pid) {
			if f := statOf(pid); len(f) > 0 && f[0] == "T" {
				stopped++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are stopped, want the 2 ranks", stopped)
		}
	}
	r.Process.Signal(unix.SIGCONT)
	r.expect("SIGCONT", "SIGCONT")
	r.Process.Signal(unix.SIGUSR2)
	r.expect("SIGUSR2", "SIGUSR2")
	if s := r.end(); s != 0 {
		t.Errorf("status %d, stderr %q", s, r.errs.String())
	}
}

func TestQuitReports(t *testing.T) {
	cmd := command(t, "-np", "2", "RANK", "wait")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("joined\njoined\n"))); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Signal(unix.SIGQUIT)
	want := map[string]bool{"queue of 0": true, "queue of 1": true, "stack of 0": true, "stack of 1": true}
	in := bufio.NewScanner(errs)
	for len(want) > 0 && in.Scan() {
		delete(want, in.Text())
	}
	if len(want) > 0 {
		t.Errorf("missing in the report: %v", want)
	}
	cmd.Process.Signal(unix.SIGTERM)
	io.Copy(io.Discard, errs)
	cmd.Wait()
	if s := cmd.ProcessState.ExitCode(); s != 143 {
		t.Errorf("status %d", s)
	}
}

// kill -9 of gompirun leaves no process, not even the children of ranks, and
// no socket.
func TestKilledHeadLeavesNothing(t *testing.T) {
	r := start(t, "-np", "2", "sh", "-c", "sleep 1000 & sleep 1000 & echo ready; wait", ":", "-np", "2", "RANK", "block")
	r.expect("ready", "ready", "blocked", "blocked")
	var all []int
	for _, pid := range children(t, r.Process.Pid) {
		all = append(all, pid)
		all = append(all, children(t, pid)...)
	}
	if len(all) != 2+2*2+2+1 {
		t.Fatalf("%d processes, want 9: %v", len(all), all)
	}
	fds := make([]unix.PollFd, len(all))
	for i, pid := range all {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		fds[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	r.Process.Kill()
	r.end()
	deadline := time.Now().Add(20 * time.Second)
	for i := range fds {
		for fds[i].Revents == 0 {
			left := int(time.Until(deadline).Milliseconds())
			if n, err := unix.Poll(fds[i:i+1], max(0, left)); n == 0 && err == nil {
				t.Fatalf("process %d is still there", all[i])
			}
		}
	}
}

// When gompirun returns its guardian is gone too.
func TestNoGuardianIsLeft(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-np", "2", "RANK", "good"}, {"-np", "2", "RANK", "exit", "1"}, {"-np", "2", "/no/such/program"}, {"--discover", "echo localhost:1", "-np", "1", "RANK", "good"}} {
		gompirun(t, args...)
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range lines {
			text, _ := os.ReadFile(file)
			exe, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
			if exe == self && strings.Contains(string(text), spawner.GuardianArg) {
				t.Errorf("%v: guardian %s is left", args, filepath.Dir(file))
			}
		}
	}
}

// children are the processes whose parent is pid.
func children(t *testing.T, pid int) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		n, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		if f := statOf(n); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			pids = append(pids, n)
		}
	}
	return pids
}

// statOf is /proc/PID/stat from the state on: state, parent, ...
func statOf(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}
