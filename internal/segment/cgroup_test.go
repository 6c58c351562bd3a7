// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const envTight = "SEGMENT_TEST_TIGHT"

// TestTightCgroup reserves more than a real memory cgroup allows, in a process
// of its own: it must get an error and not be killed.
func TestTightCgroup(t *testing.T) {
	const limit = 64 << 20
	if os.Getenv(envTight) != "" {
		tight(t, limit)
		return
	}
	dir, err := newMemoryCgroup(limit)
	if err != nil {
		t.Skip("no memory cgroup can be made here:", err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestTightCgroup$", "-test.v")
	cmd.Env = append(os.Environ(), envTight+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Rmdir(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	moved := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0)
	in.Close() // now it may begin
	err = cmd.Wait()
	if moved != nil {
		t.Fatal(moved)
	}
	if err != nil || !strings.Contains(out.String(), "--- PASS") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// tight is the process inside.
func tight(t *testing.T, limit int64) {
	os.Stdin.Read(make([]byte, 1)) // until the parent has moved us
	seg, bell, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(seg)
	defer unix.Close(bell)
	var nm *NoMemoryError
	err = Reserve(seg, Rings, 2*limit)
	if !errors.As(err, &nm) || nm.Limit != "memory cgroup" || nm.Found <= 0 || nm.Found > limit {
		t.Errorf("reserve of 128 MiB in a cgroup of 64 MiB: %v", err)
	}
	// Small pieces until it is full.
	n := 0
	for err = nil; err == nil; n++ {
		err = Reserve(seg, Rings+int64(n)<<20, 1<<20)
	}
	if !errors.As(err, &nm) || n < 10 {
		t.Errorf("after %d MiB: %v", n, err)
	}
}

// newMemoryCgroup makes a group with a limit, version 1 or 2.
func newMemoryCgroup(limit int64) (string, error) {
	name := fmt.Sprintf("gompi-segment-test-%d", os.Getpid())
	var errs []error
	for _, v := range []struct{ root, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		if _, err := os.Stat(filepath.Join(v.root, "cgroup.procs")); err != nil {
			errs = append(errs, err)
			continue
		}
		dir := filepath.Join(v.root, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			errs = append(errs, err)
			continue
		}
		err := os.WriteFile(filepath.Join(dir, v.file), fmt.Append(nil, limit), 0)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err, unix.Rmdir(dir))
	}
	return "", errors.Join(errs...)
}
