// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/controltest"
	"gompi/internal/launch"
	"gompi/internal/test/testlab"
	"gompi/launcher/pool"
)

// aHead is a gompirun --head.
type aHead struct {
	*running
	name string
}

func newHead(t *testing.T, args ...string) *aHead {
	t.Helper()
	h := &aHead{name: fmt.Sprintf("test-%x", rand.Uint64())}
	h.running = start(t, append([]string{"--head", h.name}, args...)...)
	controltest.WaitFor(t, "a head", func() bool { _, err := pool.Ask(h.name); return err == nil })
	t.Cleanup(func() {
		h.Process.Kill()
		h.Wait()
	})
	return h
}

// to is a job of it.
func (h *aHead) to(args ...string) *running {
	h.t.Helper()
	return start(h.t, append([]string{"--to", h.name}, args...)...)
}

// is waits until the jobs have so many slots, in the order in which they came; 0: it
// waits.
func (h *aHead) is(slots ...int) {
	h.t.Helper()
	var got []int
	defer func() {
		if h.t.Failed() {
			h.t.Logf("they are %v", got)
		}
	}()
	controltest.WaitFor(h.t, fmt.Sprintf("slots %v", slots), func() bool {
		q, err := pool.Ask(h.name)
		if err != nil {
			h.t.Fatal(err)
		}
		got = nil
		sum := 0
		for _, e := range q.Jobs {
			if e.Target != 0 {
				got = append(got, -e.Target)
			} else {
				got = append(got, e.Has)
			}
			sum += max(e.Has, e.Target)
		}
		if sum != q.Taken || sum > q.Total {
			h.t.Errorf("%d of %d slots are taken, jobs have %d: %+v", q.Taken, q.Total, sum, q.Jobs)
		}
		return slices.Equal(got, slots)
	})
}

// What a job of a head says, hears and returns is that of gompirun, and when it has ended
// its slots are free.
func TestHeadTerminal(t *testing.T) {
	h := newHead(t, "--slots", "3")
	cmd := command(t, "--to", h.name, "-np", "1", "RANK", "sum")
	cmd.Stdin = bytes.NewReader(bytes.Repeat([]byte("gompi\n"), 1<<18))
	if r := finish(t, cmd); r.status != 0 || !strings.HasPrefix(r.stdout, fmt.Sprint(6<<18)) || r.stderr != "" {
		t.Errorf("%+v", r)
	}
	dir := t.TempDir()
	for _, c := range []struct {
		args   string
		status int
		stdout string
		stderr string
	}{
		{"-np 2 RANK exit 3", 3, "", "exited with status 3"},
		{"-np 1 RANK kill 9", 137, "", "SIGKILL"},
		{"-np 3 --tag echo hi", 0, "[0] hi\n[1] hi\n[2] hi\n", ""},
		{"-np 1 --wdir " + dir + " pwd", 0, dir + "\n", ""},
		{"-np 1 RANK nothing : -np 2 RANK nothing", 0, "", ""},
		{"-np 1 /no/such/program", 127, "", "no such program"},
		{"RANK nothing", 0, "", ""},
		{"-np 2 RANK good", 0, "", ""},
		{"--timeout 300ms -np 1 RANK block", 124, "?", "--timeout"},
	} {
		r := gompirun(t, strings.Fields("--to "+h.name+" "+c.args)...)
		lines := strings.SplitAfter(r.stdout, "\n")
		slices.Sort(lines)
		if got := strings.Join(lines, ""); c.stdout == "?" {
			r.stdout = c.stdout
		} else {
			r.stdout = got
		}
		if r.status != c.status || r.stdout != c.stdout || !strings.Contains(r.stderr, c.stderr) || c.stderr == "" && r.stderr != "" {
			t.Errorf("%s: status %d, output %q, %q; want %+v", c.args, r.status, r.stdout, r.stderr, c)
		}
		h.is()
	}
	// Two at a time, and each hears its signals.
	a := h.to("-np", "2", "RANK", "signals")
	a.expect("ready", "ready")
	b := h.to("-np", "1", "RANK", "signals")
	b.expect("ready")
	h.is(2, 1)
	for _, s := range []unix.Signal{unix.SIGHUP, unix.SIGTERM, unix.SIGUSR2} {
		a.Process.Signal(s)
		a.expect(unix.SignalName(s), unix.SignalName(s))
		if s == unix.SIGTERM {
			b.Process.Signal(unix.SIGUSR1)
			b.expect("SIGUSR1")
		}
	}
	if s := a.end(); s != 0 {
		t.Errorf("status %d, %s", s, a.errs.String())
	}
	h.is(1)
	b.Process.Signal(unix.SIGUSR2)
	b.expect("SIGUSR2")
	if s := b.end(); s != 0 {
		t.Errorf("status %d, %s", s, b.errs.String())
	}
	h.is()
	// A spawn has slots of the head, and gives them back.
	g := newHead(t, "--slots", "4")
	if r := gompirun(t, "--to", g.name, "-np", "1", "RANK", "parent"); r.status != 0 || strings.Count(r.stdout, "child") != 3 {
		t.Errorf("spawning: %+v", r)
	}
	g.is()
}

