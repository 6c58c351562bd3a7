// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func must(text string, err error) string {
	if err != nil {
		return err.Error()
	}
	return text
}

func TestPolicy(t *testing.T) {
	run := func(in string, args ...string) (string, error) {
		var b strings.Builder
		err := policy(args, strings.NewReader(in), &b)
		return b.String(), err
	}
	mix, err := run("", "--jobs", "60", "--slots", "16", "--hours", "2", "--mix")
	if err != nil || strings.Count(mix, "\n") != 60 {
		t.Fatalf("%v:\n%s", err, mix)
	}
	file := filepath.Join(t.TempDir(), "mix.json")
	if err := os.WriteFile(file, []byte(mix), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := run("", "--slots", "16", file)
	if err != nil || strings.Count(got, "\n") != 8 || !strings.Contains(got, "\nascent ") {
		t.Errorf("%v:\n%s", err, got)
	}
	for _, table := range []string{got, must(run("", "--optimum", "5"))} { // no column touches the next
		for line := range strings.Lines(table) {
			if n := len(strings.Fields(line)); strings.HasPrefix(line, "ascent ") && n != 9 && n != 5 || strings.Contains(line, "sturnaround") {
				t.Errorf("%q", line)
			}
		}
	}
	got, err = run(mix, "--slots", "16", "--policy", "easy,dmr", "--json", "-")
	var lines []policyLine
	for line := range strings.Lines(got) {
		var l policyLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		lines = append(lines, l)
	}
	if err != nil || len(lines) != 2 || lines[1].Policy != "dmr" || lines[0].Jobs != 60 || lines[0].Changes != 0 || !(lines[0].Makespan > 0) {
		t.Errorf("%v: %+v", err, lines)
	}
	got, err = run("", "--optimum", "50", "--policy", "ascent")
	if err != nil || strings.Count(got, "\n") != 2 {
		t.Errorf("%v:\n%s", err, got)
	}
	if got, err = run("", "--help"); err != nil || !strings.Contains(got, "--optimum") {
		t.Errorf("%v:\n%s", err, got)
	}
	for _, bad := range [][]string{{"--policy", "best"}, {"--slots", "0"}, {"--horizon", "0s"}, {"a", "b"}, {"--optimum", "5", "--mix"}, {"--x"}} {
		if _, err := run("", bad...); !errors.As(err, new(usageError)) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := run(mix, "--slots", "1", "-"); err == nil || !strings.Contains(err.Error(), "never begins") {
		t.Errorf("a job that is too large: %v", err)
	}
	if _, err := run("{}", "-"); err == nil || !strings.Contains(err.Error(), "standard input:1: work") {
		t.Errorf("no job: %v", err)
	}
}
