// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sessions_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/change"
	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
	"gompi/internal/test/testlab"
	"gompi/mpitest"
)

// killed is a job on pretended hosts, of which processes are killed.
type killed struct {
	*testing.T
	cmd  *exec.Cmd
	errs written

	mu    sync.Mutex
	addrs []string       // of agents
	pids  map[int]string // of all processes of the job, ever, and when they began
}

// written is what a program has written so far.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *written) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *written) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func startKilled(t *testing.T) *killed {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k := &killed{T: t, pids: map[int]string{}}
	k.cmd = exec.Command(mpitest.Build(t, "gompi/cmd/gompirun"), "--pretend-hosts", "3x2", "-np", "4", "--ft",
		"--resize-timeout", "10s", "--leave-timeout", "5s", self, "rank", "kills")
	k.cmd.Stderr = &k.errs
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // of a test that has ended early
		if k.cmd.ProcessState == nil {
			k.cmd.Process.Kill()
			k.cmd.Wait()
		}
	})
	joined := make(chan struct{}, 1000)
	go func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			if addr, ok := strings.CutPrefix(in.Text(), "at "); ok {
				k.mu.Lock()
				if job, ok := protocol.ParseAddress(addr); ok && k.addrs == nil {
					for host := range uint32(3) {
						k.addrs = append(k.addrs, protocol.Address(job, host))
					}
				}
				k.mu.Unlock()
				select {
				case joined <- struct{}{}:
				default:
				}
			}
		}
	}()
	for range 4 {
		select {
		case <-joined:
		case <-time.After(mpitest.Deadline):
			k.cmd.Process.Kill()
			t.Fatal("the job does not start")
		}
	}
	return k
}

// tool connects with an agent that lives.
func (k *killed) tool() *client.Tool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return anyAgent(k.T, k.cmd.Process.Pid, k.addrs, &k.errs)
}

// anyAgent connects with one of a job's agents.
func anyAgent(t *testing.T, gompirun int, addrs []string, errs fmt.Stringer) *client.Tool {
	t.Helper()
	var last []error
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(mpitest.Deadline); time.Now().Before(end) && beginning(gompirun) != ""; <-tick.C {
		last = nil
		for _, addr := range addrs {
			c, err := client.DialTool(t.Context(), addr)
			if err == nil {
				return c
			}
			last = append(last, fmt.Errorf("%s: %w", addr, err))
		}
	}
	t.Fatalf("no agent answers, gompirun lives: %v: %v\n%s", beginning(gompirun) != "", errors.Join(last...), errs)
	return nil
}

// members are how many of the main set live.
func (k *killed) members() int {
	t := k.tool()
	defer t.Close()
	list, _ := t.Sets(context.Background())
	for i := range list {
		if list[i].Main {
			return list[i].Living
		}
	}
	return 0 // the agent was lost meanwhile
}

// processes are those that run.
func (k *killed) processes() (pids []int) {
	t := k.tool()
	defer t.Close()
	list, _ := t.Processes(context.Background())
	for _, p := range list {
		if p.PID > 0 {
			k.note(p.PID)
			if p.State == protocol.Joined || p.State == protocol.Starting {
				pids = append(pids, p.PID)
			}
		}
	}
	return pids
}

func (k *killed) note(pid int) {
	if began := beginning(pid); began != "" {
		k.pids[pid] = began
	}
}

// beginning is when a process that runs was started, as text: its pid may have been
// another's. It is empty of one that has ended, reaped or not.
func beginning(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // from the third field on
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return ""
	}
	return f[19]
}

// heard waits until who was killed has ended, and the head knows of all who have: else
// the next kill would count some among the living.
func (k *killed) heard(victims []int) {
	k.Helper()
	limit := time.After(mpitest.Deadline)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(victims, func(pid int) bool { return beginning(pid) != "" }) ||
		slices.ContainsFunc(k.processes(), func(pid int) bool { return beginning(pid) == "" }) {
		select {
		case <-tick.C:
		case <-limit:
			k.Fatalf("processes %v were killed: %s", victims, k.errs.String())
		}
	}
}

