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

	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

func TestHinted(t *testing.T) {
	wrapped := &launch.StartError{Status: launch.ExitNotRunable, Err: fmt.Errorf("rank 3: %w", unix.EMFILE)}
	var se *launch.StartError
	if err := protocol.Hinted(wrapped); !errors.As(err, &se) || !strings.HasPrefix(err.Error(), "rank 3: too many open files (see ulimit -n") {
		t.Errorf("%v", err)
	}
	if err := protocol.Hinted(fs.ErrNotExist); err != fs.ErrNotExist {
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

// A limit on the size of files bounds the memory that a process shares; only
// one that leaves none is an error.
func TestFileSizeLimit(t *testing.T) {
	limited := func(bytes string) result {
		cmd := command(t, "-np", "2", "RANK", "good")
		cmd.Args = append([]string{"prlimit", "--fsize=" + bytes}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
		var err error
		if cmd.Path, err = exec.LookPath("prlimit"); err != nil {
			t.Skip(err)
		}
		return finish(t, cmd)
	}
	if r := limited("100000000"); r.status != 0 || r.stderr != "" {
		t.Errorf("%+v", r)
	}
	if r := limited("1000000"); r.status != 1 || !strings.Contains(r.stderr, "ulimit -f") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}
