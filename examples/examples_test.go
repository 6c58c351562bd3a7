// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/internal/test/testlab"
	"gompi/mpitest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	mpitest.RemoveBuilt()
	os.Exit(code)
}

const matrix = "cg/testdata/bcsstk16.mtx.gz"

// settings is the numbers of ranks that every example runs with, over the
// default transports, and one of them over TCP.
var settings = []struct {
	ranks     int
	transport string
}{{1, ""}, {2, ""}, {3, ""}, {5, ""}, {3, "tcp"}}

// each runs an example in all settings; check sees what a clean end printed.
func each(t *testing.T, program string, args []string, check func(t *testing.T, ranks int, out string)) {
	path := mpitest.Build(t, "gompi/examples/"+program)
	for _, s := range settings {
		name := fmt.Sprint(s.ranks, " ranks")
		var opts []mpitest.ExecOption
		if s.transport != "" {
			name += " over " + s.transport
			opts = append(opts, mpitest.Env("GOMPI_TRANSPORT="+s.transport))
		}
		t.Run(name, func(t *testing.T) {
			if s.ranks == 3 { // nothing is wrong, or left
				opts = append(opts, mpitest.Flags("--check", "1"))
			}
			r := mpitest.Exec(t, s.ranks, append([]string{path}, args...), opts...)
			if r.Status != 0 || r.Stderr != "" {
				t.Fatalf("status %d, standard error:\n%s\nstandard output:\n%s", r.Status, r.Stderr, r.Stdout)
			}
			check(t, s.ranks, r.Stdout)
		})
	}
}

// match returns the groups of a pattern that the output must have.
func match(t *testing.T, out, pattern string) []string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no %s in:\n%s", pattern, out)
	}
	return m[1:]
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestHello(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	each(t, "hello", nil, func(t *testing.T, ranks int, out string) {
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		slices.Sort(lines)
		if len(lines) != ranks {
			t.Fatalf("%d lines:\n%s", len(lines), out)
		}
		for i, l := range lines {
			match(t, l, fmt.Sprintf(`^hello from rank %d of %d on %s, pid [0-9]+, GOMAXPROCS [0-9]+$`, i, ranks, regexp.QuoteMeta(host)))
		}
	})
}

func TestRing(t *testing.T) {
	each(t, "ring", []string{"--laps", "50"}, func(t *testing.T, ranks int, out string) {
		match(t, out, fmt.Sprintf(`^%d hops in 50 laps of %d ranks: [0-9.]+.?s per hop\n$`, 50*ranks, ranks))
	})
}

func TestPi(t *testing.T) {
	each(t, "pi", []string{"--steps", "100000"}, func(t *testing.T, ranks int, out string) {
		m := match(t, out, fmt.Sprintf(`^pi is 3\.14159265[0-9]+, error (\S+), by %d ranks with 100000 steps in \S+\n$`, ranks))
		// The midpoint rule's own error is 1/(12 steps²).
		if e := number(t, m[0]); e > 1e-11 {
			t.Errorf("error %g", e)
		}
	})
}

func TestCounter(t *testing.T) {
	each(t, "counter", []string{"--limit", "200000", "--task", "1000"}, func(t *testing.T, ranks int, out string) {
		match(t, out, fmt.Sprintf(`^17984 primes below 200000, by %d ranks with [0-9]+ to [0-9]+ tasks each in \S+\n$`, ranks))
	})
}

func TestHashtable(t *testing.T) {
	each(t, "hashtable", []string{"--inserts", "2000", "--keys", "300"}, func(t *testing.T, ranks int, out string) {
		// Each number is missed with a chance below 300 * exp(-2000/300).
		match(t, out, fmt.Sprintf(`^%d insertions of (29[0-9]|300) different numbers by %d ranks: \S+ each, [0-9.]+ places looked at\n$`, 2000*ranks, ranks))
	})
}

func TestStencil(t *testing.T) {
	each(t, "stencil", []string{"--n", "24", "--tol", "1e-7"}, func(t *testing.T, ranks int, out string) {
		m := match(t, out, `^24 x 24 points by ([0-9]+) x ([0-9]+) ranks: ([0-9]+) iterations, last change \S+, error (\S+), \S+ each\n$`)
		if number(t, m[0])*number(t, m[1]) != float64(ranks) {
			t.Errorf("%s x %s ranks, not %d", m[0], m[1], ranks)
		}
		// What is left is below the last change over 1 minus the iteration's
		// spectral radius, cos(pi/25).
		if e := number(t, m[3]); e > 1e-7/(1-math.Cos(math.Pi/25)) {
			t.Errorf("error %g after %s iterations", e, m[2])
		}
	})
}

