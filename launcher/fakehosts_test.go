// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/client"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
	"gompi/internal/test/testlab"
)

// TestPretended: what users see is the same with two hosts of one slot each, whose
// agents are processes; what is beyond the slots is spread over both.
func TestPretended(t *testing.T) {
	each(t, []func(*testing.T){
		TestOutputIsByteExact, TestInputToRank0, TestClosedOutput, TestHowJobsEnd, TestSpawnedProcesses,
		TestKillGrace, TestOutputFiles, TestSignalsAreForwarded, TestSecondInterruptKills, TestQuitReports,
	})
}

// agentJob is a job on pretended hosts of two ranks each, all of which have joined.
type agentJob struct {
	*testing.T
	in     *bufio.Scanner
	errs   strings.Builder
	head   int
	agents []int // by host
	all    []int // agents, their guardians and ranks
	addrs  []string
	wait   func() (status int)
}

func startAgents(t *testing.T, args ...string) *agentJob {
	t.Helper()
	cmd := command(t, append([]string{"--" + fakeHostsFlag, "2x2", "-np", "4"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	j := &agentJob{T: t, in: bufio.NewScanner(out)}
	cmd.Stderr = &j.errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j.head = cmd.Process.Pid
	j.wait = func() int {
		cmd.Wait()
		return cmd.ProcessState.ExitCode()
	}
	for range 4 {
		if !j.in.Scan() || j.in.Text() != "joined" {
			t.Fatalf("%q, %v; %s", j.in.Text(), j.in.Err(), j.errs.String())
		}
	}
	// That of host 0 was started first.
	j.agents = childrenOf(j.head)
	slices.Sort(j.agents)
	if len(j.agents) != 2 {
		t.Fatalf("gompirun has the children %v", j.agents)
	}
	for _, a := range j.agents {
		ranks := childrenOf(a)
		if len(ranks) < 3 {
			t.Fatalf("the agent %d has the children %v", a, ranks)
		}
		j.all = append(append(j.all, a), ranks...)
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", ranks[len(ranks)-1]))
		_, addr, _ := strings.Cut(string(env), protocol.EnvAddr+"=")
		addr, _, _ = strings.Cut(addr, "\x00")
		if _, ok := protocol.ParseAddress(addr); !ok {
			t.Fatalf("%s is %q", protocol.EnvAddr, addr)
		}
		j.addrs = append(j.addrs, addr)
	}
	return j
}

// rest is what the job prints until its end, and how long that takes.
func (j *agentJob) rest() (lines []string, took time.Duration) {
	begin := time.Now()
	for j.in.Scan() {
		lines = append(lines, j.in.Text())
	}
	return lines, time.Since(begin)
}

// nothingLeft fails unless all processes of the job end soon, and with them its
// sockets.
func (j *agentJob) nothingLeft() {
	j.Helper()
	limit := testlab.Soon(2 * time.Second)
	end := time.Now().Add(limit)
	for _, pid := range j.all {
		controltest.WaitFor(j.T, fmt.Sprintf("end of %d", pid), func() bool { return !lives(pid) })
	}
	if late := time.Since(end); late > 0 {
		j.Errorf("that took %v longer than %v", late, limit)
	}
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		j.Fatal(err)
	}
	for _, addr := range j.addrs {
		if strings.Contains(string(sockets), addr+"\n") {
			j.Errorf("socket %s is left", addr)
		}
	}
}

// TestAgentLost: with an agent all that ran on its host has died. Without --ft
// that is the end of the job, with it the others go on.
func TestAgentLost(t *testing.T) {
	for _, host := range []int{0, 1} {
		for _, ft := range []bool{false, true} {
			t.Run(fmt.Sprint(host, ft), func(t *testing.T) {
				j := startAgents(t, fmt.Sprintf("--ft=%v", ft), "RANK", "mourn")
				unix.Kill(j.agents[host], unix.SIGKILL)
				lines, took := j.rest()
				status := j.wait() // with it what gompirun has said is there
				want := fmt.Sprintf("gompirun: the agent of host %d is lost: ", host)
				if took > testlab.Soon(2*time.Second) || !strings.HasPrefix(j.errs.String(), want) || !strings.Contains(j.errs.String(), "; 2 processes are gone with it") {
					t.Errorf("after %v: %q", took, j.errs.String())
				}
				if text := strings.Join(lines, "\n"); ft && (status != 0 || strings.Count(text, fmt.Sprintf("the agent of host %d is lost", host)) != 2) {
					t.Errorf("status %d, %q", status, text)
				} else if !ft && status != 1 {
					t.Errorf("status %d", status)
				}
				j.nothingLeft()
			})
		}
	}
}

// TestHeadOfAgentsLost: with the head everything ends.
func TestHeadOfAgentsLost(t *testing.T) {
	j := startAgents(t, "--ft", "RANK", "mourn")
	unix.Kill(j.head, unix.SIGKILL)
	j.rest()
	j.wait()
	j.nothingLeft()
}

// TestSparesOnHosts: spares are spread over the hosts by their slots, and tools are told
// of them as such.
func TestSparesOnHosts(t *testing.T) {
	j := startAgents(t, "--spare", "3", "RANK", "mourn")
	tool, err := client.DialTool(t.Context(), j.addrs[1])
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	var spares []int
	controltest.WaitFor(t, "three spares", func() bool {
		list, err := tool.Processes(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		spares = nil
		for _, p := range list {
			if p.State == protocol.Spare {
				spares = append(spares, p.PID)
			}
		}
		return len(spares) == 3 && len(list) == 7
	})
	for host, want := range []int{2, 1} {
		n := 0
		for _, pid := range childrenOf(j.agents[host]) {
			if slices.Contains(spares, pid) {
				n++
			}
		}
		if n != want {
			t.Errorf("host %d has %d spares, want %d", host, n, want)
		}
	}
	unix.Kill(j.head, unix.SIGTERM)
	j.rest()
	j.wait()
	j.all = append(j.all, spares...)
	j.nothingLeft()
}

// TestStdinOfAnotherHost: it moves from the first host to the second, with what the
// first was sent and has not read.
func TestStdinOfAnotherHost(t *testing.T) { stdinMoves(t, "--"+fakeHostsFlag, "2x1") }
