// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestParseRedist(t *testing.T) {
	c, err := parseRedist(strings.Fields("--from 4 --to 2 --mib 0.5 --methods pull,col --strategies wd --rounds 3 --iteration 1ms --json"))
	if err != nil || c.opt.From != 4 || c.opt.To != 2 || c.opt.Bytes != 1<<19 || len(c.opt.Variants) != 2 || c.opt.Variants[0].String() != "pull-wd" ||
		c.opt.Rounds != 3 || c.opt.Iteration != time.Millisecond || !c.json {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = parseRedist(nil); err != nil || c.opt.Bytes != 256<<20 || len(c.opt.Variants) != 24 || c.opt.Rounds != 20 {
		t.Errorf("%+v, %v", c, err)
	}
	for line, want := range map[string]string{
		"extra": "--tables has files", "--tables": "--tables has files", "--pairs 1,0": "at least 1", "--pairs 1,2 --from 2": "--pairs goes", "--into x": "--pairs goes", "--doc x": "--doc goes",
		"--from 2 --to 2": "not the same", "--from 0": "--from 0", "--mib 0": "--mib 0", "--mib NaN": "--mib NaN", "--rounds 0": "--rounds 0",
		"--iteration 0s": "--iteration", "--methods x": `no method "x"`, "--strategies x": `no strategy "x"`,
	} {
		if _, err := parseRedist(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := parseRedist([]string{"-h"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	for _, field := range []string{"touch_msec", "from_iter_msec", "--strategies"} {
		if !strings.Contains(redistUsage(), field) {
			t.Errorf("help lacks %s", field)
		}
	}
}

func TestProgress(t *testing.T) {
	part, what, ok := progressOf(fmt.Sprintf(progressLine+"%s", 2, 4, 3, 12, "round 1 of 2, col-wd"))
	if !ok || part != 0.25 || what != "round 1 of 2, col-wd" {
		t.Errorf("%v, %q, %v", part, what, ok)
	}
	for _, line := range []string{"", "gompibench: redist: col-nb is left out", "gompibench: redist 2->4: 3 of 0, x"} {
		if _, _, ok := progressOf(line); ok {
			t.Errorf("%q is progress", line)
		}
	}
}

// A job of the matrix: its results come, what it says is told, and one that fails, or that
// is not to go on, ends with all that it has started.
func TestRunJob(t *testing.T) {
	script := func(text string) *exec.Cmd { return exec.Command("/bin/sh", "-c", text) }
	heard := 0.0
	told := func(part float64, _ string) { heard = part }
	rs, err := runJob(t.Context(), script(`echo "gompibench: redist 1->2: 1 of 2, x" >&2; echo '{"bench":"latency"}'`), told)
	if err != nil || len(rs) != 1 || heard != 0.5 {
		t.Errorf("%v, %v, heard %v", rs, err, heard)
	}
	if _, err := runJob(t.Context(), script("exit 3"), told); err == nil {
		t.Error("status 3 is none")
	}
	ctx, stop := context.WithCancel(t.Context())
	began := time.Now()
	_, err = runJob(ctx, script(`echo "gompibench: redist 1->2: 1 of 2, x" >&2; sleep 60`), func(float64, string) { stop() })
	if !errors.Is(err, context.Canceled) || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}
