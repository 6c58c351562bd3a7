// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"slices"
	"strings"
	"testing"
)

func FuzzHosts(f *testing.F) {
	f.Add("a:4,b", "a slots=4 max_slots=8 # x\n[::1]:2\n")
	f.Fuzz(func(t *testing.T, list, file string) {
		for _, parse := range []func() ([]hostSlots, error){
			func() ([]hostSlots, error) { return parseHosts(list) },
			func() ([]hostSlots, error) { return parseHostfile("f", file) },
		} {
			hs, err := parse()
			if (err == nil) == (len(hs) == 0) {
				t.Errorf("%d hosts, error %v", len(hs), err)
			}
			for _, h := range hs {
				if h.name == "" || h.slots < 0 || h.maxSlots < 0 || h.maxSlots > 0 && h.slots > h.maxSlots {
					t.Errorf("%+v", h)
				}
			}
		}
	})
}

// The program's own words must come through whatever stands before it.
func FuzzLongFlags(f *testing.F) {
	f.Add("-np 4 -x A -host h -v")
	f.Add("-n4 --np=3 -")
	f.Fuzz(func(t *testing.T, line string) {
		args := append(strings.Fields(line), "0", "0", "--", "-np", "-host") // no flag has three values
		v := flags(&options{}, true)
		out, err := longFlags(v.set, v.set, args)
		if err != nil {
			return // a flag of others
		}
		if tail := args[len(args)-3:]; len(out) < 3 || !slices.Equal(out[len(out)-3:], tail) {
			t.Fatalf("%q became %q", args, out)
		}
		for _, w := range out {
			if !slices.Contains(args, w) && !strings.HasPrefix(w, "--") && !strings.Contains(line, "env") && !strings.Contains(line, "export") && !slices.Contains([]string{"1", "core", "slot", "node"}, w) && !strings.HasPrefix(w, "ppr:") {
				t.Errorf("%q became %q", args, out)
			}
		}
	})
}
