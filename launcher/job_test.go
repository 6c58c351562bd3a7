// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/launch"
)

// Every job of the table must end with this status, this standard error (a
// regular expression for all of it) and sorted standard output.
func TestHowJobsEnd(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "noshebang")
	if err := os.WriteFile(script, []byte("echo hi\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hi\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const after = ` after (\d+ ms|\d+\.\d s)\n$`
	for _, c := range []struct {
		args   string
		status int
		stderr string
		stdout string
	}{
		{"-np 1 RANK nothing", 0, `^$`, ""},
		{"-np 5 RANK nothing", 0, `^$`, ""},
		{"-np 5 RANK good", 0, `^$`, ""},
		{"-np 3 echo hi", 0, `^$`, "hi hi hi"},
		{"-np 2 RANK lines a 2 : -np 1 RANK lines b 1", 0, `^$`, "a,0, a,0, a,1,a a,1,a b,0,"},
		{"-np 1 --tag echo hi : -np 2 --tag=false echo ho", 2, `before the first program`, ""},
		{"--tag -np 1 echo hi : -np 1 echo ho", 0, `^$`, "[0],hi [1],ho"},
		{"--eager 77 -np 2 -x GOMAXPROCS=1 RANK report", 0, `^$`, "0,2,0,77,false 1,2,0,77,false"},

		{"-np 3 RANK exit 3", 3, `^gompirun: rank \d \(pid \d+\) exited with status 3` + after, ""},
		{"-np 2 RANK block : -np 1 RANK exit 4", 4, `^gompirun: rank 2 \(pid \d+\) exited with status 4` + after, "?"},
		{"-np 2 RANK block : -np 1 RANK kill 9", 137, `^gompirun: rank 2 \(pid \d+\) was killed by signal 9 \(SIGKILL\)` + after, "?"},
		{"-np 2 RANK wait : -np 1 RANK kill 15", 143, `^gompirun: rank 2 \(pid \d+\) was killed by signal 15 \(SIGTERM\)` + after, "?"},
		{"-np 3 RANK nofinalize", 1, `^gompirun: rank 2 \(pid \d+\) exited without calling Finalize` + after, ""},
		{"-np 2 RANK wait : -np 1 RANK nothing", 1, `^gompirun: rank 2 \(pid \d+\) exited with status 0 without calling Init, and other ranks wait for it` + after, ""},
		{"-np 3 RANK late", 7, `^gompirun: rank 2 \(pid \d+\) exited with status 7` + after, ""},
		{"-np 3 RANK abort 5", 5, `^gompirun: rank 2 \(pid \d+\) called Abort\(5\): enough\n$`, ""},
		{"-np 3 RANK abort 0", 1, `^gompirun: rank 2 \(pid \d+\) called Abort\(0\): enough\n$`, ""},
		{"-np 3 --ft RANK die", 0, `^gompirun: rank 2 \(pid \d+\) was killed by signal 9 \(SIGKILL\) after (\d+ ms|\d+\.\d s); the job goes on\n$`, "?"},
		{"-np 2 --ft RANK kill 9", 137, `(the job goes on\n.*){2}`, ""},
		{"-np 3 --ft RANK abort 3", 3, `called Abort\(3\)`, ""},

		{"-np 2 no-such-program-here", 127, `^gompirun: no such program: no-such-program-here is neither on the PATH nor in .*\n$`, ""},
		{"-np 2 /no/such/program", 127, `^gompirun: no such program: /no/such/program\n$`, ""},
		{"-np 2 " + text, 126, `^gompirun: cannot run .*text: it is not executable\n$`, ""},
		{"-np 2 " + dir, 126, `^gompirun: cannot run .*: it is a directory\n$`, ""},
		{"-np 2 " + script, 126, `^gompirun: cannot start rank [01]: .*noshebang: exec format error \(.*\)\n$`, ""},
		{"-np 1 RANK wait : -np 1 /no/such/program", 127, `no such program`, ""},
		{"-np 2 --wdir /no/such/dir RANK nothing", 1, `^gompirun: the directory in which processes start, /no/such/dir, is not there: .*no such file or directory\n$`, ""},
		{"--wdir " + dir + " -np 1 pwd", 0, `^$`, dir},
		{"--no-such-flag x", 2, `^gompirun: unknown flag: --no-such-flag\nTry gompirun --help\.\n$`, ""},

		{"-np 1 RANK badparent", 0, `^$`, "error:,true"},
	} {
		t.Run(c.args, func(t *testing.T) {
			r := gompirun(t, strings.Fields(c.args)...)
			if r.status != c.status {
				t.Errorf("status %d, want %d", r.status, c.status)
			}
			if !regexp.MustCompile("(?s)" + c.stderr).MatchString(r.stderr) {
				t.Errorf("stderr %q, want %s", r.stderr, c.stderr)
			}
			lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(r.stdout, " ", ","), "\n"), "\n")
			slices.Sort(lines)
			if got := strings.Join(lines, " "); c.stdout != "?" && got != c.stdout {
				t.Errorf("stdout %q, want %q", got, c.stdout)
			}
		})
	}
}

