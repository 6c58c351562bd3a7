// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/control/controltest"
	"gompi/internal/test/testlab"
)

// TestFar: what users see is the same when the agent is another process, which has
// no descriptor of gompirun's.
func TestFar(t *testing.T) {
	tests := []func(*testing.T){
		TestOutputIsByteExact, TestInputToRank0, TestInputToAllAndNone, TestUnreadInput, TestClosedOutput, TestOrphanDoesNotKeepTheJob,
		TestTerminalInput, TestTerminalInterrupt,
		TestHowJobsEnd, TestSpawnedProcesses, TestChurn, TestKillGrace, TestVerboseAndBinding, TestOutputFiles,
		TestOutputFileOnAFullDisk, TestNothingIsInherited, TestProcessesKnowThemselves, TestSignalsAreForwarded,
		TestFirstInterruptEndsProgramsThatLetIt, TestStdinOfTheNewFirst, TestChanges, TestSecondInterruptKills, TestInterruptEndsTheWaitForAReader, TestQuitReports,
	}
	if testlab.Long() {
		tests = append(tests, TestProgramBehindWrapper, TestTimeoutReports)
	}
	each(t, tests)
}

// each runs tests as parts of another one.
func each(t *testing.T, tests []func(*testing.T)) {
	for _, f := range tests {
		name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
		t.Run(name[strings.LastIndexByte(name, '.')+1:], f)
	}
}

// childrenOf lists the child processes of one.
func childrenOf(pid int) (list []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		if more, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name())); err == nil && task.Name() != strconv.Itoa(pid) {
			text = append(append(text, ' '), more...)
		}
	}
	for f := range strings.FieldsSeq(string(text)) {
		n, _ := strconv.Atoi(f)
		list = append(list, n)
	}
	return list
}

// lives tells whether a process runs, and is no zombie.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, ok := strings.Cut(string(stat), ") ")
	return err == nil && ok && state[0] != 'Z' && state[0] != 'X'
}

// TestFarLost: the end of the agent is that of the job, and is said; the end of the
// head is that of the agent and of the ranks.
func TestFarLost(t *testing.T) {
	for _, who := range []string{"agent", "head"} {
		cmd := command(t, "-np", "2", "RANK", "block")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(out)
		for range 2 {
			if !in.Scan() || in.Text() != "blocked" {
				t.Fatalf("%q, %v", in.Text(), in.Err())
			}
		}
		agents := childrenOf(cmd.Process.Pid)
		if len(agents) != 1 {
			t.Fatalf("gompirun has the children %v", agents)
		}
		ranks := childrenOf(agents[0]) // and the guardian
		if len(ranks) < 3 {
			t.Fatalf("the agent has the children %v", ranks)
		}
		victim := agents[0]
		if who == "head" {
			victim = cmd.Process.Pid
		}
		unix.Kill(victim, unix.SIGKILL)
		for in.Scan() {
			t.Errorf("%s killed: %q", who, in.Text())
		}
		cmd.Wait()
		if who == "agent" && (cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(errs.String(), "gompirun: the agent is lost: ") || !strings.Contains(errs.String(), "; 2 processes are gone with it\n")) {
			t.Errorf("agent killed: status %d, %q", cmd.ProcessState.ExitCode(), errs.String())
		}
		for _, pid := range append(ranks, agents[0]) {
			controltest.WaitFor(t, fmt.Sprintf("%s killed: end of %d", who, pid), func() bool { return !lives(pid) })
		}
	}
}

// TestFarSlowReader: output that nobody reads slows the ranks down, fills nobody's
// memory, and stops neither head nor agent.
func TestFarSlowReader(t *testing.T) {
	cmd := command(t, "--tag", "-np", "2", "RANK", "noise", "1000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	pids := append(childrenOf(cmd.Process.Pid), cmd.Process.Pid)
	// Who runs no more waits for us.
	controltest.WaitFor(t, "ranks stop", func() bool {
		for _, pid := range childrenOf(pids[0]) {
			if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(line), "noise") && !blocked(pid) {
				return false
			}
		}
		return true
	})
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		var kib int
		fmt.Sscan(rest, &kib)
		if kib == 0 || kib > 100<<10 {
			t.Errorf("process %d had %d KiB", pid, kib)
		}
	}
	cmd.Process.Signal(unix.SIGQUIT) // what all do comes out as ever
	for in := bufio.NewScanner(errs); !strings.Contains(in.Text(), "has not called Init"); {
		if !in.Scan() {
			t.Fatal("no report")
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// blocked tells whether no thread of a process runs.
func blocked(pid int) bool {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task.Name()))
		_, state, ok := strings.Cut(string(stat), ") ")
		if err != nil || !ok || state[0] == 'R' {
			return false
		}
	}
	return true
}
