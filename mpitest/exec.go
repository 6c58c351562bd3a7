// SPDX-License-Identifier: Apache-2.0

package mpitest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Result is how a job of real processes ended.
type Result struct {
	Stdout, Stderr string
	Status         int // gompirun's exit status
}

// ExecOption changes how Exec runs a job.
type ExecOption func(*execConfig)

type execConfig struct {
	flags   []string
	env     []string
	stdin   []byte
	timeout time.Duration
}

// Flags adds flags of gompirun.
func Flags(flags ...string) ExecOption {
	return func(c *execConfig) { c.flags = append(c.flags, flags...) }
}

// Env adds NAME=VALUE to the environment of gompirun and so of all ranks.
func Env(kv ...string) ExecOption { return func(c *execConfig) { c.env = append(c.env, kv...) } }

// Stdin is the input of gompirun.
func Stdin(b []byte) ExecOption { return func(c *execConfig) { c.stdin = b } }

// Timeout bounds the job. After it gompirun prints which ranks are blocked in which calls,
// and fails. The default is one minute.
func Timeout(d time.Duration) ExecOption { return func(c *execConfig) { c.timeout = d } }

// built caches built programs for the life of the test binary.
var built struct { //archtest:global what was built, for the life of a test binary
	sync.Mutex
	dir   string
	paths map[string]string
	err   error
}

// Build builds a program once per test binary and returns the path of the
// executable. pkg is what go build takes in the directory of the test: a path
// of a package of the module or of one that it needs ("gompi/cmd/gompirun"), or
// "." for the program beside the test.
func Build(tb testing.TB, pkg string) string {
	tb.Helper()
	built.Lock()
	defer built.Unlock()
	if built.err != nil {
		tb.Fatal(built.err)
	}
	if p, ok := built.paths[pkg]; ok {
		return p
	}
	if built.dir == "" {
		built.dir, built.err = os.MkdirTemp("", "mpitest")
		built.paths = map[string]string{}
	}
	name, err := filepath.Abs(pkg) // also of "."
	if err != nil {
		tb.Fatal(err)
	}
	out := filepath.Join(built.dir, fmt.Sprintf("%d-%s", len(built.paths), filepath.Base(name)))
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("building %s: %v\n%s%s", pkg, err, text, missing(text))
	}
	built.paths[pkg] = out
	return out
}

// missing returns what to do if the module or its vendor directory lacks a package that
// gompirun needs.
func missing(output []byte) string {
	if bytes.Contains(output, []byte("missing go.sum entry")) || bytes.Contains(output, []byte("no required module")) || bytes.Contains(output, []byte("is not in std")) {
		return "go mod tidy, or go get -tool gompi/cmd/gompirun (and go mod vendor), adds what is missing"
	}
	return ""
}

// RemoveBuilt removes the executables of Build. TestMain calls it.
func RemoveBuilt() {
	built.Lock()
	defer built.Unlock()
	if built.dir != "" {
		os.RemoveAll(built.dir)
		built.dir, built.paths = "", nil
	}
}

// Exec runs np ranks of the program args[0] with the arguments args[1:] under gompirun. It
// returns their output and gompirun's exit status. It skips the test on systems other than
// Linux.
func Exec(tb testing.TB, np int, args []string, opts ...ExecOption) Result {
	tb.Helper()
	if runtime.GOOS != "linux" {
		tb.Skipf("processes need Linux, this is %s", runtime.GOOS)
	}
	c := execConfig{timeout: time.Minute}
	for _, o := range opts {
		o(&c)
	}
	all := append([]string{"-np", strconv.Itoa(np), "--timeout", c.timeout.String()}, c.flags...)
	cmd := exec.Command(Build(tb, "gompi/cmd/gompirun"), append(all, args...)...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdin = bytes.NewReader(c.stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	// gompirun ends by itself; this bounds the test if it does not.
	cmd.WaitDelay = 10 * time.Second
	timer := time.AfterFunc(c.timeout+30*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	err := cmd.Wait()
	r := Result{Stdout: out.String(), Stderr: errs.String(), Status: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		tb.Fatalf("gompirun: %v\n%s", err, r.Stderr)
	}
	return r
}
