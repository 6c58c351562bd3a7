// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	settings := func(revision, modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: modified}}
	}
	const revision = "4f1c2a9b8d7e00112233"
	own := debug.Module{Path: "gompi", Version: "(devel)"}
	user := debug.Module{Path: "example.com/solver", Version: "v3.4.5"}
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"no information":        {nil, "0.1 (unknown build)"},
		"own, no repository":    {&debug.BuildInfo{Main: own}, "0.1 (unknown build)"},
		"own, a revision":       {&debug.BuildInfo{Main: own, Settings: settings(revision, "false")}, "0.1 (4f1c2a9b8d7e)"},
		"own, changed":          {&debug.BuildInfo{Main: own, Settings: settings(revision, "true")}, "0.1 (4f1c2a9b8d7e+dirty)"},
		"own, short revision":   {&debug.BuildInfo{Main: own, Settings: settings("4f1c", "false")}, "0.1 (4f1c)"},
		"own, installed":        {&debug.BuildInfo{Main: debug.Module{Path: "gompi", Version: "v1.2.3"}}, "v1.2.3"},
		"own, tagged":           {&debug.BuildInfo{Main: debug.Module{Path: "gompi", Version: "v1.2.3"}, Settings: settings(revision, "true")}, "v1.2.3 (4f1c2a9b8d7e+dirty)"},
		"own, pseudo-version":   {&debug.BuildInfo{Main: debug.Module{Path: "gompi", Version: "v0.0.0-20260102030405-4f1c2a9b8d7e+dirty"}, Settings: settings(revision, "true")}, "v0.0.0-20260102030405-4f1c2a9b8d7e+dirty"},
		"required":              {&debug.BuildInfo{Main: user, Deps: []*debug.Module{{Path: "x", Version: "v9.9.9"}, {Path: "gompi", Version: "v1.2.3"}}, Settings: settings(revision, "false")}, "v1.2.3"},
		"replaced by a folder":  {&debug.BuildInfo{Main: user, Deps: []*debug.Module{{Path: "gompi", Version: "v1.2.3", Replace: &debug.Module{Path: "../gompi"}}}, Settings: settings(revision, "false")}, "0.1 (unknown build)"},
		"replaced by a module":  {&debug.BuildInfo{Main: user, Deps: []*debug.Module{{Path: "gompi", Version: "v0.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"}}}}, "v1.2.4"},
		"go.work":               {&debug.BuildInfo{Main: user, Deps: []*debug.Module{{Path: "gompi", Version: "(devel)"}}, Settings: settings(revision, "false")}, "0.1 (unknown build)"},
		"placeholder":           {&debug.BuildInfo{Main: user, Deps: []*debug.Module{{Path: "gompi", Version: "v0.0.0-00010101000000-000000000000"}}}, "0.1 (unknown build)"},
		"not a module's gompi":  {&debug.BuildInfo{Main: user, Settings: settings(revision, "false")}, "0.1 (unknown build)"},
		"another module's name": {&debug.BuildInfo{Main: user, Deps: []*debug.Module{{Path: "gompi/x", Version: "v1.2.3"}}}, "0.1 (unknown build)"},
	} {
		if got := fromBuild(c.info); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if Gompi() == "" {
		t.Error("no version")
	}
}

func BenchmarkGompi(b *testing.B) {
	for b.Loop() {
		info, _ := debug.ReadBuildInfo()
		fromBuild(info)
	}
}
