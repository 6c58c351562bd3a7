// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gompi/internal/launch"
)

func noEnv(string) string { return "" }

func TestParse(t *testing.T) {
	o, err := parse([]string{"-np", "4", "-x", "A=1", "--timeout", "60", "-bind-to", "core", "--oversubscribe", "-v", "--eager=4096",
		"prog", "-np", "9", "--tag", ":", "--np=2", "-wdir", "/tmp", "other", "-x"}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := []launch.App{
		{NP: 4, Argv: []string{"prog", "-np", "9", "--tag"}, Env: []string{"A=1"}},
		{NP: 2, Argv: []string{"other", "-x"}, Wdir: "/tmp"},
	}
	if !reflect.DeepEqual(o.Apps, want) {
		t.Errorf("apps %+v, want %+v", o.Apps, want)
	}
	if o.Timeout != time.Minute || o.Bind != "core" || !o.Verbose || o.Tag || o.Stdin != 0 || o.KillGrace != 2*time.Second {
		t.Errorf("options %+v", o)
	}
	if o.Settings["GOMPI_EAGER"] != "4096" || o.Settings[verboseEnv] != "1" || o.Settings[boundEnv] != "core" || len(o.Settings) != 3 {
		t.Errorf("settings %v", o.Settings)
	}
}

func TestSpellingsOfTheNumberOfProcesses(t *testing.T) {
	for _, args := range []string{"-n 3 p", "-n3 p", "-np 3 p", "--np 3 p", "-np=3 p", "--np=3 p", "-v -n 3 p", "-H localhost:3 p",
		"--host localhost,127.0.0.1:2 p", "-np 3 -host localhost p", "-np 2 p : -n 1 p", "-allow-run-as-root -np 3 p"} {
		o, err := parse(strings.Fields(args), noEnv)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		} else if o.ranks() != 3 {
			t.Errorf("%s: %d ranks", args, o.ranks())
		}
	}
}

func TestParseRefuses(t *testing.T) {
	hostfile := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hostfile, []byte("# ours\nlocalhost slots=2 max_slots=3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":                                      "no program",
		"-np 2":                                 "no program",
		"-np 0 p":                               "at least 1",
		"-np x p":                               "invalid",
		"--nosuch p":                            "unknown flag",
		"-np 2 p : q":                           "-np is missing for q",
		"p : -np 2 q":                           "-np is missing for p",
		"-np 2 p :":                             "no program",
		"-np 1 p : -np 1 --tag q":               "before the first program",
		"--timeout soon p":                      "--timeout soon",
		"--timeout -3s p":                       "negative",
		"--stdin one p":                         "--stdin one",
		"-np 2 --stdin 2 p":                     "only 2 ranks",
		"--bind cores p":                        "--bind cores",
		"--map moon p":                          "--map moon",
		"--transport shm,udp p":                 `"udp"`,
		"--eager much p":                        `"much"`,
		"--cma on p":                            "auto or off",
		"--tcp-eager 31 p":                      "--tcp-eager 31: \"31\" is not a number of bytes from 64 to 65536",
		"--tcp-eager 65537 p":                   "from 64 to 65536",
		"--tcp-chunk 1 p":                       "from 4096 to 4194304",
		"--credit 1 p":                          "--credit 1: ",
		"--ring 0 p":                            "from 1 to 16777216",
		"-x GOMPI_RING=0 p":                     "-x GOMPI_RING=0: ",
		"--spin -1 p":                           "turns from 0",
		"-x =3 p":                               "name is missing",
		"-H no-such-host p":                     "host no-such-host is not this host",
		"-H localhost:none p":                   "localhost:none",
		"--hostfile /nonexistent p":             "no such file",
		"-np 4 --hostfile " + hostfile + " p":   "localhost: max_slots is 3, 4 processes",
		"-np 70000 p":                           "at most 65536",
		"-np 99999999999 p":                     "at most 65536",
		"-np 4 --min 5 p":                       "--min 5: the job begins with 4",
		"-np 4 --max 3 p":                       "--max 3: the job begins with 4",
		"-np 4 --slots 3 p":                     "the job has 3 slots",
		"-np 4 --slots=-1 p":                    "--slots -1",
		"-np 4 --strict-slots -H localhost:3 p": "the job has 3 slots",
		"--resize-timeout soon p":               "--resize-timeout soon",
		"--commit-timeout soon p":               "--commit-timeout soon",
		"-np 1 --min 1 p : -np 1 --max 3 q":     "before the first program",
	} {
		_, err := parse(strings.Fields(args), noEnv)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		} else if !isUsage(err) {
			t.Errorf("%q: %v is no usage error", args, err)
		}
	}
	if _, err := parse([]string{"-np", "2", ""}, noEnv); !isUsage(err) || !strings.Contains(err.Error(), "name is empty") {
		t.Errorf("an empty name: %v", err)
	}
	if o, err := parse([]string{"--hostfile", hostfile, "p"}, noEnv); err != nil || o.ranks() != 2 {
		t.Errorf("slots of the host file: %+v, %v", o, err)
	}
}

