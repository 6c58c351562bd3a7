// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gompi/internal/resize/cost"
	"gompi/mpitest"
)

func TestParseModel(t *testing.T) {
	c, files, err := parseModel(strings.Fields("--pairs 1,3 --mib 2,4 --cores 8 --into m a.json b.json"))
	if err != nil || len(files) != 2 || c.cores != 8 || len(c.mib) != 2 || len(c.redist.opt.Variants) != 10 || c.into != "m" {
		t.Errorf("%+v, %q, %v", c, files, err)
	}
	for line, want := range map[string]string{
		"--pairs 0,1": "--pairs", "--mib 0": "--mib", "--cores 0": "--cores", "--rounds 0": "--rounds", "--results f g": "either",
	} {
		if _, _, err := parseModel(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, _, err := parseModel([]string{"--help"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

// TestModelOfThisMachine measures a little, and gompirun takes what comes of it.
func TestModelOfThisMachine(t *testing.T) {
	run, self := mpitest.Build(t, "gompi/cmd/gompirun"), mpitest.Build(t, "gompi/cmd/gompibench")
	dir := t.TempDir()
	model, results := filepath.Join(dir, "model"), filepath.Join(dir, "results")
	if err := os.Symlink(run, filepath.Join(dir, "gompirun")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "tune", "redist", "--pairs", "1,2", "--mib", "0.25", "--rounds", "1", "--iteration", "200us", "--into", model, "--results", results)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cost.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, was := m.Lines["shm"]["pull"], cost.Builtin.Lines["shm"]["pull"]; got == was {
		t.Errorf("pull is as in the built-in model: %+v", got)
	}
	if out, err := exec.Command(run, "--mam-model", model, "-np", "1", "true").CombinedOutput(); err != nil {
		t.Errorf("gompirun: %v: %s", err, out)
	}
	// The results alone give the same model.
	again, err := exec.Command(self, "tune", "redist", results).Output()
	if err != nil || string(again) != string(text) {
		t.Errorf("%v: %s, want %s", err, again, text)
	}
}
