// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"gompi/mpitest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	mpitest.RemoveBuilt()
	os.Exit(code)
}

func TestParseTune(t *testing.T) {
	c, err := parseTune(strings.Fields("bcast --into f --bytes 8,4K allreduce --msec 20 --rounds 5 --np 4"))
	if err != nil || c.into != "f" || c.np != 4 || c.opt.Time != 20*time.Millisecond || c.opt.Rounds != 5 ||
		!reflect.DeepEqual(c.opt.Ops, []string{"bcast", "allreduce"}) || !reflect.DeepEqual(c.opt.Bytes, []int{8, 4096}) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := parseTune(nil); err != nil || c.opt.Ops != nil || c.opt.Bytes != nil {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{"--msec 0", "--rounds 0", "--np 1", "--bytes 8x", "--nosuch"} {
		if _, err := parseTune(strings.Fields(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := parseTune([]string{"--help"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
	if text := tuneUsage(); !strings.Contains(text, "--into FILE") {
		t.Errorf("help is %q", text)
	}
	launched := launchArgs("gompirun", "gompibench", 3, true, nil, []string{"tune", "bcast", "--msec", "20"})
	if got := strings.Join(launched[:5], " "); got != "gompirun -np 3 gompibench tune" {
		t.Errorf("starts %q", launched)
	}
	if c, err := parseTune(launched[5:]); err != nil || !c.progress || !reflect.DeepEqual(c.opt.Ops, []string{"bcast"}) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestParseFirst(t *testing.T) {
	c, err := parseFirst(strings.Fields("--calls 4 --rounds 7 --json --np 3"))
	if err != nil || c.opt.Calls != 4 || c.opt.Rounds != 7 || !c.json || c.np != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{"barrier", "--calls 0", "--rounds -1", "--np 0", "--nosuch"} {
		if _, err := parseFirst(strings.Fields(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	launched := launchArgs("gompirun", "gompibench", 3, true, []string{"--spare", "7"}, []string{"first", "--calls", "2"})
	if c, err := parseFirst(launched[7:]); err != nil || c.opt.Calls != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "table")
	for _, text := range []string{"one\n", "two\n"} {
		if err := replaceFile(path, text); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
	if err := replaceFile(filepath.Join(dir, "nosuch", "table"), ""); err == nil {
		t.Error("a file in no directory")
	}
	if err := replaceFile(dir, ""); err == nil {
		t.Error("a directory was replaced")
	}
}

// TestTuneInterrupted: what was measured before a signal is in the table.
func TestTuneInterrupted(t *testing.T) {
	into := filepath.Join(t.TempDir(), "table")
	cmd := exec.Command(mpitest.Build(t, "gompi/cmd/gompirun"), "-np", "2", mpitest.Build(t, "gompi/cmd/gompibench"),
		"tune", "barrier", "bcast", "--rounds", "1", "--msec", "10", "--progress", "--into", into)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }).Stop()
	var text bytes.Buffer
	for piece := make([]byte, 4096); !bytes.Contains(text.Bytes(), []byte("bcast of")); {
		n, err := errs.Read(piece)
		text.Write(piece[:n])
		if err != nil {
			t.Fatalf("ended with %q", text.String())
		}
	}
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	io.Copy(&text, errs)
	if cmd.Wait() == nil {
		t.Error("status 0")
	}
	table, err := os.ReadFile(into)
	if err != nil || !strings.Contains(string(table), "\nbarrier 2 0 ") || strings.Contains(string(table), "\nbcast ") {
		t.Errorf("%v, table\n%s\nstandard error %q", err, table, text.String())
	}
}
