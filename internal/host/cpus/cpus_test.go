// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"testing"
	"testing/fstest"
)

// twoSockets: cores {0,4} {1,5} on node 0, {2,6} {3,7} on node 1.
func twoSockets(all Set) Topology {
	fs := fstest.MapFS{
		"sys/devices/system/node/node0/cpulist": {Data: []byte("0-1,4-5\n")},
		"sys/devices/system/node/node1/cpulist": {Data: []byte("2-3,6-7\n")},
	}
	for c := range 8 {
		fs[fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", c)] = &fstest.MapFile{Data: fmt.Appendf(nil, "%d,%d\n", c%4, c%4+4)}
	}
	t := Topology{All: all}
	t.fill(fs)
	return t
}

func TestPlace(t *testing.T) {
	whole := twoSockets(Set{0, 1, 2, 3, 4, 5, 6, 7})
	part := twoSockets(Set{1, 2, 5})
	for _, c := range []struct {
		name string
		t    Topology
		kind string
		n    int
		want string
	}{
		{"one rank gets all", whole, "", 1, "[0-7]"},
		{"shares", whole, "core", 2, "[0-1,4-5 2-3,6-7]"},
		{"uneven shares", whole, "", 3, "[0,4 1,5 2-3,6-7]"},
		{"a core each", whole, "", 4, "[0,4 1,5 2,6 3,7]"},
		{"more ranks than cores, for a start", whole, "", 5, "[0,4 1,5 2,6 3,7 0,4]"},
		{"more ranks than cores, bound", whole, "core", 5, "[0,4 1,5 2,6 3,7 0,4]"},
		{"none", whole, "none", 2, "[any any]"},
		{"numa", whole, "numa", 4, "[0-1,4-5 0-1,4-5 2-3,6-7 2-3,6-7]"},
		{"inside an affinity mask", part, "core", 2, "[1,5 2]"},
		{"nothing known", Topology{}, "core", 2, "[any any]"},
	} {
		var got []string
		for i := range c.n {
			got = append(got, c.t.Binding(c.kind, i, c.n).String())
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

func TestTopologyWithoutSys(t *testing.T) {
	top := Read(fstest.MapFS{"sys/devices/system/cpu/cpu0/topology/thread_siblings_list": {Data: []byte("0-,x")}})
	if len(top.All) == 0 || len(top.Cores) != len(top.All) || len(top.nodes) != 1 {
		t.Errorf("%+v", top)
	}
}

func FuzzCPUList(f *testing.F) {
	f.Add("0-1,4-5\n")
	f.Fuzz(func(t *testing.T, list string) {
		top := Topology{All: Set{0, 1, 5}}
		top.fill(fstest.MapFS{
			"sys/devices/system/cpu/cpu0/topology/thread_siblings_list": {Data: []byte(list)},
			"sys/devices/system/node/node0/cpulist":                     {Data: []byte(list)},
		})
		n := 0
		for _, c := range top.Cores {
			n += len(c)
		}
		if n != 3 || len(top.nodes) != 1 {
			t.Errorf("%q: cores %v, nodes %v", list, top.Cores, top.nodes)
		}
	})
}
