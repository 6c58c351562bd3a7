// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gompi/mpitest"
)

// several is a head of several jobs and what happens under it.
type several struct {
	t              *testing.T
	run, ctl       string
	name, mark     string // the head, and what is in the environment of all its processes
	slots          int
	head           *exec.Cmd
	changes, fewer int // sizes that jobs have changed to, and to smaller ones
	ended, killed  int
	most           int // processes at a time
	looks          int
}

// processes are the pids of those that run under the head, but for gompiruns.
func (s *several) processes() map[int]bool {
	list := map[int]bool{}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + d.Name() + "/environ")
		if !bytes.Contains(env, []byte(s.mark)) || !bytes.Contains(env, []byte("GOMPI_TOKEN=")) {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + d.Name() + "/stat")
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && rest[0] != 'Z' && rest[0] != 'X' {
			list[pid] = true
		}
	}
	return list
}

// look holds what runs, and what the head says, to the slots. Those of two lists ran at
// the same time.
func (s *several) look() {
	s.t.Helper()
	before, after, n := s.processes(), s.processes(), 0
	for pid := range before {
		if after[pid] {
			n++
		}
	}
	s.most = max(s.most, n)
	s.looks++
	if n > s.slots {
		s.t.Errorf("%d processes run, of %d slots:\n%s", n, s.slots, s.queue())
	}
	q := s.queue()
	m := regexp.MustCompile(`: (\d+) of (\d+) slots are taken`).FindStringSubmatch(q)
	if m == nil {
		s.t.Fatalf("the queue is %s", q)
	}
	if taken, _ := strconv.Atoi(m[1]); taken > s.slots || m[2] != fmt.Sprint(s.slots) {
		s.t.Errorf("the head gives out more than %d slots: %s", s.slots, q)
	}
}

func (s *several) queue() string {
	out, err := exec.Command(s.ctl, "queue", s.name).CombinedOutput()
	if err != nil {
		s.t.Fatalf("gompictl queue: %v, %s", err, out)
	}
	return string(out)
}

var resized = regexp.MustCompile(`(?m)by (\d+) ranks, error \S+: (\d+) ranks before$`)

// job brings one, and waits for its end; kill: after this time somebody kills its
// gompirun.
func (s *several) job(mu *sync.Mutex, program, scaling string, start, steps int, kill time.Duration) {
	cmd := exec.Command(s.run, "--to", s.name, "-np", fmt.Sprint(start), "--min", "1", "--max", "6", "--col", scaling,
		program, "--n", "64", "--steps", fmt.Sprint(steps), "--pause", "2ms")
	cmd.Env = append(os.Environ(), s.mark)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, 10*time.Second
	if err := cmd.Start(); err != nil {
		s.t.Error(err)
		return
	}
	if kill > 0 {
		defer time.AfterFunc(kill, func() { cmd.Process.Kill() }).Stop()
	}
	hung := time.AfterFunc(3*time.Minute, func() {
		cmd.Process.Signal(syscall.SIGQUIT)
		time.Sleep(3 * time.Second) //archtest:sleep the report of what hangs
		cmd.Process.Kill()
	})
	err := cmd.Wait()
	mu.Lock()
	defer mu.Unlock()
	s.ended++
	died := cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled()
	switch {
	case !hung.Stop():
		s.t.Errorf("a job of %d processes and %d steps hangs:\n%s", start, steps, errs.String())
	case died && kill > 0:
		s.killed++
	case err != nil:
		s.t.Errorf("a job of %d processes and %d steps: %v\n%s%s", start, steps, err, errs.String(), out.String())
	}
	for _, m := range resized.FindAllStringSubmatch(out.String(), -1) {
		to, _ := strconv.Atoi(m[1])
		from, _ := strconv.Atoi(m[2])
		if s.changes++; to < from {
			s.fewer++
		}
	}
}

// Several jobs of one head, which follow changes, come, go and are killed: they grow and
// shrink each other, and never more processes run than there are slots. GOMPI_TEST=long:
// for ten minutes.
func TestSoakHeads(t *testing.T) {
	lasts, atOnce := 4*time.Second, 3
	if os.Getenv("GOMPI_TEST") == "long" {
		lasts, atOnce = 10*time.Minute, 5
	}
	s := &several{t: t, slots: 7, name: fmt.Sprintf("soak-%x", rand.Uint64())}
	s.mark = "GOMPI_TEST_HEAD=" + s.name
	s.run, s.ctl = mpitest.Build(t, "gompi/cmd/gompirun"), mpitest.Build(t, "gompi/cmd/gompictl")
	program := mpitest.Build(t, "gompi/examples/elastic")
	scaling := filepath.Join(t.TempDir(), "col")
	if err := os.WriteFile(scaling, []byte(`{"version":1,"model":{"kind":"amdahl","serial":0.1,"parallel":1},"cost":"0.01"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.head = exec.Command(s.run, "--head="+s.name, "--slots", fmt.Sprint(s.slots), "--policy", "ascent")
	s.head.Stderr = os.Stderr
	if err := s.head.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		s.head.Process.Kill()
		s.head.Wait()
	}()
	for i := 0; exec.Command(s.ctl, "queue", s.name).Run() != nil; i++ {
		if i == 1000 {
			t.Fatal("there is no head")
		}
	}
	var mu sync.Mutex
	var jobs sync.WaitGroup
	over := time.Now().Add(lasts)
	few := func() bool { // a slow machine needs longer
		mu.Lock()
		defer mu.Unlock()
		return s.changes < 2 && time.Since(over) < time.Minute
	}
	for k := range atOnce {
		jobs.Go(func() {
			r := rand.New(rand.NewPCG(uint64(k), 7))
			for (time.Now().Before(over) || few()) && !t.Failed() {
				kill := time.Duration(0)
				if r.IntN(4) == 0 {
					kill = time.Duration(r.IntN(1500)) * time.Millisecond
				}
				s.job(&mu, program, scaling, 1+r.IntN(4), 50+r.IntN(400), kill)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		jobs.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(50 * time.Millisecond):
			s.look()
		}
	}
	// The slots are free, and nothing is left, but for what the guardian of a killed one is
	// about to end.
	for i := 0; !strings.Contains(s.queue(), ": 0 of 7 slots"); i++ {
		if i == 1000 {
			t.Fatalf("slots are taken: %s", s.queue())
		}
	}
	for end := time.Now().Add(20 * time.Second); ; {
		left := s.processes()
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("%d processes are left", len(left))
			break
		}
	}
	t.Logf("%d jobs, %d of them killed; %d changes of size, %d to fewer; at most %d of %d slots in %d looks", s.ended, s.killed, s.changes, s.fewer, s.most, s.slots, s.looks)
	if s.changes < 2 || s.ended < atOnce || s.most < s.slots/2 {
		t.Error("nothing has happened")
	}
	if err := s.head.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if s.head.Wait(); s.head.ProcessState.ExitCode() != 130 {
		t.Errorf("the head ends with %v", s.head.ProcessState)
	}
}
