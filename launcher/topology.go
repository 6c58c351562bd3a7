// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"io/fs"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cpus is a set of CPU numbers, ascending.
type cpus []int

// topology is what of this machine the launcher may use.
type topology struct {
	all   cpus   // the affinity mask
	cores []cpus // usable hardware threads of each core, by lowest CPU
	nodes []cpus // usable CPUs of each NUMA node that has any
}

// readTopology looks at the affinity of the calling thread and at /sys.
// A machine that tells nothing has one core per CPU and one node.
func readTopology(root fs.FS) topology {
	var t topology
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		t.all = members(&set)
	}
	t.fill(root)
	return t
}

// members is set undone.
func members(set *unix.CPUSet) (in cpus) {
	for c := range 64 * len(set) {
		if set.IsSet(c) {
			in = append(in, c)
		}
	}
	return in
}

func (t *topology) fill(root fs.FS) {
	seen := map[int]bool{}
	for _, c := range t.all {
		if seen[c] {
			continue
		}
		core := t.usable(root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", c))
		if len(core) == 0 || core[0] != c {
			core = cpus{c}
		}
		for _, s := range core {
			seen[s] = true
		}
		t.cores = append(t.cores, core)
	}
	names, _ := fs.Glob(root, "sys/devices/system/node/node[0-9]*/cpulist")
	for _, name := range names {
		if n := t.usable(root, name); len(n) > 0 {
			t.nodes = append(t.nodes, n)
		}
	}
	if len(t.nodes) == 0 {
		t.nodes = []cpus{t.all}
	}
	sort.Slice(t.nodes, func(i, j int) bool { return len(t.nodes[i]) > 0 && t.nodes[i][0] < t.nodes[j][0] })
}

// usable reads a CPU list and keeps what the affinity mask has.
func (t *topology) usable(root fs.FS, file string) cpus {
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
	var out cpus
	for _, c := range t.all {
		if listed[c] {
			out = append(out, c)
		}
	}
	return out
}

// spreads reports whether ranks are bound by place only for a start: binding
// would nail two ranks to one core while another is idle.
func (t *topology) spreads(kind string, n int) bool {
	return kind == "" && n > len(t.cores) && len(t.cores) > 1
}

// place returns the CPUs of rank i of n, nil for "no binding". kind "" is
// "core".
func (t *topology) place(kind string, i, n int) cpus {
	c := len(t.cores)
	switch {
	case kind == "none" || c == 0:
		return nil
	case kind == "numa":
		return t.nodes[i*len(t.nodes)/max(n, i+1)]
	case n > c || i >= n:
		return t.cores[i%c]
	}
	// Each rank gets its share, not one core: a Go process has goroutines.
	var out cpus
	for k := i * c / n; k < (i+1)*c/n; k++ {
		out = append(out, t.cores[k]...)
	}
	sort.Ints(out)
	return out
}

// set converts to the kernel's form; nil stays nil.
func (c cpus) set() *unix.CPUSet {
	if c == nil {
		return nil
	}
	s := new(unix.CPUSet)
	for _, n := range c {
		s.Set(n)
	}
	return s
}

// String writes "0-3,8"; "any" for no binding.
func (c cpus) String() string {
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