func TestHeat(t *testing.T) {
	each(t, "heat", []string{"--n", "23", "--steps", "150"}, func(t *testing.T, ranks int, out string) {
		m := match(t, out, `^23 x 23 points by ([0-9]+) x ([0-9]+) ranks: 150 steps, error (\S+), \S+ each\n$`)
		if number(t, m[0])*number(t, m[1]) != float64(ranks) {
			t.Errorf("%s x %s ranks, not %d", m[0], m[1], ranks)
		}
		if e := number(t, m[2]); e > 1e-13 {
			t.Errorf("error %g", e)
		}
	})
}

func TestSamplesort(t *testing.T) {
	each(t, "samplesort", []string{"--keys", "3000"}, func(t *testing.T, ranks int, out string) {
		m := match(t, out, fmt.Sprintf(`^%d numbers sorted by %d ranks in \S+, ([0-9]+) to ([0-9]+) on each\n$`, 3000*ranks, ranks))
		if least, most := number(t, m[0]), number(t, m[1]); least > 3000 || most < 3000 || most > 4500 {
			t.Errorf("%g to %g numbers on a rank", least, most)
		}
	})
}

func TestCG(t *testing.T) {
	each(t, "cg", []string{matrix}, func(t *testing.T, ranks int, out string) {
		match(t, out, `(?m)^matrix +bcsstk16.mtx.gz: 4884 x 4884, 290378 nonzeros, \|b\| = 1\.04957999704689[0-9]+e\+10$`)
		match(t, out, fmt.Sprintf(`(?m)^ranks +%d, `, ranks))
		if n := number(t, match(t, out, `(?m)^iterations +([0-9]+)$`)[0]); n < 225 || n > 240 {
			t.Errorf("%g iterations, expected about 232", n)
		}
		for _, r := range match(t, out, `(?m)^residual +(\S+), recomputed (\S+)$`) {
			if number(t, r) >= 1e-10 {
				t.Errorf("residual %s", r)
			}
		}
		if e := match(t, out, `(?m)^error +(\S+) = `)[0]; number(t, e) >= 1e-8 {
			t.Errorf("error %s", e)
		}
		match(t, out, `(?m)^time +[0-9.]+.?s per iteration, `)
		b := match(t, out, `(?m)^bytes +([0-9]+) communicated: ([0-9]+) to distribute, ([0-9]+) in ghosts, ([0-9]+) in sums$`)
		if number(t, b[0]) != number(t, b[1])+number(t, b[2])+number(t, b[3]) {
			t.Errorf("bytes %v", b)
		}
		if ghosts := number(t, b[2]); (ghosts > 0) != (ranks > 1) {
			t.Errorf("%g bytes of ghosts between %d ranks", ghosts, ranks)
		}
	})
}

// withPlotter puts gompiplot into PATH.
func withPlotter(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(mpitest.Build(t, "gompi/cmd/gompiplot"), filepath.Join(dir, "gompiplot")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestCGPlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "residuals.svg")
	withPlotter(t)
	cg := mpitest.Build(t, "gompi/examples/cg")
	r := mpitest.Exec(t, 2, []string{cg, "--plot", file, "--tol", "1e-6", matrix})
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("status %d: %s", r.Status, r.Stderr)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(svg, []byte("<svg ")) || !bytes.Contains(svg, []byte("bcsstk16.mtx.gz, 2 ranks")) {
		t.Errorf("no plot of the run: %.200s", svg)
	}
}