func TestHelp(t *testing.T) {
	var help errHelp
	if _, err := parse([]string{"--help"}, noEnv); !errors.As(err, &help) || !strings.Contains(string(help), "--kill-grace") {
		t.Errorf("--help: %v", err)
	}
	if _, group, _ := strings.Cut(string(help), changesTitle); strings.Count(group, "--slots N") != 1 || strings.Count(string(help), "--max ") != 1 {
		t.Errorf("flags about changes are no group:\n%s", help)
	}
	if _, err := parse([]string{"--help-env"}, noEnv); !errors.As(err, &help) {
		t.Errorf("--help-env: %v", err)
	}
	for _, k := range Knobs() {
		if !strings.Contains(string(help), k.Env) || !strings.Contains(string(help), "--"+k.Flag) {
			t.Errorf("--help-env does not know %s", k.Env)
		}
	}
}

func TestParseChanges(t *testing.T) {
	hostfile := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hostfile, []byte("localhost slots=2 max_slots=9\n127.0.0.1 max_slots=4"), 0o666); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]changes{
		"-np 2 p": {resizeTimeout: time.Minute, commitTimeout: time.Minute, leaveTimeout: time.Minute},
		"-np 2 --min 1 --max 8 --slots 16 --resize-timeout 5 --leave-timeout 0 p": {slots: 16, min: 1, max: 8, resizeTimeout: 5 * time.Second, commitTimeout: 5 * time.Second, leaveTimeout: -1},
		"-np 2 --commit-timeout 0 p":                         {resizeTimeout: time.Minute, commitTimeout: -1, leaveTimeout: time.Minute},
		"-np 2 --resize-timeout 0 --commit-timeout 3 p":      {resizeTimeout: -1, commitTimeout: 3 * time.Second, leaveTimeout: time.Minute},
		"-np 2 --strict-slots -H localhost:5 p":              {slots: 5, strict: true, resizeTimeout: time.Minute, commitTimeout: time.Minute, leaveTimeout: time.Minute},
		"-np 2 --hostfile " + hostfile + " p":                {slots: 13, resizeTimeout: time.Minute, commitTimeout: time.Minute, leaveTimeout: time.Minute},
		"-np 2 --slots 20 --hostfile " + hostfile + " p":     {slots: 13, resizeTimeout: time.Minute, commitTimeout: time.Minute, leaveTimeout: time.Minute},
		"-np 2 --strict-slots --hostfile " + hostfile + " p": {slots: 3, strict: true, resizeTimeout: time.Minute, commitTimeout: time.Minute, leaveTimeout: time.Minute},
	} {
		if o, err := parse(strings.Fields(args), noEnv); err != nil || !reflect.DeepEqual(o.changes, want) {
			t.Errorf("%s: %+v, %v; want %+v", args, o, err, want)
		}
	}
	s, err := parsePSet("app://left=0-2,7,4", 8)
	if want := (pset{"left", []int{0, 1, 2, 7, 4}}); err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%v, %v", s, err)
	}
	for _, text := range []string{"", "a", "a=", "=1", "a=x", "a=1-", "a=2-1", "a=8", "a=0-8", "a=1,1", "a=0-3,2", "a=-1", "a=0-99999999999999999999"} {
		if s, err := parsePSet(text, 8); !isUsage(err) {
			t.Errorf("--pset %s: %v, %v", text, s, err)
		}
	}
}

