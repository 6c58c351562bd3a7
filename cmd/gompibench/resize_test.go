// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gompi/bench"
)

func TestParseResize(t *testing.T) {
	c, err := parseResize(strings.Fields("--start 28 --delta 28,56 --mode sub --busy --nonblocking --rounds 3 --spare 84 --json"))
	want := bench.ResizeOptions{Start: 28, Deltas: []int{28, 56}, Remove: true, Busy: true, Nonblocking: true, Rounds: 3}
	if err != nil || !reflect.DeepEqual(c.opt, want) || !c.json || c.spare != 84 || c.opt.Size() != 56 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = parseResize(nil); err != nil || c.opt.Remove || c.opt.Rounds != bench.DefaultResizeRounds || c.opt.Size() != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	for line, want := range map[string]string{
		"extra": "unexpected", "--mode both": "neither add nor sub", "--start 0": "--start 0", "--delta 2,0": "--delta 0", "--delta x": "x", "--rounds 0": "--rounds 0", "--spare -1": "--spare -1",
	} {
		if _, err := parseResize(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := parseResize([]string{"-h"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	for _, field := range []string{"total_msec", "skew_msec", "gone_msec", "--nonblocking"} {
		if !strings.Contains(resizeUsage(), field) {
			t.Errorf("help lacks %s", field)
		}
	}
}