// children are those of a process, of the job.
func (k *killed) children(of int) (pids []int) {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", of))
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", of, task.Name()))
		for f := range strings.FieldsSeq(string(text)) {
			pid, _ := strconv.Atoi(f)
			k.note(pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// resize asks for a change and waits for its end: an outcome, or none if the agent that
// was asked is lost.
func (k *killed) resize(m protocol.Resize) (last change.State, why string) {
	t := k.tool()
	defer t.Close()
	ctx, cancel := context.WithTimeout(context.Background(), mpitest.Deadline)
	defer cancel()
	err := t.Resize(ctx, &m, func(r *protocol.OpReport) { last, why = r.Op.State, fmt.Sprint(r.Waits, r.Op.Text) })
	if ctx.Err() != nil {
		k.cmd.Process.Signal(unix.SIGQUIT)
		<-time.After(3 * time.Second)
		k.Errorf("%+v hangs: %v, %s, %v\n%s", m, last, why, err, k.errs.String())
	}
	return last, why
}

// end ends the job: nothing of it is left soon.
func (k *killed) end() {
	k.Helper()
	k.processes()
	k.children(k.cmd.Process.Pid)
	k.cmd.Process.Signal(unix.SIGTERM)
	k.cmd.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(testlab.Soon(2 * time.Second)); ; <-tick.C {
		var left []int
		for pid, began := range k.pids {
			if began == beginning(pid) {
				left = append(left, pid)
			}
		}
		sockets, _ := os.ReadFile("/proc/net/unix")
		open := slices.ContainsFunc(k.addrs, func(a string) bool { return strings.Contains(string(sockets), a+"\n") })
		if len(left) == 0 && !open {
			return
		}
		if time.Now().After(limit) {
			k.Errorf("processes %v are left, sockets: %v", left, open)
			return
		}
	}
}

// slow is too long for the end of a change, whoever was killed: almost a deadline.
const slow = 9 * time.Second

// TestSoakHostKills kills ranks, newcomers, leavers and agents of jobs on several hosts
// while these grow and shrink: each change ends in one way or the other, the next one
// happens, and nothing is left.
func TestSoakHostKills(t *testing.T) {
	jobs, kills := testlab.Rounds(4, 80), 25
	rng := rand.New(rand.NewPCG(testlab.Seed(t), 1))
	ends := map[change.State]int{}
	began := time.Now()
	for range jobs {
		k := startKilled(t)
		for range kills {
			n := k.members()
			m := protocol.Resize{By: 1 + rng.IntN(2)}
			if n > 6 || n > 3 && rng.IntN(2) == 0 {
				m.By = -m.By
			}
			var s change.State
			var why string
			done := make(chan struct{})
			go func() {
				defer close(done)
				s, why = k.resize(m)
			}()
			<-time.After(time.Duration(rng.IntN(40)) * time.Millisecond)
			what, at, stay := "nobody", time.Now(), n+min(0, m.By)
			var victims []int
			if agents := k.children(k.cmd.Process.Pid); rng.IntN(kills/2) == 0 && len(agents) > 1 {
				// With the agent go its ranks, and its guardian.
				a := agents[rng.IntN(len(agents))]
				if own := k.children(a); stay-len(own)+1 >= 2 {
					what, victims = "an agent", append(own, a)
					unix.Kill(a, unix.SIGKILL)
				}
			} else if list := k.processes(); stay > 2 && len(list) > 0 {
				what, victims = "a process", []int{list[rng.IntN(len(list))]}
				unix.Kill(victims[0], unix.SIGKILL)
			}
			<-done
			k.heard(victims)
			ends[s]++
			if took := time.Since(at); took > slow {
				t.Errorf("of %d, %+d, %s is killed: %v only after %v: %s\n%s", n, m.By, what, s, took, why, k.errs.String())
			}
		}
		s := change.Queued
		for try := 0; s != change.Committed && s != change.Done && try < 5; try++ { // a death may not be known yet
			s, _ = k.resize(protocol.Resize{By: 1})
		}
		if s != change.Committed && s != change.Done {
			t.Errorf("the last change is %v: %s", s, k.errs.String())
		}
		if k.end(); t.Failed() {
			break
		}
	}
	t.Logf("%d kills in %v: %v", jobs*kills, time.Since(began).Round(time.Second), ends)
}
