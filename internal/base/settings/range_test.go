// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gompi/internal/base/settings"
)

func TestBounds(t *testing.T) {
	for _, r := range []settings.Range{settings.Eager, settings.Credit, settings.Ring, settings.TCPEager, settings.TCPChunk, settings.Spin} {
		for text, ok := range map[string]bool{
			fmt.Sprint(r.Min): true, fmt.Sprint(r.Max): true,
			fmt.Sprint(r.Min - 1): false, fmt.Sprint(r.Max + 1): false,
			"": false, "1k": false, "99999999999999999999": false,
		} {
			if _, err := r.Parse(text); (err == nil) != ok {
				t.Errorf("%s=%q: %v", r.Env, text, err)
			}
		}
		n, err := r.Lookup(func(string) string { return "" }, 7)
		if n != 7 || err != nil {
			t.Errorf("%s unset: %d, %v", r.Env, n, err)
		}
		_, err = r.Lookup(func(name string) string { return strings.ToLower(name) }, 7)
		if err == nil || !strings.HasPrefix(err.Error(), r.Env+": ") {
			t.Errorf("%s=%s: error %v", r.Env, strings.ToLower(r.Env), err)
		}
	}
}

func TestChoice(t *testing.T) {
	for _, c := range []struct {
		choice settings.Choice
		text   string
		want   []int
		ok     bool
	}{
		{settings.MamMethod, "auto", []int{0}, true},
		{settings.MamMethod, " RMA-Lock ", []int{3}, true},
		{settings.MamMethod, "col,p2p", nil, false},
		{settings.MamMethod, "alltoall", nil, false},
		{settings.MamMethod, "", nil, false},
		{settings.MamSpawn, "single, background", []int{3, 2}, true},
		{settings.MamSpawn, "single,", nil, false},
	} {
		got, err := c.choice.Parse(c.text)
		if !slices.Equal(got, c.want) || (err == nil) != c.ok {
			t.Errorf("%s=%q: %v, %v, want %v", c.choice.Env, c.text, got, err, c.want)
		}
	}
}
