// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// checkModule looks at the text of go.mod.
func checkModule(gomod string) []string {
	var out []string
	block := ""
	for i, line := range strings.Split(gomod, "\n") {
		line, _, _ = strings.Cut(line, "//")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if f[0] == ")" {
			block = ""
			continue
		}
		verb := block
		if verb == "" {
			verb, f = f[0], f[1:]
		}
		if len(f) > 0 && f[0] == "(" {
			block = verb
			continue
		}
		switch {
		case len(f) == 0:
		case verb == "replace":
			out = append(out, fmt.Sprintf("go.mod:%d: replace directive", i+1))
		case verb == "require" && !slices.ContainsFunc(modules, func(m module) bool { return m.path == f[0] }):
			out = append(out, fmt.Sprintf("go.mod:%d: %s is not in internal/test/archtest/table.go (and docs/dependencies.md)", i+1, f[0]))
		}
	}
	return out
}

// tooHeavy returns what the library must not link of a list of packages.
func tooHeavy(deps []string) []string {
	var out []string
	for _, d := range deps {
		if within(mpiWithout, d) {
			out = append(out, d)
		}
	}
	return out
}
