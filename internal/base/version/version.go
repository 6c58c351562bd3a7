// SPDX-License-Identifier: Apache-2.0

// Package version says from which gompi a program was built. Gompi is the version,
// Line the answer to --version. Both come from the build information that the go
// command writes into a program.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"gompi/internal/base/wire"
)

// Release is the version of gompi if the build information has none.
const Release = "0.1"

// Gompi returns the version of gompi that this program was built with, such as
// "v1.2.3", "0.1 (4f1c2a9b8d7e)" or "0.1 (unknown build)".
var Gompi = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return fromBuild(info)
})

// Line returns the answer of a command to --version.
func Line(command string) string {
	return fmt.Sprintf("%s %s, protocol %d, %s %s/%s\n", command, Gompi(), wire.Protocol, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// module is the path of gompi's module.
const module = "gompi"

// fromBuild reads the version from the program's build information. If gompi is not
// the main module, the revision there belongs to another project.
func fromBuild(info *debug.BuildInfo) string {
	if info == nil {
		return Release + " (unknown build)"
	}
	if info.Main.Path == module {
		return fromMainModule(info)
	}
	for _, d := range info.Deps {
		if d.Path != module {
			continue
		}
		if d.Replace != nil {
			d = d.Replace
		}
		if known(d.Version) {
			return d.Version
		}
	}
	return Release + " (unknown build)"
}

// fromMainModule reads the version of a program of gompi's own module.
func fromMainModule(info *debug.BuildInfo) string {
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	switch v := info.Main.Version; {
	case known(v) && (revision == "" || strings.Contains(v, revision)):
		return v
	case known(v):
		return v + " (" + revision + dirty + ")"
	case revision == "":
		return Release + " (unknown build)"
	}
	return Release + " (" + revision + dirty + ")"
}

// known reports whether v is a version that the go command has found out. A module
// in the folder of a replace directive has none. Its requirement then reads v0.0.0,
// with or without zeros behind it.
func known(v string) bool {
	return v != "" && v != "(devel)" && v != "v0.0.0" && !strings.HasPrefix(v, "v0.0.0-00010101000000-")
}
