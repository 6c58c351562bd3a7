// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gompi/internal/launch"
)

func TestLookup(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	for name, mode := range map[string]os.FileMode{"main.go": 0o644, "src/main.go": 0o644, "bin/onpath": 0o755, "bin/dull": 0o644, "here": 0o755, "bin/both": 0o755, "both": 0o755} {
		os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, want string
		status     int
	}{
		{"onpath", filepath.Join(bin, "onpath"), 0},
		{"here", filepath.Join(dir, "here"), 0},
		{"./here", filepath.Join(dir, "here"), 0},
		{"both", filepath.Join(bin, "both"), 0},
		{"./both", filepath.Join(dir, "both"), 0},
		{"bin/onpath", filepath.Join(bin, "onpath"), 0},
		{filepath.Join(dir, "here"), filepath.Join(dir, "here"), 0},
		{"nothing", "", launch.ExitNotFound},
		{"./nothing", "", launch.ExitNotFound},
		{"here/x", "", launch.ExitNotFound},
		{"dull", "", launch.ExitNotRunable},
		{"bin", "", launch.ExitNotRunable},
		{"./bin/dull", "", launch.ExitNotRunable},
	} {
		got, err := lookup(c.name, dir, bin)
		var se *launch.StartError
		if c.status == 0 && (err != nil || got != c.want) || c.status != 0 && (!errors.As(err, &se) || se.Status != c.status) {
			t.Errorf("lookup(%q) = %q, %v; want %q, status %d", c.name, got, err, c.want, c.status)
		}
	}
	for name, want := range map[string]string{
		"main.go": dir + "/main.go: it is not executable; it is Go source: build it, or run gompirun [flags] go run main.go",
		".":       dir + ": it is a directory; it is Go source: build it, or run gompirun [flags] go run .",
		"src":     dir + "/src: it is a directory; it is Go source: build it, or run gompirun [flags] go run ./src",
		"./src":   "go run ./src",
		"bin":     dir + "/bin: it is a directory",
	} {
		if _, err := lookup(name, dir, bin); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("lookup(%q): %v, want %s", name, err, want)
		}
	}
	if _, err := lookup("here", filepath.Join(dir, "gone"), bin); err == nil {
		t.Error("a working directory that does not exist is accepted")
	}
}

func TestEnvironment(t *testing.T) {
	got := environment([]string{"A=1", "GOMPI_TOKEN=old", "B=2", "GOMPI_CONTROL=old", "GOMPI_LOCAL_RANK=3"}, []string{"A=3", "C=4", "GOMPI_RANK=0", "A=5"})
	if want := []string{"B=2", "C=4", "A=5"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A directory that is gone is named as what is missing.
func TestDirectoryGone(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	for _, wdir := range []string{"", gone} {
		if _, err := lookup("/bin/sh", wdir, ""); err == nil || !strings.Contains(err.Error(), "directory in which processes start, "+gone+", is not there") {
			t.Errorf("in %q: %v", wdir, err)
		}
	}
	err := cannotExec(&spec{name: "new.0", path: "/bin/sh"}, fs.ErrNotExist)
	if err == nil || !strings.Contains(err.Error(), "directory in which processes start") {
		t.Errorf("fork: %v", err)
	}
}