// Failures: what the root says is the one line of the job, beside gompirun's
// own.
func TestCGFails(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "%%MatrixMarket matrix coordinate real symmetric\n"
	packed, err := os.ReadFile(matrix)
	if err != nil {
		t.Fatal(err)
	}
	cut := file("cut.mtx.gz", string(packed[:len(packed)/2]))
	header := file("header.mtx", "%MatrixMarket matrix coordinate real symmetric\n1 1 1\n1 1 1\n")
	index := file("index.mtx", head+"2 2 2\n1 1 1\n3 2 1\n")
	value := file("value.mtx", head+"2 2 2\n1 1 1\n2 2 NaN\n")
	indefinite := file("indefinite.mtx", head+"2 2 3\n1 1 1\n2 1 -3\n2 2 2\n")
	good := file("good.mtx", head+"2 2 2\n1 1 1\n2 2 2\n")
	short := file("b.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n")
	none := filepath.Join(dir, "none.mtx")
	cg := mpitest.Build(t, "gompi/examples/cg")
	withPlotter(t)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"truncated":     {[]string{cut}, `^rank 0: ` + regexp.QuoteMeta(cut) + `:[0-9]+: the compressed file is cut off$`},
		"wrong header":  {[]string{header}, `^rank 0: ` + regexp.QuoteMeta(header) + `:1: .*no Matrix Market header`},
		"index":         {[]string{index}, `^rank 0: ` + regexp.QuoteMeta(index) + `:4: row 3 is outside 1..2$`},
		"not finite":    {[]string{value}, `^rank 0: ` + regexp.QuoteMeta(value) + `:4: "NaN" is no finite value$`},
		"right side":    {[]string{good, "--rhs", short}, `^rank 0: ` + regexp.QuoteMeta(short) + `:4: the file ends after 1 of 2 values$`},
		"no file":       {[]string{none}, `^rank 0: open ` + regexp.QuoteMeta(none) + `: no such file or directory$`},
		"indefinite":    {[]string{indefinite}, `^rank 0: ` + regexp.QuoteMeta(indefinite) + `: iteration 1: .*not positive definite$`},
		"no plot":       {[]string{good, "--plot", none + "/x.svg"}, `^rank 0: open ` + regexp.QuoteMeta(none) + `/x.svg: `},
		"unfinished":    {[]string{matrix, "--max-iter", "3"}, `^rank 0: ` + matrix + `: no convergence to 1e-10 in 3 iterations$`},
		"unknown flag":  {[]string{good, "--fast"}, `^rank 0: unknown flag: --fast; cg --help lists the flags$`},
		"no matrix":     {nil, `^rank 0: 0 arguments, one is needed`},
		"bad tolerance": {[]string{good, "--tol", "0"}, `^rank 0: --tol 0 is not above 0$`},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			r := mpitest.Exec(t, 3, append([]string{cg}, c.args...))
			if d := time.Since(begin); d > testlab.Soon(5*time.Second) {
				t.Errorf("took %v", d)
			}
			if r.Status == 0 {
				t.Errorf("status 0")
			}
			lines := strings.Split(strings.TrimSuffix(r.Stderr, "\n"), "\n")
			own := slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "gompirun: ") })
			if len(own) != 1 || !regexp.MustCompile(c.says).MatchString(own[0]) {
				t.Errorf("want one line %s, got:\n%s", c.says, r.Stderr)
			}
		})
	}
}

func TestCGHelp(t *testing.T) {
	cg := mpitest.Build(t, "gompi/examples/cg")
	r := mpitest.Exec(t, 2, []string{cg, "--help"})
	if r.Status != 0 || r.Stderr != "" || strings.Count(r.Stdout, "Usage:") != 1 {
		t.Errorf("status %d, standard error %q, standard output:\n%s", r.Status, r.Stderr, r.Stdout)
	}
}

// What is asked for in another terminal is seen in the output, and no heat is lost.
func TestElastic(t *testing.T) {
	each(t, "elastic", []string{"--n", "50", "--steps", "20", "--pause", "0s"}, func(t *testing.T, ranks int, out string) {
		m := match(t, out, fmt.Sprintf(`^try: gompictl resize [0-9a-f]{16} \+2\n20 steps, 50 points by %d ranks, error (\S+): the end\n$`, ranks))
		if e := number(t, m[0]); e > 1e-13 {
			t.Errorf("error %g", e)
		}
	})
	r := start(t, "elastic", "--n", "7", "--steps", "1000000", "--pause", "1ms")
	size := 2
	for _, s := range []struct {
		ask string
		to  int
	}{{"+7", 9}, {"-6", 3}, {"=1", 1}, {"=4", 4}} {
		r.resize(s.ask, size, s.to)
		m := r.next(fmt.Sprintf(`^[0-9]+ steps, 7 points by %d ranks, error (\S+): %d ranks before$`, s.to, size))
		if e := number(t, m[0]); e > 1e-12 {
			t.Errorf("error %g by %d ranks", e, s.to)
		}
		size = s.to
	}
}

// The same by a timetable, and by lists of hosts that are looked at.
func TestElasticDecided(t *testing.T) {
	run, elastic := mpitest.Build(t, "gompi/cmd/gompirun"), mpitest.Build(t, "gompi/examples/elastic")
	hosts := filepath.Join(t.TempDir(), "hosts")
	write := func(n int) {
		t.Helper()
		if err := os.WriteFile(hosts+".new", fmt.Appendf(nil, "localhost slots=%d\n", n), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(hosts+".new", hosts); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		flags string
		sizes []int
	}{
		{"--schedule 0.1s:+3,3s:-4", []int{2, 5, 1}}, // what is late counts together with what comes then
		{"--discover cat~" + hosts, []int{2, 6, 3}},
		{"--hostfile " + hosts + " --watch-hostfile", []int{2, 4, 1}},
		{"--policy ascent --discover cat~" + hosts, []int{2, 5, 3}},
	} {
		t.Run(strings.Fields(c.flags)[0], func(t *testing.T) {
			write(c.sizes[0])
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			args := append(strings.Fields(c.flags), "-np", "2", elastic, "--n", "7", "--steps", "1000000", "--pause", "1ms")
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "~", " ")
			}
			job := exec.CommandContext(ctx, run, args...)
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
			for i, n := range c.sizes[1:] {
				write(n)
				lines.Scan()
				match(t, lines.Text(), fmt.Sprintf(`^[0-9]+ steps, 7 points by %d ranks, error (\S+): %d ranks before$`, n, c.sizes[i]))
			}
			job.Process.Signal(syscall.SIGTERM)
			for lines.Scan() {
			}
			if job.Wait(); strings.Contains(says.String(), "gompirun: --") { // the end of the job is no end of its own
				t.Errorf("standard error:\n%s", says.String())
			}
		})
	}
}

