// SPDX-License-Identifier: Apache-2.0

// Package cpus knows the processors of this machine that the launcher may use. Topology
// groups them by core and by NUMA node and chooses the processors of each rank. Set is a
// list of CPU numbers; it converts to the kernel's mask and back.
package cpus

import (
	"fmt"
	"io/fs"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Set is a set of CPU numbers in ascending order. A nil Set means "no binding".
type Set []int

// Topology is the part of this machine that the launcher may use.
type Topology struct {
	All   Set   // the affinity mask
	Cores []Set // usable hardware threads of each core, by lowest CPU
	nodes []Set // usable CPUs of each NUMA node that has any
}

// Read reads the affinity of the calling thread and the topology in /sys. If /sys does
// not say, it assumes one core per CPU and one node.
func Read(root fs.FS) Topology {
	var t Topology
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		t.All = FromMask(&set)
	}
	t.fill(root)
	return t
}

// FromMask returns the CPUs of a kernel mask. It is the reverse of Mask.
func FromMask(set *unix.CPUSet) (in Set) {
	for c := range 64 * len(set) {
		if set.IsSet(c) {
			in = append(in, c)
		}
	}
	return in
}

// fill reads the cores and nodes of t.All.
func (t *Topology) fill(root fs.FS) {
	seen := map[int]bool{}
	for _, c := range t.All {
		if seen[c] {
			continue
		}
		core := t.usable(root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", c))
		if len(core) == 0 || core[0] != c {
			core = Set{c}
		}
		for _, s := range core {
			seen[s] = true
		}
		t.Cores = append(t.Cores, core)
	}
	names, _ := fs.Glob(root, "sys/devices/system/node/node[0-9]*/cpulist")
	for _, name := range names {
		if n := t.usable(root, name); len(n) > 0 {
			t.nodes = append(t.nodes, n)
		}
	}
	if len(t.nodes) == 0 {
		t.nodes = []Set{t.All}
	}
	sort.Slice(t.nodes, func(i, j int) bool { return len(t.nodes[i]) > 0 && t.nodes[i][0] < t.nodes[j][0] })
}

// usable reads a CPU list and returns the CPUs of it that the affinity mask has.
func (t *Topology) usable(root fs.FS, file string) Set {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return nil
	}
	listed := map[int]bool{}
	for item := range strings.SplitSeq(strings.TrimSpace(string(text)), ",") {
		from, to, isRange := strings.Cut(item, "-")
		a, err1 := strconv.Atoi(from)
		b := a
		var err2 error
		if isRange {
			b, err2 = strconv.Atoi(to)
		}
		if err1 != nil || err2 != nil || a < 0 || b < a || b > 1<<16 {
			return nil
		}
		for c := a; c <= b; c++ {
			listed[c] = true
		}
	}
	var out Set
	for _, c := range t.All {
		if listed[c] {
			out = append(out, c)
		}
	}
	return out
}

// BindsOnlyAtStart reports whether n ranks should be bound only while they start. A
// lasting binding would keep two ranks on one core while another core is idle.
func (t *Topology) BindsOnlyAtStart(kind string, n int) bool {
	return kind == "" && n > len(t.Cores) && len(t.Cores) > 1
}

// Binding returns the CPUs of rank i of n, or nil for no binding. kind is "none", "numa"
// or "core"; "" means "core".
func (t *Topology) Binding(kind string, i, n int) Set {
	c := len(t.Cores)
	switch {
	case kind == "none" || c == 0:
		return nil
	case kind == "numa":
		return t.nodes[i*len(t.nodes)/max(n, i+1)]
	case n > c || i >= n:
		return t.Cores[i%c]
	}
	// Each rank gets its share, not one core: a Go process has goroutines.
	var out Set
	for k := i * c / n; k < (i+1)*c/n; k++ {
		out = append(out, t.Cores[k]...)
	}
	sort.Ints(out)
	return out
}

// Mask returns the kernel's form of the set; nil stays nil.
func (c Set) Mask() *unix.CPUSet {
	if c == nil {
		return nil
	}
	s := new(unix.CPUSet)
	for _, n := range c {
		s.Set(n)
	}
	return s
}

// String returns the set as "0-3,8", or "any" for no binding.
func (c Set) String() string {
	if c == nil {
		return "any"
	}
	var b strings.Builder
	for i := 0; i < len(c); {
		j := i
		for j+1 < len(c) && c[j+1] == c[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(c[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(c[j]))
		}
		i = j + 1
	}
	return b.String()
}
