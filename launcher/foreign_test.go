// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"errors"
	"fmt"
	"gompi/internal/base/version"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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
		"-genvall --nooversubscribe -n 2 p": "--strict-slots -np 2 p",
		"--with-ft ulfm -n 2 p":             "--ft -n 2 p",
		"--with-ft no -n 2 p":               "-n 2 p",
		"--pernode p":                       "-np 1 p",
		"--ppr 2:node p":                    "-np 2 p",
		"--get-stack-traces --report-state-on-timeout --timeout 5 -n 2 p": "--timeout 5 -n 2 p",
		"--export=ALL,A=1,PATH -n 2 p":                                    "-x A=1 -n 2 p",
		"-genv A=1 -n 2 p":                                                "-x A=1 -n 2 p",
		"-genv A= -n 2 p":                                                 "-x A= -n 2 p",
		"-check_mpi -n 2 p":                                               "--check 1 -n 2 p",
		"--bind-to core:overload-allowed --map-by :OVERSUBSCRIBE -n 2 p":  "--bind core -n 2 p",
		"--map-by ppr:2:node:OVERSUBSCRIBE p":                             "-np 2 p",
		"--ntasks=3 p":                                                    "-np 3 p",
		"-print-rank-map -n 2 p":                                          "-v -n 2 p",
		"-n 1 p : -n 1 -envall -D /tmp q":                                 "-n 1 p : -n 1 --wdir /tmp q",
		"--output ./tag -n 1 p":                                           "--output=./tag -n 1 p",
		"-hosts localhost -np 2 p":                                        "-H localhost -np 2 p",
		"-np 2 p -l -q --mca a b -genv x y":                               "-np 2 p -l -q --mca a b -genv x y",
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

// Every flag of the others' manual pages is accepted, or refused by its name with what to use.
func TestForeignFlags(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("localhost slots=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen, rows := map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.ReplaceAll(line, "HOSTS", hosts))
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		rows++
		line := strings.Join(words[1:], " ")
		name, _, _ := strings.Cut(strings.TrimLeft(words[1], "-"), "=")
		seen[name] = true
		o, err := parse(append(slices.Clone(words[1:]), "prog", "arg"), noEnv)
		switch {
		case words[0] == "+" && err != nil:
			t.Errorf("%s: %v", line, err)
		case words[0] == "+" && !slices.Equal(o.Apps[0].Argv, []string{"prog", "arg"}):
			t.Errorf("%s: it runs %q", line, o.Apps[0].Argv)
		case words[0] == "-" && err == nil:
			t.Errorf("%s: accepted", line)
		case words[0] == "-" && (!isUsage(err) || strings.Contains(err.Error(), "unknown") || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v", line, err)
		case words[0] == "-":
			// By the name that was typed, or by ours for what it means here.
			own, rest, ok := strings.Cut(err.Error(), ": ")
			if f := foreignByName[name]; !ok || rest == "" || !strings.HasPrefix(own, words[1]) && (f == nil || f.as == "" || !strings.HasPrefix(own, strings.Fields(f.as)[0])) && !strings.HasPrefix(own, "--"+name) {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if rows < 400 {
		t.Errorf("only %d rows", rows)
	}
	for name := range foreignByName {
		if !seen[name] && name != "V" { // TestHabits has that
			t.Errorf("%s is in no row", name)
		}
	}
}

// No short flag takes the rest of a word for its value, but a number.
func TestShortFlags(t *testing.T) {
	for line, want := range map[string]int{"-n4 p": 4, "-np4 p": 4, "-np=4 p": 4, "-n=4 p": 4, "--np=4 p": 4, "-N2 p": 2, "-ppn2 p": 2, "-n 3 p": 3} {
		if o, err := parse(strings.Fields(line), noEnv); err != nil || o.Apps[0].NP != want || o.Apps[0].Argv[0] != "p" {
			t.Errorf("%s: %+v, %v", line, o, err)
		}
	}
	for line, want := range map[string]string{
		"-file x p":    "-file: ",
		"-nolocal p":   "-nolocal: ",
		"-foo p":       "unknown flag: -foo",
		"-nx 4 p":      "unknown flag: -nx",
		"-Hlocalhost":  "unknown flag: -Hlocalhost (the value of -H is a word of its own: -H localhost)",
		"-xA=1 p":      "unknown flag: -xA=1 (the value of -x is a word of its own: -x A=1)",
		"-vl p":        "unknown flag: -vl",
		"--n4 p":       "unknown flag: --n4",
		"-timeout5 p":  "unknown flag: -timeout5",
		"-c4 p":        "-c4: -np N",
		"--unheard p":  "unknown flag: --unheard",
		"-x":           "flag needs an argument",
		"-genv A":      "flag needs an argument: -genv",
		"-l=maybe p":   "-l=maybe: ",
		"-np p":        "invalid argument \"p\"",
		"p : --tag q":  "unknown flag: --tag (flags about the whole job go before the first program)",
		"p : -l q":     "unknown flag: -l, which is --tag (flags about the whole job",
		"p : -nope q":  "unknown flag: -nope",
		"p : --soft q": "--soft: ",
	} {
		if _, err := parse(strings.Fields(line), noEnv); !isUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// docs/running.md says of each of these flags what the table does.
func TestForeignFlagsDocumented(t *testing.T) {
	const file, begin, end = "../docs/running.md", "<!-- foreign flags: from the table in launcher/foreign.go -->\n", "<!-- end of foreign flags -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the flags of other launchers", file)
	}
	want := foreignTable()
	if have == want {
		return
	}
	if os.Getenv("GOMPI_REWRITE") == "" {
		t.Fatalf("%s differs from the table; GOMPI_REWRITE=1 go test ./launcher -run TestForeignFlagsDocumented writes it", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o666); err != nil {
		t.Fatal(err)
	}
}

// foreignTable is the table for people.
func foreignTable() string {
	var is, isNot strings.Builder
	for i := range foreignFlags {
		f := &foreignFlags[i]
		var names []string
		for name := range strings.FieldsSeq(f.names) {
			dashes := "--"
			if len(name) == 1 {
				dashes = "-"
			}
			names = append(names, "`"+dashes+name+"`")
		}
		b, text := &isNot, f.say
		if f.as != "" || f.take != nil {
			if b, text = &is, f.meaning(); f.say == "" {
				text = "`" + text + "`"
			}
		}
		fmt.Fprintf(b, "| %s | %s |\n", strings.Join(names, ", "), strings.ReplaceAll(text, "|", "\\|"))
	}
	return "\n| accepted | what it is here |\n|---|---|\n" + is.String() + "\n| refused | what to use |\n|---|---|\n" + isNot.String()
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
