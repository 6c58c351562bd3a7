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
	if file := os.Getenv(envTight); file != "" {
		tight(t, file, limit)
		return
	}
	dir, limitFile, err := newMemoryCgroup(limit)
	if err != nil {
		t.Skip("no memory cgroup can be made here:", err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestTightCgroup$", "-test.v")
	cmd.Env = append(os.Environ(), envTight+"="+limitFile)
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

// tight is the process inside. One Memory serves it to the end, whose files
// stay open while use and limit change.
func tight(t *testing.T, limitFile string, limit int64) {
	var mem Memory
	defer mem.Close()
	if err := mem.Check(1 << 20); err != nil {
		t.Error(err) // not yet inside
	}
	os.Stdin.Read(make([]byte, 1)) // until the parent has moved us
	seg, bell, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(seg)
	defer unix.Close(bell)
	refused := func(what string, err error) {
		t.Helper()
		var nm *NoMemoryError
		if !errors.As(err, &nm) || nm.Limit != "memory cgroup" || nm.Found < 0 || nm.Found > limit {
			t.Errorf("%s: %v", what, err)
		}
	}
	setLimit := func(n int64) {
		t.Helper()
		if err := os.WriteFile(limitFile, fmt.Append(nil, n), 0); err != nil {
			t.Fatal(err)
		}
	}
	refused("128 MiB in a group of 64 MiB", mem.Reserve(seg, Rings, 2*limit))
	// Small pieces until it is full.
	at, pieces := int64(Rings), 0
	piece := func() error {
		err := mem.Reserve(seg, at, 1<<20)
		if err == nil {
			at, pieces = at+1<<20, pieces+1
		}
		return err
	}
	for err = nil; err == nil; {
		err = piece()
	}
	if refused("small pieces", err); pieces < 10 {
		t.Errorf("only %d MiB could be reserved", pieces)
	}
	m, err := Map(seg, at, 1<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(m)
	refused("mapped memory", mem.Populate(m))
	setLimit(2 * limit)
	if err := piece(); err != nil {
		t.Errorf("after the limit was raised: %v", err)
	}
	setLimit(limit + 8<<20)
	refused("16 MiB after the limit was lowered", mem.Reserve(seg, at, 16<<20))
}

// newMemoryCgroup makes a group with a limit, version 1 or 2, and says in
// which file the limit stands.
func newMemoryCgroup(limit int64) (dir, limitFile string, err error) {
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
		dir, limitFile := filepath.Join(v.root, name), filepath.Join(v.root, name, v.file)
		if err := os.Mkdir(dir, 0o755); err != nil {
			errs = append(errs, err)
			continue
		}
		err := os.WriteFile(limitFile, fmt.Append(nil, limit), 0)
		if err == nil {
			return dir, limitFile, nil
		}
		errs = append(errs, err, unix.Rmdir(dir))
	}
	return "", "", errors.Join(errs...)
}
