// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"errors"
	"gompi/internal/version"
	"reflect"
	"strings"
	"testing"
)

// What other launchers have and means one of our flags.
func TestHabits(t *testing.T) {
	for line, want := range map[string]string{
		"--report-bindings -np 2 p":         "-v -np 2 p",
		"-l -np 2 p":                        "--tag -np 2 p",
		"-prepend-rank -np 2 p":             "--tag -np 2 p",
		"--tag-output -np 2 p":              "--tag -np 2 p",
		"--output-filename d -np 2 p":       "--output d -np 2 p",
		"-N 2 p":                            "-np 2 p",
		"-ppn 2 -n 2 p":                     "-np 2 p",
		"--npernode 2 p":                    "-np 2 p",
		"--map-by ppr:2:node p":             "-np 2 p",
		"-np 2 -genv A 1 -genv B 2 p":       "-np 2 -x A=1 -x B=2 p",
		"-np 2 p : -np 1 -env A 1 q":        "-np 2 p : -np 1 -x A=1 q",
		"-q -np 2 p":                        "-np 2 p",
		"-genvall --nooversubscribe -n 2 p": "-np 2 p",
		"-hosts localhost -np 2 p":          "-H localhost -np 2 p",
		"-np 2 p -l -q --mca a b -genv x y": "-np 2 p -l -q --mca a b -genv x y",
	} {
		got, err := parse(strings.Fields(line), noEnv)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		same, err := parse(strings.Fields(want), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, same) {
			t.Errorf("%s: %+v, but %s: %+v", line, got, want, same)
		}
	}
	if _, err := parse([]string{"-f", "/nonexistent", "p"}, noEnv); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("-f: %v", err)
	}
	var help errHelp
	for _, flag := range []string{"-V", "--version"} {
		if _, err := parse([]string{flag}, noEnv); !errors.As(err, &help) || !strings.HasPrefix(string(help), "gompirun "+version.Gompi()+", protocol ") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// What gompirun does not do is refused with one line that says what to use.
func TestHabitsWithoutAPlace(t *testing.T) {
	for line, want := range map[string]string{
		"--mca btl self,vader -np 2 p":     "--transport",
		"-mca btl self p":                  "-mca: ",
		"--timestamp-output p":             "| ts",
		"--merge-stderr-to-stdout p":       "2>&1",
		"--rank-by node p":                 "in the order of the command line",
		"--bind-to hwthread p":             "hardware threads",
		"--bind-to socket p":               "numa",
		"--map-by socket p":                "numa",
		"--map-by core:PE=2 p":             "PE=n",
		"--map-by ppr:2:socket p":          "-np N",
		"--map-by ppr:x:node p":            "ppr:N:node",
		"-np 4 -N 2 p":                     "needs 2 hosts",
		"-N 0 p":                           "at least 1",
		"-genvlist A,B p":                  "-x NAME=VALUE",
		"-np 1 p : -np 1 --mca btl self q": "MCA",
		"--display-map p":                  "-v",
	} {
		_, err := parse(strings.Fields(line), noEnv)
		if !isUsage(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
}
