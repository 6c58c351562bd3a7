// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// dir is the directory of one control group, relative to the root file system.
type dir struct {
	path string
	v2   bool
}

// ownFile lists the control groups of this process.
const ownFile = "proc/self/cgroup"

// find returns the directories of all groups whose limits of a controller bind this
// process. These are its own group, which own (the text of ownFile) names, and the groups
// above it that are mounted here. find searches both hierarchies, because a host may use
// version 1 for some controllers and version 2 for others.
func find(root fs.FS, own, controller string) ([]dir, error) {
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	group := map[bool]string{} // by v2
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case f[0] == "0" && f[1] == "":
			group[true] = f[2]
		case slices.Contains(strings.Split(f[1], ","), controller):
			group[false] = f[2]
		}
	}
	var dirs []dir
	sc := bufio.NewScanner(bytes.NewReader(mounts))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		m, ok := parseMount(sc.Text())
		if !ok || !m.v2 && !slices.Contains(m.options, controller) {
			continue
		}
		g, ok := group[m.v2]
		if !ok {
			continue
		}
		for _, p := range m.chain(g) {
			dirs = append(dirs, dir{path: p, v2: m.v2})
		}
	}
	return dirs, nil
}

// mount is a line of mountinfo that mounts a cgroup hierarchy.
type mount struct {
	root    string // group that is mounted
	point   string // mount point
	v2      bool
	options []string // of the super block; they name the controllers of version 1
}

// parseMount parses "36 35 98:0 ROOT POINT opts [optional ...] - TYPE SRC SUPER".
func parseMount(line string) (m mount, ok bool) {
	left, right, ok := strings.Cut(line, " - ")
	if !ok {
		return m, false
	}
	l, r := strings.Fields(left), strings.Fields(right)
	if len(l) < 5 || len(r) < 3 {
		return m, false
	}
	switch r[0] {
	case "cgroup2":
		m.v2 = true
	case "cgroup":
	default:
		return m, false
	}
	m.root, m.point, m.options = unescape(l[3]), unescape(l[4]), strings.Split(r[2], ",")
	return m, true
}

// chain lists the directories from group up to the mount point. If the group does not lie
// under the mounted one (in another cgroup namespace), chain lists only the mount point.
func (m mount) chain(group string) []string {
	top := strings.TrimPrefix(path.Clean(m.point), "/")
	rel := ""
	if m.root == "/" {
		rel = group
	} else if group == m.root || strings.HasPrefix(group, m.root+"/") {
		rel = group[len(m.root):]
	}
	if slices.Contains(strings.Split(rel, "/"), "..") {
		rel = ""
	}
	var ps []string
	for p := path.Clean("/" + rel); p != "/"; p = path.Dir(p) {
		ps = append(ps, top+p)
	}
	return append(ps, top)
}

// unescape undoes the octal escapes that the kernel writes for white space and backslash
// in mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
