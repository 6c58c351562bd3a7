// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"gompi/mpitest"
)

func TestParseWays(t *testing.T) {
	c, err := parseShm(strings.Fields("--rounds 7 --until-both 3s --into x"))
	if err != nil || c.opt.Rounds != 7 || c.opt.Both != 3*time.Second || c.into != "x" {
		t.Errorf("%+v, %v", c, err)
	}
	for line, want := range map[string]string{"x": "unexpected", "--rounds 0": "--rounds", "--until-both -1s": "--until-both"} {
		if _, err := parseShm(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := parseShm([]string{"--help"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

// What tune shm writes gompirun takes, and -v tells what ranks have made of it.
func TestWays(t *testing.T) {
	self, run := mpitest.Build(t, "gompi/cmd/gompibench"), mpitest.Build(t, "gompi/cmd/gompirun")
	dir := t.TempDir()
	table := filepath.Join(dir, "ways")
	if err := os.Symlink(run, filepath.Join(dir, "gompirun")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "tune", "shm", "--rounds", "2", "--into", table)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(table)
	if err != nil || !strings.Contains(string(text), " push ") {
		t.Fatalf("%v: %s", err, text)
	}
	if err := os.WriteFile(table, append(text, "near push 12345\nfar push 12345\n"...), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(run, "-v", "--shm-table", table, "-np", "2", self, "latency", "--bytes", "12K,20K", "--msec", "20")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	for _, want := range []string{"rank 0 to rank 1 by shm: ", "rank 1 to rank 0 by shm: ", "pushed up to 12345 bytes", " looks"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("-v does not say %q:\n%s", want, &stderr)
		}
	}
	if out, err := exec.Command(run, "--shm-table", os.DevNull, "-np", "1", "true").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("near pull 3"), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(run, "--shm-table", bad, "-np", "1", "true").CombinedOutput(); err == nil || !strings.Contains(string(out), "near pull is not a threshold") {
		t.Errorf("%v: %s", err, out)
	}
}