// A manager in Python drives a job.
func TestManager(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	run, elastic := mpitest.Build(t, "gompi/cmd/gompirun"), mpitest.Build(t, "gompi/examples/elastic")
	path := filepath.Join(t.TempDir(), "job")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job := exec.CommandContext(ctx, run, "-np", "2", "--slots", "6", "--manager", path, elastic, "--n", "7", "--steps", "1000000", "--pause", "1ms")
	out, err := job.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan() // it runs
	manager := func(args ...string) string {
		said, err := exec.CommandContext(ctx, python, append([]string{"rm/manager.py", "--every", "0", path}, args...)...).CombinedOutput()
		return fmt.Sprint(string(said), err)
	}
	if said := manager("2", "5", "1"); said != "2 -> 5 processes\n5 -> 1 processes\n<nil>" {
		t.Errorf("it says %s", said)
	}
	if said := manager("7"); said != "refused: 7 of 6 slots\nexit status 1" {
		t.Errorf("it says %s", said)
	}
	if said := manager("4"); said != "1 -> 4 processes\n<nil>" {
		t.Errorf("it says %s", said)
	}
	for _, n := range [][2]int{{2, 5}, {5, 1}, {1, 4}} {
		lines.Scan()
		match(t, lines.Text(), fmt.Sprintf(`^[0-9]+ steps, 7 points by %d ranks, error (\S+): %d ranks before$`, n[1], n[0]))
	}
	job.Process.Signal(syscall.SIGTERM)
	for lines.Scan() {
	}
	_ = job.Wait() // by a signal
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestPhases(t *testing.T) {
	each(t, "phases", []string{"--limit", "1000000", "--count", "4", "--check", "2"}, func(t *testing.T, ranks int, out string) {
		match(t, out, fmt.Sprintf(`^set-up by %d ranks in \S+\ncount by 4 ranks in \S+\ncheck by 2 ranks in \S+\n78498 primes up to 1000000\n$`, ranks))
	})
}

// One rank answers --help, and none fails. An argument that is no flag is refused.
func TestHelp(t *testing.T) {
	for _, name := range []string{"clientserver", "counter", "elastic", "hashtable", "heat", "phases", "pi", "pi_elastic", "ring", "samplesort", "stencil", "survive", "swe", "taskfarm"} {
		path := mpitest.Build(t, "gompi/examples/"+name)
		r := mpitest.Exec(t, 3, []string{path, "--help"})
		lines := strings.Split(r.Stderr, "\n")
		slices.Sort(lines)
		if n := len(lines); r.Status != 0 || r.Stdout != "" || n < 2 || len(slices.Compact(lines)) != n {
			t.Errorf("%s: status %d, standard output %q, standard error:\n%s", name, r.Status, r.Stdout, r.Stderr)
		}
		r = mpitest.Exec(t, 3, []string{path, "server"})
		if r.Status != 1 || r.Stdout != "" || !strings.Contains(r.Stderr, `arguments ["server"]`) {
			t.Errorf("%s server: status %d, standard output %q, standard error:\n%s", name, r.Status, r.Stdout, r.Stderr)
		}
	}
}

// Ranks die, also the first, and two in the same round.
func TestSurvive(t *testing.T) {
	each(t, "survive", []string{"--steps", "10000"}, func(t *testing.T, ranks int, out string) {
		m := match(t, out, `pi is ([\d.]+), error .*, by (\d+) of (\d+) ranks`)
		if math.Abs(number(t, m[0])-math.Pi) > 1e-9 || m[1] != strconv.Itoa(ranks) || m[2] != m[1] {
			t.Error(out)
		}
	})
	path := mpitest.Build(t, "gompi/examples/survive")
	for _, transport := range []string{"shm", "tcp"} {
		args := []string{path, "--steps", "1000", "--kill", "2@5", "--kill", "0@5", "--kill", "3@6"}
		r := mpitest.Exec(t, 5, args, mpitest.Flags("--ft", "--transport", transport))
		m := match(t, r.Stdout, `pi is ([\d.]+), error .*, by 2 of 5 ranks`)
		if r.Status != 0 || math.Abs(number(t, m[0])-math.Pi) > 1e-9 {
			t.Errorf("%s: status %d: %s%s", transport, r.Status, r.Stdout, r.Stderr)
		}
	}
}
