// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHinted(t *testing.T) {
	wrapped := &startError{exitNotRunable, fmt.Errorf("rank 3: %w", unix.EMFILE)}
	var se *startError
	if err := hinted(wrapped); !errors.As(err, &se) || !strings.HasPrefix(err.Error(), "rank 3: too many open files (see ulimit -n") {
		t.Errorf("%v", err)
	}
	if err := hinted(fs.ErrNotExist); err != fs.ErrNotExist {
		t.Errorf("%v", err)
	}
}

// A limit that is too low ends with its name, before anything is started.
func TestTooFewDescriptors(t *testing.T) {
	cmd := command(t, "-np", "30", "RANK", "nothing")
	cmd.Args = append([]string{"prlimit", "--nofile=64:64"}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	var err error
	if cmd.Path, err = exec.LookPath("prlimit"); err != nil {
		t.Skip(err)
	}
	if r := finish(t, cmd); r.status != 1 || !strings.Contains(r.stderr, "ulimit -n") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}