// What joined has ended, and what was started runs on: the job does not.
func TestProgramBehindWrapper(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const gone = `^gompirun: rank 1 \(pid (\d+)\): the program that called Init ended without calling Finalize after .*; pid \d+ runs on`
	for _, c := range []struct {
		what   []string
		status int
		stderr string
	}{
		{[]string{"sh", "-c", `"$0" rank nofinalize; sleep 60`, self}, 1, gone + `\n$`},
		{[]string{"RANK", "become"}, 1, gone + `\n$`},
		// Who runs on for a moment may say how it ended.
		{[]string{"sh", "-c", `"$0" rank nofinalize; exit 5`, self}, 5, `^gompirun: rank 1 \(pid \d+\) exited with status 5`},
	} {
		r := gompirun(t, append([]string{"-np", "1", "RANK", "wait", ":", "-np", "1"}, c.what...)...)
		if r.status != c.status || !regexp.MustCompile(c.stderr).MatchString(r.stderr) || r.took > 30*time.Second {
			t.Errorf("%q: status %d after %v, stderr %q; want %d, %s", c.what, r.status, r.took, r.stderr, c.status, c.stderr)
		}
	}
	// One that has left in order is missed by nobody, however long its wrapper runs.
	r := gompirun(t, "-np", "2", "sh", "-c", `"$0" rank idle; sleep 1.5`, self)
	if r.status != 0 || r.stderr != "" {
		t.Errorf("idle: %+v", r)
	}
	r = gompirun(t, "--ft", "-np", "1", "RANK", "die", ":", "-np", "1", "sh", "-c", `"$0" rank die; sleep 2`, self)
	if r.status != 0 || !strings.HasSuffix(r.stderr, "runs on; the job goes on\n") || strings.Count(r.stderr, "gompirun: ") != 1 {
		t.Errorf("--ft: %+v", r)
	}
}

func TestSpawnedProcesses(t *testing.T) {
	r := gompirun(t, "--tag", "-np", "1", "RANK", "parent")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	slices.Sort(lines)
	want := []string{"[0] spawned 3", "[p2.0] child 0 3 1", "[p3.1] child 1 3 1", "[p4.2] child 2 3 1"}
	if r.status != 0 || !slices.Equal(lines, want) {
		t.Errorf("status %d, stdout %q, stderr %q", r.status, lines, r.stderr)
	}
}

// Processes that come and go leave no descriptor in gompirun.
func TestChurn(t *testing.T) {
	r := gompirun(t, "-np", "1", "RANK", "churn")
	if r.status != 0 || r.stderr != "" || strings.Contains(r.stdout, "descriptors") || strings.Count(r.stdout, "child") != 60 {
		t.Errorf("%+v", r)
	}
}

func TestKillGrace(t *testing.T) {
	r := gompirun(t, "--kill-grace", "300ms", "-np", "1", "RANK", "stubborn", ":", "-np", "1", "sh", "-c", "read x </dev/null; sleep 0.2; exit 6")
	if r.status != 6 || r.took < 400*time.Millisecond || r.took > 10*time.Second {
		t.Errorf("status %d after %v, stderr %q", r.status, r.took, r.stderr)
	}
}

func TestTimeoutReports(t *testing.T) {
	r := gompirun(t, "--timeout", "3", "--kill-grace", "0.1", "-np", "2", "RANK", "wait", ":", "-np", "1", "RANK", "stubborn")
	if r.status != launch.ExitTimeout {
		t.Errorf("status %d, want %d", r.status, launch.ExitTimeout)
	}
	for _, want := range []string{"did not end within 3s (--timeout)", "queue of 0", "stack of 1", "has not called Init"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in the report:\n%s", want, r.stderr)
		}
	}
}

