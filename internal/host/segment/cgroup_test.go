// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// envTight is set in a process that a test runs inside a memory cgroup: the file
// with its limit.
const envTight = "SEGMENT_TEST_TIGHT"

// TestTightCgroup reserves more than a real memory cgroup allows, in a process
// of its own: it must get an error and not be killed.
func TestTightCgroup(t *testing.T) {
	const limit = 64 << 20
	if file := os.Getenv(envTight); file != "" {
		tight(t, file, limit)
		return
	}
	inCgroup(t, limit, 1)
}

// Several processes that reserve at the same moment what is there for one of
// them only: none is killed, and one gets it.
func TestTightCgroupTogether(t *testing.T) {
	const limit, each = 256 << 20, 160 << 20
	if os.Getenv(envTight) == "" {
		out := inCgroup(t, limit, 3)
		if n := strings.Count(out, "reserved"); n != 1 {
			t.Errorf("%d of 3 processes have %d of %d bytes, want 1\n%s", n, each, limit, out)
		}
		return
	}
	var mem Memory
	defer mem.Close()
	seg, bell, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(seg)
	defer unix.Close(bell)
	os.Stdin.Read(make([]byte, 1))
	var nm *NoMemoryError
	switch err := mem.Reserve(seg, Rings, each); {
	case err == nil:
		t.Log("reserved")
	case !errors.As(err, &nm) || nm.Limit != "memory cgroup":
		t.Error(err)
	}
	os.NewFile(3, "tried").Write([]byte{0})
	os.Stdin.Read(make([]byte, 1)) // until all have
}

// Memory of the heap is asked for like shared memory: an error, and not a kill,
// where the group has less; what Go has cleared already asks for nothing.
func TestTightCgroupHeap(t *testing.T) {
	const limit = 64 << 20
	if os.Getenv(envTight) == "" {
		inCgroup(t, limit, 1)
		return
	}
	os.Stdin.Read(make([]byte, 1))
	var mem Memory
	defer mem.Close()
	var nm *NoMemoryError
	if err := mem.PopulateHeap(make([]byte, 2*limit)); !errors.As(err, &nm) || nm.Limit != "memory cgroup" || nm.Need < 2*limit {
		t.Errorf("twice what there is: %v", err)
	}
	there := make([]byte, 24<<20)
	if err := mem.PopulateHeap(there[5:]); err != nil {
		t.Errorf("a third of what there is: %v", err)
	}
	left, _ := mem.groups.Headroom(limit)
	if left > limit-int64(len(there))*9/10 {
		t.Errorf("%d bytes are left of %d, besides %d", left, limit, len(there))
	}
	if err := mem.PopulateHeap(there); err != nil {
		t.Errorf("what is there: %v", err)
	}
	if now, _ := mem.groups.Headroom(limit); now < left-4<<20 {
		t.Errorf("what is there took %d bytes", left-now)
	}
	if err := mem.PopulateHeap(there[:10]); err != nil {
		t.Error(err)
	}
}

// inCgroup runs the calling test in n processes inside a memory cgroup of its
// own: each passes the test there. They read a byte from their input when all
// are inside, and its end when each has written one to descriptor 3, or has
// ended. It returns what they print.
func inCgroup(t *testing.T, limit int64, n int) string {
	dir, limitFile, err := newMemoryCgroup(limit)
	if err != nil {
		t.Skip("no memory cgroup can be made here:", err)
	}
	t.Cleanup(func() {
		if err := unix.Rmdir(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	tried, mark, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer tried.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmds, ins, outs := make([]*exec.Cmd, n), make([]io.WriteCloser, n), make([]bytes.Buffer, n)
	for i := range n {
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), envTight+"="+limitFile)
		if ins[i], err = cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = &outs[i], &outs[i]
		cmd.ExtraFiles = []*os.File{mark}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds[i] = cmd
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0); err != nil {
			t.Error(err)
		}
	}
	for _, in := range ins {
		in.Write([]byte{0})
	}
	mark.Close()
	io.ReadFull(tried, make([]byte, n))
	for _, in := range ins {
		in.Close()
	}
	all := ""
	for i, cmd := range cmds {
		err := cmd.Wait()
		if err != nil || !strings.Contains(outs[i].String(), "--- PASS") {
			t.Errorf("process %d: %v\n%s", i, err, outs[i].String())
		}
		all += outs[i].String()
	}
	return all
}

// tight is the process inside. One Memory serves it to the end, whose files
// stay open while use and limit change.
func tight(t *testing.T, limitFile string, limit int64) {
	var mem Memory
	defer mem.Close()
	if _, err := mem.checkFree(1<<20, ReserveStep, margin(1<<20)); err != nil {
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
