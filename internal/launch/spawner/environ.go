// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/launch"
)

// Variables that tell a process about itself, besides the two by which it joins. They are
// for programs that do not join, or have not joined yet. docs/running.md documents them.
const (
	EnvRank      = "GOMPI_RANK"
	EnvSize      = "GOMPI_SIZE"
	EnvLocalRank = "GOMPI_LOCAL_RANK"
	EnvLocalSize = "GOMPI_LOCAL_SIZE"
	EnvJob       = "GOMPI_JOB"
)

// identity returns the variables that differ from process to process.
func (sp *Spawner) identity(s *launch.Start, local, localSize int) []string {
	env := []string{
		protocol.EnvAddr + "=" + sp.control.Addr(), protocol.EnvToken + "=" + sp.control.Token(tokenOf(s)),
		fmt.Sprintf("%s=%016x", EnvJob, uint64(sp.job)),
		fmt.Sprintf("%s=%d", EnvLocalRank, local), fmt.Sprintf("%s=%d", EnvLocalSize, localSize),
	}
	if s.Spares() {
		return append(env, protocol.EnvSpare+"=1")
	}
	return append(env, fmt.Sprintf("%s=%d", EnvRank, s.Rank), fmt.Sprintf("%s=%d", EnvSize, s.Size))
}

// environment returns base with the values of set in it. Each name occurs once, as the
// first of two would win. It leaves out the variables of identity, which base may have
// from another gompirun.
func environment(base, set []string) []string {
	last := map[string]string{}
	for _, x := range set {
		name, _, _ := strings.Cut(x, "=")
		last[name] = x
	}
	for _, name := range [...]string{protocol.EnvAddr, protocol.EnvToken, protocol.EnvSpare, EnvJob, EnvRank, EnvSize, EnvLocalRank, EnvLocalSize} {
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

// programOf returns the program of the command line that a process is started as, with the
// environment and directory that its own start adds.
func programOf(o *launch.Options, s *launch.Start) *launch.App {
	of := &o.Apps[s.App]
	if s.Default() {
		return of
	}
	own := *of
	if own.Env = append(of.Env[:len(of.Env):len(of.Env)], s.Env...); s.Dir != "" {
		if own.Wdir = s.Dir; !filepath.IsAbs(s.Dir) {
			own.Wdir = filepath.Join(of.Wdir, s.Dir)
		}
	}
	return &own
}

// sameEnvironment reports whether two processes start in the same directory with the same
// path and variables.
func sameEnvironment(s, t *launch.Start) bool {
	return s.Dir == t.Dir && s.Path == t.Path && slices.Equal(s.Env, t.Env)
}

// searchPath returns the PATH that the program will see.
func searchPath(a *launch.App) string {
	path := os.Getenv("PATH")
	for _, x := range a.Env {
		if v, ok := strings.CutPrefix(x, "PATH="); ok {
			path = v
		}
	}
	return path
}

// tokenOf returns the id whose token a process shows: for a spare, that of the spare,
// until a change takes it.
func tokenOf(s *launch.Start) wire.ProcID {
	if s.Spares() {
		return wire.ProcID{Serial: s.Spare}
	}
	return s.Proc
}