func TestSettingsPrefer(t *testing.T) {
	env := func(name string) string {
		return map[string]string{"GOMPI_RING": "1", "GOMPI_CREDIT": "4096", "GOMPI_EAGER": "1"}[name]
	}
	o, err := parse([]string{"--ring", "3", "-x", "GOMPI_RING=2", "-x", "GOMPI_CREDIT=8192", "p"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"GOMPI_RING": "3", "GOMPI_CREDIT": "8192", "GOMPI_EAGER": "1"}; !reflect.DeepEqual(o.Settings, want) {
		t.Errorf("settings %v, want %v", o.Settings, want)
	}
	for v, ok := range map[string]bool{"-1": true, "0": true, "-2": false, "x": false} {
		if o, err := parse([]string{"--eager", v, "p"}, noEnv); (err == nil) != ok || ok && o.Settings["GOMPI_EAGER"] != v {
			t.Errorf("--eager %s: %v", v, err)
		}
	}
	if _, err := parse([]string{"p"}, func(name string) string { return map[string]string{"GOMPI_CMA": "maybe"}[name] }); err == nil || !strings.Contains(err.Error(), "GOMPI_CMA=maybe") {
		t.Errorf("a wrong setting in the environment: %v", err)
	}
}

// TestTableOfRules: ranks get the rules without comments; a wrong file is
// refused with its line.
func TestTableOfRules(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	for name, text := range map[string]string{good: "# measured\n\nbcast 4  64 linear # 8: 0.1\n", bad: "# measured\nbcast 4 64 nosuch\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"GOMPI_COLL_TABLE": good}
	o, err := parse([]string{"p"}, func(name string) string { return env[name] })
	if err != nil || o.Settings["GOMPI_COLL_TABLE"] != "bcast 4 64 linear\n" {
		t.Errorf("%v, %v", o, err)
	}
	for file, want := range map[string]string{
		bad:                          `bad: line 2 of the rules: no algorithm "nosuch" for bcast`,
		filepath.Join(dir, "nosuch"): "no such file",
	} {
		_, err := parse([]string{"--coll-table", file, "p"}, func(string) string { return "" })
		if !isUsage(err) || !strings.Contains(err.Error(), "--coll-table "+dir) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := parse([]string{"--coll", "bcast=nosuch", "p"}, func(string) string { return "" }); !isUsage(err) || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("--coll: %v", err)
	}
}

// TestModel: ranks get the model itself; a wrong file is refused.
func TestModel(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	for name, text := range map[string]string{good: "{\"Touch\": 0.5,\n \"Lines\": {\"shm\": {}}}\n", bad: `{"Touch": -1, "Lines": {"shm": {}}}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, err := parse([]string{"--mam-model", good, "p"}, func(string) string { return "" })
	if err != nil || o.Settings["GOMPI_MAM_MODEL"] != `{"Touch":0.5,"Lines":{"shm":{}}}` {
		t.Errorf("%v, %v", o, err)
	}
	for file, want := range map[string]string{bad: "touch takes -1 ns", filepath.Join(dir, "nosuch"): "no such file"} {
		_, err := parse([]string{"--mam-model", file, "p"}, func(string) string { return "" })
		if !isUsage(err) || !strings.Contains(err.Error(), "--mam-model "+dir) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestParseHostfile(t *testing.T) {
	hs, err := parseHostfile("f", "a\nb slots=4 # four\n\n c:2 max_slots=8\n[::1]:3\n::1\n")
	want := []hostSlots{{"a", 0, 0}, {"b", 4, 0}, {"c", 2, 8}, {"::1", 3, 0}, {"::1", 0, 0}}
	if err != nil || !reflect.DeepEqual(hs, want) {
		t.Errorf("%+v, %v, want %+v", hs, err, want)
	}
	for text, where := range map[string]string{
		"":                      "no host",
		"a\nb slots=x":          "f:2:",
		"a cores=3":             `"cores=3"`,
		"a slots=0":             `"slots=0"`,
		"a slots=9 max_slots=8": "above max_slots=8",
		"x=1":                   `"x=1"`,
	} {
		if _, err := parseHostfile("f", text); err == nil || !strings.Contains(err.Error(), where) {
			t.Errorf("%q: error %v, want %q", text, err, where)
		}
	}
}
