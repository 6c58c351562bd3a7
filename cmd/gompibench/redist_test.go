// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
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
		"extra": "unexpected", "--from 2 --to 2": "not the same", "--from 0": "--from 0", "--mib 0": "--mib 0", "--mib NaN": "--mib NaN", "--rounds 0": "--rounds 0",
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
