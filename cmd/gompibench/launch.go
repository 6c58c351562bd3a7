// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"gompi/internal/control/protocol"
)

// envLaunched tells a rank that this program started gompirun for it. Without it, a
// gompirun that starts ranks without a control socket would be started forever.
const envLaunched = "GOMPIBENCH_LAUNCHED"

// launched reports whether this process is a rank of a job.
func launched() bool {
	_, _, ok := protocol.FromEnv()
	return ok || os.Getenv(envLaunched) != ""
}

// launch becomes gompirun with these flags, and np ranks of this program with the same
// arguments. It returns only on error.
func launch(np int, progress bool, flags ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	run, err := find("gompirun")
	if err != nil {
		return fmt.Errorf("%w; start it as: gompirun -np %d gompibench ...", err, np)
	}
	argv := launchArgs(run, self, np, progress, flags, os.Args[1:])
	if err := syscall.Exec(run, argv, append(os.Environ(), envLaunched+"=1")); err != nil {
		return fmt.Errorf("cannot start %s: %w", run, err)
	}
	return nil
}

// launchArgs adds what standard error is, as it is no terminal under gompirun. It comes
// after the other arguments, as the first may be a command.
func launchArgs(run, self string, np int, progress bool, flags, args []string) []string {
	return slices.Concat([]string{run, "-np", strconv.Itoa(np)}, flags, []string{self}, args, []string{"--progress=" + strconv.FormatBool(progress)})
}

// find finds another program of gompi. It prefers the one beside this program, which is of
// the same build.
func find(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return findIn(filepath.Dir(self), name)
}

// findIn finds a program in dir or in PATH.
func findIn(dir, name string) (string, error) {
	beside := filepath.Join(dir, name)
	if st, err := os.Stat(beside); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
		return beside, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no %s in %s nor in PATH", name, dir)
	}
	return filepath.Abs(path)
}
