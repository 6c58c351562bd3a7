// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/mpitest"
)

// running is a job of two ranks at first, whose first line says how it is resized.
type running struct {
	t     *testing.T
	ctx   context.Context
	lines *bufio.Scanner
	ctl   string
	name  string
}

// start starts a program, which ends with the test at the latest.
func start(t *testing.T, program string, args ...string) *running {
	t.Helper()
	r := launch(t, append([]string{"-np", "2", mpitest.Build(t, "gompi/examples/"+program)}, args...)...)
	r.name = r.next(`^try: gompictl resize ([0-9a-f]+) \+2$`)[0]
	return r
}

// launch starts a job.
func launch(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	job := exec.CommandContext(ctx, mpitest.Build(t, "gompi/cmd/gompirun"), args...)
	job.Stderr = t.Output()
	out, err := job.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		job.Process.Signal(syscall.SIGTERM)
		job.Wait()
		cancel()
	})
	return &running{t: t, ctx: ctx, lines: bufio.NewScanner(out), ctl: mpitest.Build(t, "gompi/cmd/gompictl")}
}

// next is what a pattern finds in the next line.
func (r *running) next(pattern string) []string {
	r.t.Helper()
	r.lines.Scan()
	return match(r.t, r.lines.Text(), pattern)
}

// tell runs gompictl.
func (r *running) tell(args ...string) string {
	r.t.Helper()
	said, err := exec.CommandContext(r.ctx, r.ctl, args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %v\n%s", args, err, said)
	}
	return string(said)
}

// resize changes the main set.
func (r *running) resize(ask string, from, to int) {
	r.t.Helper()
	if said := r.tell("resize", r.name, ask); !strings.Contains(said, fmt.Sprintf("gompi://main: %d -> %d processes, committed", from, to)) {
		r.t.Fatalf("%s: %s", ask, said)
	}
}

// What top sees is what the program does: two ranks exchange messages of 8 bytes.
func TestTopSeesElastic(t *testing.T) {
	r := start(t, "elastic", "--n", "7", "--steps", "1000000", "--pause", "1ms")
	ranks := 0
	for l := range strings.Lines(r.tell("top", r.name, "--json")) {
		var p struct {
			Top, Name      string
			Rank, PID      int
			Sent, Received uint64
			SentBytes      uint64   `json:"sent_bytes"`
			ReceivedBytes  uint64   `json:"received_bytes"`
			SentRate       *float64 `json:"sent_per_sec"`
			ReceivedRate   *float64 `json:"received_bytes_per_sec"`
			CPU            *float64
			Memory         int64 `json:"memory_bytes"`
		}
		if err := json.Unmarshal([]byte(l), &p); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		if p.Top != "process" {
			continue
		}
		ranks++
		if p.Sent == 0 || p.SentBytes != 8*p.Sent || p.Received == 0 || p.ReceivedBytes != 8*p.Received || p.SentRate == nil || *p.SentRate <= 0 ||
			p.ReceivedRate == nil || *p.ReceivedRate <= 0 || p.CPU == nil || p.Memory < 1e6 || p.PID <= 0 {
			t.Errorf("line %s", l)
		}
	}
	if ranks != 2 {
		t.Errorf("%d ranks", ranks)
	}
}

// However many there are, each rectangle is counted once.
func TestPiElastic(t *testing.T) {
	each(t, "pi_elastic", []string{"--rounds", "20", "--steps", "1000", "--pause", "0s"}, func(t *testing.T, ranks int, out string) {
		m := match(t, out, fmt.Sprintf(`^try: gompictl resize [0-9a-f]{16} \+2\n20 rounds by %d ranks, sum 3\.14159265[0-9]+, error (\S+): the end\n$`, ranks))
		if e := number(t, m[0]); e > 1e-9 {
			t.Errorf("error %g", e)
		}
	})
	const rounds, steps = 1_000_000, 10
	r := start(t, "pi_elastic", "--rounds", strconv.Itoa(rounds), "--steps", strconv.Itoa(steps), "--pause", "1ms")
	size := 2
	for _, s := range []struct {
		ask string
		to  int
	}{{"+5", 7}, {"-4", 3}, {"=1", 1}, {"=4", 4}} {
		r.resize(s.ask, size, s.to)
		m := r.next(fmt.Sprintf(`^([0-9]+) rounds by %d ranks, sum (\S+): %d ranks before$`, s.to, size))
		want := 0.0
		for round := range int(number(t, m[0])) {
			for i := range steps {
				x := (float64(i*rounds+round) + 0.5) / (rounds * steps)
				want += 4 / (1 + x*x) / (rounds * steps)
			}
		}
		if got := number(t, m[1]); math.Abs(got-want) > 1e-11 {
			t.Errorf("%s rounds: sum %v, want %v", m[0], got, want)
		}
		size = s.to
	}
}

