// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestParseSpawn(t *testing.T) {
	c, err := parseSpawn(strings.Fields("--count 28,84 --rounds 3 --pause 0s --np 2 --spare 84 --json"))
	if err != nil || !slices.Equal(c.opt.Counts, []int{28, 84}) || c.opt.Rounds != 3 || c.opt.Pause != 0 || c.np != 2 || c.spare != 84 || !c.json {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = parseSpawn(nil); err != nil || c.opt.Pause != 300*time.Millisecond || c.np != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	for line, want := range map[string]string{
		"extra": "unexpected", "--count 2,0": "--count 0", "--count x": "x", "--rounds 0": "--rounds 0", "--np 0": "--np 0", "--spare -1": "--spare -1", "--pause -1s": "--pause -1s",
	} {
		if _, err := parseSpawn(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := parseSpawn([]string{"-h"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	for _, field := range []string{"msec_max", "merge_msec", "--pause"} {
		if !strings.Contains(spawnUsage(), field) {
			t.Errorf("help lacks %s", field)
		}
	}
}
