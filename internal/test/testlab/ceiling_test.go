// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The ceiling of make test names the package that hangs, and its goroutines the test.
func TestCeiling(t *testing.T) {
	dir := t.TempDir()
	script, err := os.ReadFile("../../../.ci/ceiling")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		".ci/ceiling":             string(script),
		"go.mod":                  "module hang\n\ngo 1.26\n",
		"stuck/stuck_test.go":     "package stuck\n\nimport \"testing\"\n\nfunc TestStuck(t *testing.T) { select {} }\n",
		"through/through_test.go": "package through\n\nimport \"testing\"\n\nfunc TestThrough(t *testing.T) {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A ceiling that is too low for this machine strikes before the test runs.
	for limit := 2; ; limit *= 2 {
		cmd := exec.Command("bash", ".ci/ceiling", strconv.Itoa(limit), "go", "test", "-vet=off", "./...")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.ExitCode() != 124 {
			t.Fatalf("%v, want status 124\n%s", err, out)
		}
		if strings.Contains(string(out), "no test program runs") && limit < 100 {
			continue
		}
		for _, want := range []string{"./stuck: for ", "TestStuck"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		if strings.Contains(string(out), "./through: for") {
			t.Errorf("a package that is through is named:\n%s", out)
		}
		break
	}
	if out, err := exec.Command("bash", "../../../.ci/ceiling", "60", "sh", "-c", "exit 3").CombinedOutput(); err == nil || err.(*exec.ExitError).ExitCode() != 3 {
		t.Errorf("a command that ends: %v %s", err, out)
	}
}