// Whoever comes and goes, each task is done once.
func TestTaskfarm(t *testing.T) {
	each(t, "taskfarm", []string{"--limit", "10000", "--task", "100", "--pause", "0s"}, func(t *testing.T, ranks int, out string) {
		match(t, out, fmt.Sprintf(`^try: gompictl resize [0-9a-f]{16} \+2\nbelow 10000 the longest sequence begins with 6171: 261 steps; 100 tasks by %d to %d ranks\n$`, ranks, ranks))
	})
	r := start(t, "taskfarm", "--limit", "200000", "--task", "50", "--pause", "1ms")
	size := 2
	for _, s := range []struct {
		ask string
		to  int
	}{{"+2", 4}, {"=1", 1}, {"+4", 5}, {"-2", 3}, {"+3", 6}} {
		r.resize(s.ask, size, s.to)
		r.next(fmt.Sprintf(`^[0-9]+ tasks done, %d ranks, %d before$`, s.to, size))
		size = s.to
	}
	r.next(`^below 200000 the longest sequence begins with 156159: 382 steps; 4000 tasks by 1 to 6 ranks$`)
}

// Servers and clients are killed, and all answers come.
func TestClientServer(t *testing.T) {
	path := mpitest.Build(t, "gompi/examples/clientserver")
	for _, transport := range []string{"shm", "tcp"} {
		r := launch(t, "--ft", "--transport", transport, "-np", "2", path, "--serve", "--idle", "1s", ":", "-np", "3", path, "--requests", "150", "--numbers", "100", "--pause", "10ms")
		seen := map[string][]string{} // pids by what they say
		until := func(what string, n int) []string {
			t.Helper()
			for len(seen[what]) < n {
				if !r.lines.Scan() {
					t.Fatalf("%s: only %d times %q: %v", transport, len(seen[what]), what, seen)
				}
				m := regexp.MustCompile(`^(?:server|client) ([0-9]+): (.*?)( at gompi-port:\S+)?( after [0-9]+ answers)?(: gompi: .*)?$`).FindStringSubmatch(r.lines.Text())
				if m == nil {
					t.Fatalf("%s: line %q", transport, r.lines.Text())
				}
				seen[m[2]] = append(seen[m[2]], m[1])
			}
			return seen[what]
		}
		until("a client comes", 3)
		kill(t, until("serves as sort", 1)[0])
		until("a client comes", 6)
		clients := slices.Clone(until("is connected", 6)[3:])
		kill(t, clients[0])
		until("a client is lost", 1)
		done := until("150 answers, 1 servers lost", 2)
		until("a client leaves", 2)
		if servers := seen["serves as sort"]; len(servers) != 2 || servers[0] == servers[1] || slices.Contains(done, clients[0]) {
			t.Errorf("%s: %v", transport, seen)
		}
		if r.lines.Scan() {
			t.Errorf("%s: then %q", transport, r.lines.Text())
		}
	}
}

func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err == nil {
		err = syscall.Kill(n, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The two programs are jobs of their own: a port goes from one to the other as text. When
// the server is killed the clients say so.
func TestClientServerOfTwoJobs(t *testing.T) {
	path := mpitest.Build(t, "gompi/examples/clientserver")
	server := launch(t, "-np", "1", path, "--serve", "--idle", "30s")
	m := server.next(`^server ([0-9]+): serves as sort at (gompi-port:\S+)$`)
	r := mpitest.Exec(t, 3, []string{path, "--port", m[1], "--requests", "20", "--pause", "0s"})
	if n := strings.Count(r.Stdout, ": 20 answers, 0 servers lost\n"); r.Status != 0 || n != 3 {
		t.Fatalf("status %d, %d of 3 clients\n%s%s", r.Status, n, r.Stdout, r.Stderr)
	}
	// Patience ends within Connect.
	if r := mpitest.Exec(t, 1, []string{path, "--port", m[1], "--patience", "1ns"}); r.Status != 1 || !strings.Contains(r.Stderr, "no server is at gompi-port:") {
		t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	ended := make(chan mpitest.Result, 1)
	go func() {
		ended <- mpitest.Exec(t, 1, []string{path, "--port", m[1], "--requests", "1000000", "--pause", "1ms", "--patience", "200ms"})
	}()
	for seen := 0; seen < 4; { // of both jobs
		if !server.lines.Scan() {
			t.Fatal("the server has ended")
		}
		if strings.HasSuffix(server.lines.Text(), ": a client comes") {
			seen++
		}
	}
	kill(t, m[0])
	if r := <-ended; r.Status != 1 || !strings.Contains(r.Stderr, "no server is at gompi-port:") {
		t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
}
