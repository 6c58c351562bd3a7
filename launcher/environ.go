// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"os"
	"strings"

	"gompi/internal/control"
)

// What a process is told of itself in its environment, besides the two
// variables by which it joins; for programs that do not, or have not yet.
// docs/running.md tells users.
const (
	envRank      = "GOMPI_RANK"
	envSize      = "GOMPI_SIZE"
	envLocalRank = "GOMPI_LOCAL_RANK"
	envLocalSize = "GOMPI_LOCAL_SIZE"
	envJob       = "GOMPI_JOB"
)

// identity is the part of a process's environment that is its own.
func (a *agent) identity(s *starting, local, localSize int) []string {
	return []string{
		control.EnvAddr + "=" + a.plane.Addr(), control.EnvToken + "=" + s.Token,
		fmt.Sprintf("%s=%016x", envJob, uint64(a.job)),
		fmt.Sprintf("%s=%d", envRank, s.Rank), fmt.Sprintf("%s=%d", envSize, s.Size),
		fmt.Sprintf("%s=%d", envLocalRank, local), fmt.Sprintf("%s=%d", envLocalSize, localSize),
	}
}

// environment is base with the values of set in it, each name once (the first
// of two would win), and without what identity adds: base may have it from
// another gompirun.
func environment(base, set []string) []string {
	last := map[string]string{}
	for _, x := range set {
		name, _, _ := strings.Cut(x, "=")
		last[name] = x
	}
	for _, name := range [...]string{control.EnvAddr, control.EnvToken, envJob, envRank, envSize, envLocalRank, envLocalSize} {
		last[name] = ""
	}
	env := make([]string, 0, len(base)+len(set)+2)
	for _, x := range base {
		name, _, _ := strings.Cut(x, "=")
		if _, ok := last[name]; !ok {
			env = append(env, x)
		}
	}
	for _, x := range set {
		name, _, _ := strings.Cut(x, "=")
		if last[name] == x {
			env = append(env, x)
			last[name] = ""
		}
	}
	return env
}

// searchPath is the PATH that the program will see.
func searchPath(a *app) string {
	path := os.Getenv("PATH")
	for _, x := range a.env {
		if v, ok := strings.CutPrefix(x, "PATH="); ok {
			path = v
		}
	}
	return path
}
