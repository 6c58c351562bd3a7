// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/mpitest"
)

// onHosts is how many ranks each agent of a job has, which are processes whose parents
// are agents; by the pids of these.
func onHosts(t *testing.T, mark string) []int {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	ranks := map[int]int{}
	for _, d := range dirs {
		env, _ := os.ReadFile("/proc/" + d.Name() + "/environ")
		if !bytes.Contains(env, []byte(mark)) || !bytes.Contains(env, []byte("GOMPI_TOKEN=")) {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + d.Name() + "/stat")
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && rest[0] != 'Z' {
			parent, _ := strconv.Atoi(strings.Fields(rest)[1])
			ranks[parent]++
		}
	}
	var list []int
	for _, n := range ranks {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// When a host goes from the list, the ranks on it go, whatever their numbers are, and
// others come where there are slots; when it comes back it counts again.
func TestElasticMoves(t *testing.T) {
	run, elastic := mpitest.Build(t, "gompi/cmd/gompirun"), mpitest.Build(t, "gompi/examples/elastic")
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	lists := [][2]int{{0, 4}, {3, 2}, {2, 0}, {1, 2}}
	for _, flags := range [][]string{nil, {"--policy", "ascent"}} {
		hosts := filepath.Join(t.TempDir(), "hosts")
		write := func(a, b int) {
			t.Helper()
			var text []byte
			for i, n := range []int{a, b} {
				if n > 0 {
					text = fmt.Appendf(text, "%s-%d slots=%d\n", own, i, n)
				}
			}
			if err := os.WriteFile(hosts+".new", text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(hosts+".new", hosts); err != nil {
				t.Fatal(err)
			}
		}
		mark := fmt.Sprintf("GOMPI_TEST_MOVES=%d-%d", os.Getpid(), time.Now().UnixNano())
		write(2, 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		args := append(flags, "--pretend-hosts", "2x2", "--discover", "cat "+hosts, "-np", "4", elastic, "--n", "64", "--steps", "1000000", "--pause", "1ms")
		job := exec.CommandContext(ctx, run, args...)
		job.Env = append(os.Environ(), mark)
		var says strings.Builder
		job.Stderr = &says
		out, err := job.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := job.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan()
		size := 4
		for _, s := range lists {
			a, b := s[0], s[1]
			write(a, b)
			n := a + b
			if !lines.Scan() {
				t.Fatalf("%v: the job is over: %s", s, says.String())
			}
			match(t, lines.Text(), fmt.Sprintf(`^[0-9]+ steps, 64 points by %d ranks, error (\S+): %d ranks before$`, n, size))
			size = n
			want := slices.DeleteFunc([]int{min(a, b), max(a, b)}, func(n int) bool { return n == 0 })
			var got []int
			for end := time.Now().Add(20 * time.Second); !slices.Equal(got, want); got = onHosts(t, mark) {
				if time.Now().After(end) {
					t.Fatalf("%v: agents have %v ranks, want %v", s, got, want)
				}
			}
		}
		lists = lists[:2]
		job.Process.Signal(syscall.SIGTERM)
		for lines.Scan() {
		}
		if job.Wait(); strings.Contains(says.String(), "gompirun: --") {
			t.Errorf("standard error:\n%s", says.String())
		}
	}
}