// Who begins first is the policy's.
func TestHeadQueue(t *testing.T) {
	for policy, want := range map[string][]int{"fifo": {2, 0, 0}, "easy": {2, 0, 0}, "firstfit": {2, 0, 1}, "slots": {2, 0, 1}} {
		h := newHead(t, "--slots", "3", "--policy", policy)
		a := h.to("-np", "2", "RANK", "block")
		a.expect("blocked", "blocked")
		b := h.to("-np", "3", "RANK", "block")
		h.is(2, 0)
		c := h.to("-np", "1", "RANK", "block")
		h.is(want...)
		// Who waits may go; and the next one begins.
		if policy == "firstfit" {
			b.Process.Kill()
			b.end()
			h.is(2, 1)
		} else {
			a.Process.Signal(unix.SIGTERM)
			a.end()
			if want[2] == 0 {
				h.is(3, 0)
				b.expect("blocked", "blocked", "blocked")
				b.Process.Signal(unix.SIGTERM)
				b.end()
			} else {
				h.is(0, 1)
			}
		}
		for _, r := range []*running{a, b, c} {
			r.Process.Signal(unix.SIGTERM)
			r.end()
		}
		h.is()
	}
}

// Slots of a job whose gompirun is killed are free when nothing of it runs, and those of
// one that is stopped are not.
func TestHeadJobKilled(t *testing.T) {
	h := newHead(t, "--slots", "4")
	for range 3 {
		a := h.to("-np", "2", "sh", "-c", "trap '' TERM; sleep 1000 & echo $! $$; while :; do sleep 1000; done")
		var pids []int
		for range 2 {
			var x, y int
			if _, err := fmt.Fscan(a.out, &x, &y); err != nil {
				t.Fatal(err)
			}
			pids = append(pids, x, y)
		}
		b := h.to("-np", "4", "RANK", "block")
		h.is(2, 0)
		a.Process.Signal(unix.SIGSTOP)
		time.Sleep(20 * time.Millisecond) //archtest:sleep whether a job that is stopped counts as gone
		h.is(2, 0)
		a.Process.Kill()
		b.expect("blocked", "blocked", "blocked", "blocked")
		for _, pid := range pids {
			if lives(pid) {
				t.Errorf("process %d of the job whose slots are given out runs", pid)
			}
		}
		h.is(4)
		a.end()
		b.Process.Kill()
		b.end()
		h.is()
	}
}

// The head's end is that of all its jobs, of those that wait, do not listen, or are
// stopped, too; and nothing is left.
func TestHeadEnds(t *testing.T) {
	for _, how := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGKILL} {
		h := newHead(t, "--slots", "6", "-v")
		a, b, c := h.to("-np", "2", "RANK", "stubborn"), h.to("-np", "2", "RANK", "wait"), h.to("-np", "2", "RANK", "stubborn")
		a.expect("ready", "ready")
		b.expect("joined", "joined")
		c.expect("ready", "ready")
		d := h.to("-np", "1", "RANK", "block")
		controltest.WaitFor(t, "four jobs", func() bool { q, err := pool.Ask(h.name); return err == nil && len(q.Jobs) == 4 })
		var pids []int
		for _, r := range []*running{a, b, c} {
			pids = append(pids, childrenOf(r.Process.Pid)...)
		}
		if len(pids) != 9 { // and their guardians
			t.Errorf("%d processes", len(pids))
		}
		stopped := how != unix.SIGKILL
		if stopped {
			c.Process.Signal(unix.SIGSTOP)
		}
		began := time.Now()
		h.Process.Signal(how)
		h.end()
		if !stopped { // nobody is there who could wait
			for _, r := range []*running{a, b, c, d} {
				r.end()
			}
		}
		took := time.Since(began)
		for _, pid := range pids {
			// A guardian's end is what the head waits for, and it is not over then.
			controltest.WaitFor(t, fmt.Sprintf("%v: end of process %d", how, pid), func() bool { return !lives(pid) })
		}
		if took > testlab.Soon(2*time.Second) {
			t.Errorf("%v: it took %v", how, took)
		}
		t.Logf("%v: all is gone after %v", how, took)
		if want := 128 + int(how); how != unix.SIGKILL && h.ProcessState.ExitCode() != want {
			t.Errorf("%v: status %d, want %d", how, h.ProcessState.ExitCode(), want)
		}
		for i, r := range []*running{a, b, d, c} {
			s := r.end()
			if i < 3 && (s != 1 || !strings.Contains(r.errs.String(), "head "+h.name)) || i == 3 && stopped && s != -1 {
				t.Errorf("%v: job %d: status %d, %q", how, i, s, r.errs.String())
			}
		}
		again := start(t, "--head", h.name, "--slots", "1") // the name is free
		controltest.WaitFor(t, "a head of the same name", func() bool { _, err := pool.Ask(h.name); return err == nil })
		again.Process.Signal(unix.SIGINT)
		if s := again.end(); s != 130 {
			t.Errorf("status %d, %s", s, again.errs.String())
		}
	}
}

