// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestParseCurve(t *testing.T) {
	c, err := parseCurve(strings.Fields("--bytes 1,4K --rounds 7 --until-both 3s --json --batches"))
	if err != nil || len(c.opt.Bytes) != 2 || c.opt.Rounds != 7 || c.opt.Both != 3*time.Second || !c.json || !c.opt.Batches {
		t.Errorf("%+v, %v", c, err)
	}
	for line, want := range map[string]string{"x": "unexpected", "--rounds 0": "--rounds", "--until-both -1s": "--until-both", "--bytes 1x": "size"} {
		if _, err := parseCurve(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := parseCurve([]string{"--help"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}
