// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"gompi/bench/report"
	"gompi/mpitest"
)

func TestParseSam(t *testing.T) {
	c, err := parseSam(strings.Fields("--reps 3 -o r.json --csv r --variant 2 --limit 5s --gompirun=--spare=4 --gompirun=-v --json --progress x.json"))
	if err != nil || c.config != "x.json" || c.repetitions != 3 || c.output != "r.json" || c.csv != "r" || c.variant != 2 || c.limit != 5*time.Second ||
		!slices.Equal(c.gompirun, []string{"--spare=4", "-v"}) || !c.json || !c.progress {
		t.Errorf("%+v, %v", c, err)
	}
	for line, want := range map[string]string{
		"": "which configuration", "a b": `unexpected argument "b"`, "--reps 0 cg": "--reps 0", "--csv x cg": "--csv needs --output", "--variant -2 cg": "--variant -2", "--limit 0s cg": "--limit 0s",
	} {
		if _, err := parseSam(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, err := parseSam([]string{"-h"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

// samMatrix has two variants that can be run, and one that cannot, as it is asked for more
// ranks than the job may have.
const samMatrix = `{
 "general": {"Total_Resizes": 1, "Total_Phases": 1, "SDR": 40000, "ADR": 50, "Datasize": 4, "Rigid": 0, "Capture_Method": 0},
 "phases": [{"Total_Iters": 12, "Total_Stages": 2, "stages": [
  {"Stage_Type": 0, "Stage_Bytes": 0, "Stage_Time": 0.001, "Granularity": 100}, {"Stage_Type": 8, "Stage_Bytes": 8, "Stage_Time": 0}]}],
 "groups": [
  {"Iters": 3, "Procs": 2, "FactorS": 1, "Dist": "compact", "Redistribution_Method": 0, "Redistribution_Strategy": [0], "Spawn_Method": 1, "Spawn_Strategy": [0]},
  {"Iters": 3, "Procs": "1:3:9", "FactorS": "1:1:1", "Dist": "compact", "Redistribution_Method": "pull", "Redistribution_Strategy": [3], "Spawn_Method": 1, "Spawn_Strategy": [1]}]
}`

// TestSam runs a matrix of real jobs, goes on with it where it was left, and makes tables
// and a page of what it has told.
func TestSam(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"gompirun", "gompibench"} {
		if err := os.Symlink(mpitest.Build(t, "gompi/cmd/"+name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	config, results := filepath.Join(dir, "m.json"), filepath.Join(dir, "results.json")
	if err := os.WriteFile(config, []byte(samMatrix), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (stdout, stderr string, err error) {
		c := exec.CommandContext(t.Context(), filepath.Join(dir, "gompibench"), append([]string{"sam"}, args...)...)
		c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		var out, says bytes.Buffer
		c.Stdout, c.Stderr, c.WaitDelay = &out, &says, 10*time.Second
		err = c.Run()
		return out.String(), says.String(), err
	}
	read := func(text []byte) []report.Result {
		rs, err := report.Read("results", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return rs
	}
	if out, _, err := run("--list", config); err != nil || strings.Count(out, "\n") != 3 || !strings.Contains(out, "   1  2->3\n") {
		t.Errorf("list:\n%s%v", out, err)
	}
	common := []string{"--progress", "--limit", "40s", "--gompirun=--max=4", "-o", results, "--json", config}
	out, says, err := run(append([]string{"--reps", "2"}, common...)...)
	if err == nil || !strings.Contains(says, "2 of 6 runs have failed") || !strings.Contains(says, "6 of 6: 2->9, repetition 1: gompirun -np 2:") || !strings.Contains(says, "left\n") {
		t.Fatalf("%v\n%s", err, says)
	}
	text, err := os.ReadFile(results)
	if err != nil || string(text) != out {
		t.Fatalf("%v: printed\n%swritten\n%s", err, out, text)
	}
	rs := read(text)
	if len(rs) != 4 {
		t.Fatalf("%d results", len(rs))
	}
	for i, r := range rs {
		if s := r.Sam; s.Config != "m.json" || s.Repetition != i/2 || len(s.Resizes) != 1 || s.Resizes[0].From != 2 || s.Resizes[0].To != []int{1, 3}[i%2] || s.Resizes[0].MovedBytes == 0 || r.Transport != "shm" && s.Groups[1].Procs > 1 {
			t.Errorf("result %d: %+v, %+v", i, r, r.Sam)
		}
	}
	// It was interrupted while it wrote the third: what is whole is not run again.
	lines := bytes.SplitAfter(text, []byte("\n"))
	kept := bytes.Join(lines[:2], nil)
	if err := os.WriteFile(results, append(bytes.Clone(kept), lines[2][:len(lines[2])/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, says, err = run(append([]string{"--reps", "2", "--variant", "0", "--csv", filepath.Join(dir, "t")}, common...)...)
	if err != nil || !strings.Contains(says, "1 of 2 runs are in "+results+" already") || strings.Count(out, "\n") != 1 {
		t.Fatalf("%v\n%s%s", err, out, says)
	}
	if text, err = os.ReadFile(results); err != nil || string(text) != string(kept)+out {
		t.Fatalf("%v: written\n%s", err, text)
	}
	if rs = read(text); rs[2].Sam.Key != rs[0].Sam.Key || rs[2].Sam.Repetition != 1 {
		t.Errorf("%+v", rs[2].Sam)
	}
	for name, rows := range map[string]int{"global": 1 + 3, "malleability": 1 + 3, "iterations": 1 + 3*12} {
		text, err := os.ReadFile(filepath.Join(dir, "t-"+name+".csv"))
		if n := bytes.Count(text, []byte("\n")); err != nil || n != rows || !bytes.HasPrefix(text, []byte("config,variant,key,repetition,")) {
			t.Errorf("%s: %d rows, not %d, %v\n%s", name, n, rows, err, text)
		}
	}
}