// What cannot be is refused with the reason.
func TestHeadRefuses(t *testing.T) {
	h := newHead(t, "--slots", "3")
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("localhost:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--head " + h.name:                                     "there is a head " + h.name + " on this host already",
		"--head x/y":                                           "is no name of a head",
		"--head x y":                                           "starts no process: gompirun --to x y",
		"--head x -np 3":                                       "--np cannot be used with --head",
		"--head x --timeout 3":                                 "--timeout cannot be used with --head",
		"--head x --policy best":                               "not slots, fifo, firstfit, easy, dmr or ascent",
		"--head x --policy easy --manager p":                   "one of them decides",
		"--head x --discover a --watch-hostfile":               "one of them decides",
		"--head x --watch-hostfile":                            "needs a --hostfile",
		"--head x --slots 3 --discover a":                      "slots are those of the list",
		"--head x --slots -1":                                  "not a number",
		"--head x -H elsewhere:4":                              "not this host",
		"--head x --manager " + file:                           "is no socket",
		"--to none -np 1 true":                                 "there is no head none on this host, but ",
		"--to x/y -np 1 true":                                  "is no name of a head",
		"--to " + h.name + " -np 4 true":                       "it asks for 4 processes, and there are 3 slots",
		"--to " + h.name + " -np 4 --min 4 true":               "it asks for 4 processes, and there are 3 slots",
		"--to " + h.name + " --policy dmr true":                "the head decides",
		"--to " + h.name + " --discover x true":                "the head decides",
		"--to " + h.name + " --" + fakeHostsFlag + " 2x1 true": fakeHostsFlag,
		"--to " + h.name + " --col " + file + " true":          "col",
		"--to " + h.name:                                       "no program given",
	} {
		status := launch.ExitUsage
		switch {
		case strings.HasSuffix(line, h.name) && strings.HasPrefix(line, "--head"), strings.Contains(line, "--manager "+file), strings.Contains(line, "none"), strings.Contains(line, "-np 4"):
			status = launch.ExitFailure // the command line was right
		}
		if r := gompirun(t, strings.Fields(line)...); r.status != status || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: status %d, %q, want %q", line, r.status, r.stderr, want)
		}
	}
	h.is()
	// --head may be that of a program.
	if r := gompirun(t, "-np", "1", "echo", "--head", "x"); r.stdout != "--head x\n" {
		t.Errorf("%+v", r)
	}
}

// A head whose slots are in a list follows it.
func TestHeadWatches(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+"~", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"~", file); err != nil {
			t.Fatal(err)
		}
	}
	write("localhost:1\n")
	h := newHead(t, "--hostfile", file, "--watch-hostfile")
	a := h.to("-np", "1", "RANK", "block")
	a.expect("blocked")
	write("localhost:3\nother:9\n")
	controltest.WaitFor(t, "three slots", func() bool { q, err := pool.Ask(h.name); return err == nil && q.Total == 3 })
	b := h.to("RANK", "block")
	h.is(1, 0)
	a.Process.Kill()
	a.end()
	b.expect("blocked", "blocked", "blocked")
	b.Process.Kill()
	b.end()
	h.is()
}
