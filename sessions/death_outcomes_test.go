// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sessions_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpitest"
)

// outcomes are how the changes of a job ended, by their results, as its processes have
// printed it. All must say the same.
func outcomes(t *testing.T, output string) map[string]string {
	ends := map[string]string{}
	for line := range strings.Lines(output) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != "change" {
			continue
		}
		end := f[2] + " in iteration " + f[3]
		if was, ok := ends[f[1]]; ok && was != end {
			t.Errorf("%s is %s, and %s", f[1], was, end)
		}
		ends[f[1]] = end
	}
	return ends
}

// expected are the lines that gompirun prints of processes that were killed.
var expected = regexp.MustCompile(`^gompirun: \S.* \(pid \d+\) was killed by signal 9 \(SIGKILL\) after .*(; the job goes on)?$` +
	`|^gompirun: the agent of host \d is lost: .* gone with it(; the job goes on)?$` +
	// A newcomer that was lost with its host, when its change proves to be committed.
	`|^gompirun: \S.* \(pid \d+\): the agent of host \d is lost: .*; the job goes on$`)

// odd are the lines of a job's errors that are not expected.
func odd(errs string) (lines []string) {
	for line := range strings.Lines(errs) {
		if !expected.MatchString(strings.TrimSpace(line)) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestSoakDeaths: processes of jobs that grow and shrink kill themselves, in any role
// and step, and some their agent. The others recover, each change ends in one way for
// all who were handed it, the job comes to its end and nothing is left.
func TestSoakDeaths(t *testing.T) {
	jobs := testlab.Rounds(9, 300)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seed := testlab.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	began := time.Now()
	committed, rolledBack, lost, statuses := 0, 0, 0, map[int]int{}
	for k := range jobs {
		mark := testlab.NewMark()
		options, flags := "", []string{"--ft", "--leave-timeout", "30s"}
		switch k % 3 {
		case 0:
			flags = append(flags, "--transport", "shm")
		case 1:
			flags = append(flags, "--transport", "tcp")
		case 2:
			flags = append(flags, "--pretend-hosts", fmt.Sprintf("2x%d", 3+rng.IntN(3)))
			options = "a"
		}
		for _, o := range []string{"P", "H", "t"} {
			if rng.IntN(4) == 0 {
				options += o
			}
		}
		if rng.IntN(4) == 0 {
			flags = append(flags, "--spare", "2")
		}
		if rng.IntN(4) == 0 {
			flags = append(flags, "--slots", "8")
		}
		of := rng.Uint64()
		n := 1 + rng.IntN(5)
		r := mpitest.Exec(t, n, []string{self, "rank", "dies"}, mpitest.Flags(flags...), mpitest.Timeout(time.Minute),
			mpitest.Env(mark.Env(), fmt.Sprint(diesSeed, "=", of), diesOptions+"="+options))
		ends := outcomes(t, r.Stdout)
		for _, end := range ends {
			if strings.HasPrefix(end, "committed") {
				committed++
			} else {
				rolledBack++
			}
		}
		if !strings.Contains(r.Stdout, "size ") {
			lost++
		}
		statuses[r.Status]++
		lines := odd(r.Stderr)
		if mark.Gone(t, testlab.Soon(2*time.Second)); t.Failed() || lines != nil {
			t.Errorf("job %d of %d, %v, options %q, %s=%d: status %d, %q\n%s%s", k, n, flags, options, diesSeed, of, r.Status, lines, r.Stdout, r.Stderr)
			break
		}
	}
	t.Logf("%d jobs in %v: %d changes committed, %d rolled back; in %d nobody came to the end; statuses %v", jobs, time.Since(began).Round(time.Second), committed, rolledBack, lost, statuses)
	if committed == 0 || rolledBack == 0 {
		t.Errorf("%d changes committed, %d rolled back", committed, rolledBack)
	}
}
