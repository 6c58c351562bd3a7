// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/internal/control/controltest"
)

// runs reports whether a process runs that a command has noted in a file.
func runs(t *testing.T, file string) bool {
	t.Helper()
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", bytes.TrimSpace(pid)))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") // one that nobody reaps
}

// Nothing is left of a command that has printed a list, that is given up, or that prints
// without end; and no more is read of any than a list may have.
func TestDiscoverLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	child := func(name string) string {
		return fmt.Sprintf("sh -c 'echo $$ >%s; exec sleep 1000'", filepath.Join(dir, name))
	}
	gone := func(name string) {
		t.Helper()
		controltest.WaitFor(t, "the end of what the command has started: "+name, func() bool { return !runs(t, filepath.Join(dir, name)) })
	}
	there := func(name string) {
		t.Helper()
		controltest.WaitFor(t, name, func() bool { b, err := os.ReadFile(filepath.Join(dir, name)); return err == nil && len(b) > 0 })
	}
	text, err := runCommand(t.Context(), child("beside")+" & until [ -s "+dir+"/beside ]; do sleep 0.01; done; echo a:2", nil)
	if err != nil || string(text) != "a:2\n" {
		t.Errorf("printed %q, %v", text, err)
	}
	gone("beside")

	ctx, cancel := context.WithCancel(t.Context())
	given := controltest.Async(t, func() error { _, err := runCommand(ctx, child("pipe")+" | cat; echo a:2", nil); return err })
	there("pipe")
	cancel()
	if err := given(); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	gone("pipe")

	// One in a group of its own lives on, and holds nothing up.
	ctx, cancel = context.WithCancel(t.Context())
	given = controltest.Async(t, func() error { _, err := runCommand(ctx, "setsid "+child("away")+"; echo a:2", nil); return err })
	there("away")
	cancel()
	if err := given(); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	var pid int
	if _, err := fmt.Sscan(string(must1(os.ReadFile(filepath.Join(dir, "away")))), &pid); err != nil {
		t.Fatal(err)
	}
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}

	if _, err := runCommand(t.Context(), "echo $$ >"+dir+"/endless; yes", nil); !errors.Is(err, errLong) {
		t.Errorf("endless: %v", err)
	}
	gone("endless")
	if _, err := readList("/dev/zero"); !errors.Is(err, errLong) {
		t.Errorf("an endless file: %v", err)
	}
}

// Nothing is left of a command that runs when gompirun is killed.
func TestDiscoverDiesWithGompirun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "child")
	c := start(t, "--discover", "sh -c 'echo $$ >"+file+"; exec sleep 1000' | cat; echo localhost", "-np", "1", "sleep", "1000")
	controltest.WaitFor(t, "the command", func() bool { b, err := os.ReadFile(file); return err == nil && len(b) > 0 })
	c.Process.Kill()
	c.Wait()
	controltest.WaitFor(t, "the end of what the command has started", func() bool { return !runs(t, file) })
}

func must1[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