func TestVerboseAndBinding(t *testing.T) {
	r := gompirun(t, "-v", "--bind", "core", "-np", "2", "grep", "Cpus_allowed_list", "/proc/self/status")
	if r.status != 0 || strings.Count(r.stderr, "GOMAXPROCS") != 2 {
		t.Fatalf("status %d, stderr %q", r.status, r.stderr)
	}
	for line := range strings.Lines(r.stderr) {
		m := regexp.MustCompile(`cpus (\S+), `).FindStringSubmatch(line)
		if m == nil || !strings.Contains(r.stdout, "\t"+m[1]+"\n") {
			t.Errorf("%q, but the ranks say %q", line, r.stdout)
		}
	}
}

func TestOutputFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r := gompirun(t, "--output", dir, "-np", "2", "sh", "-c", "printf out; echo err >&2")
	if r.status != 0 || r.stdout+r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	for name, want := range map[string]string{"rank.0.stdout": "out", "rank.1.stdout": "out", "rank.0.stderr": "err\n", "rank.1.stderr": "err\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A file that cannot be written ends the job, however little was lost and
// however the ranks take it.
func TestOutputFileOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "rank.1.stdout")
	if err := os.Symlink("/dev/full", file); err != nil {
		t.Fatal(err)
	}
	want := "gompirun: cannot write to " + file + ": no space left on device\n"
	if r := gompirun(t, "--output", dir, "-np", "2", "sh", "-c", "echo out"); r.status != 1 || r.stderr != want {
		t.Errorf("%+v", r)
	}
	r := gompirun(t, "--output", dir, "--kill-grace", "100ms", "-np", "2", "--ft", "RANK", "block")
	if r.status != 1 || r.stderr != want {
		t.Errorf("%+v", r)
	}
}

func TestNothingIsInherited(t *testing.T) {
	// What came to us from outside is not ours to close.
	alone := command(t)
	alone.Args = []string{alone.Path, "rank", "fds"}
	want := finish(t, alone)
	if got := gompirun(t, "-np", "1", "RANK", "fds"); got.status != 0 || got.stdout != want.stdout {
		t.Errorf("status %d, %s, alone %s", got.status, got.stdout, want.stdout)
	}
	own := command(t, "-np", "1", "sh", "-c", "ulimit -Sn")
	own.Path, own.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -Sn 123; exec "$@"`, "sh"}, own.Args...)
	if r := finish(t, own); r.stdout != "123\n" {
		t.Errorf("soft limit of open files in a rank: %q, want 123", r.stdout)
	}
}

func TestMaxProcs(t *testing.T) {
	f := maxProcs(&launch.Options{}, 8)
	if os.Getenv("GOMAXPROCS") == "" && (f(1) != 8 || f(3) != 2 || f(16) != 2 || f(0) != 8) {
		t.Errorf("%d %d %d %d", f(1), f(3), f(16), f(0))
	}
	if f := maxProcs(&launch.Options{Apps: []launch.App{{Env: []string{"GOMAXPROCS=1"}}}}, 8); f(2) != 0 {
		t.Error("the user's GOMAXPROCS is not respected")
	}
}

func TestProcessesKnowThemselves(t *testing.T) {
	const show = `echo $GOMPI_RANK/$GOMPI_SIZE $GOMPI_LOCAL_RANK/$GOMPI_LOCAL_SIZE ${#GOMPI_JOB}`
	sorted := func(text string) []string {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(lines)
		return lines
	}
	r := gompirun(t, "-np", "1", "sh", "-c", show, ":", "-np", "2", "sh", "-c", show)
	if got := sorted(r.stdout); r.status != 0 || !slices.Equal(got, []string{"0/3 0/3 16", "1/3 1/3 16", "2/3 2/3 16"}) {
		t.Errorf("%q, %+v", got, r)
	}
	// A world of its own, on a host where one is already.
	r = gompirun(t, "-np", "1", "RANK", "spawns", "sh", "-c", show)
	if got := sorted(r.stdout); r.status != 0 || !slices.Equal(got, []string{"0/2 1/3 16", "1/2 2/3 16"}) {
		t.Errorf("%q, %+v", got, r)
	}
}
