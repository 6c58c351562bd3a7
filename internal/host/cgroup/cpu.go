// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"io/fs"
	"strconv"
	"strings"
)

// cpus returns the number of whole CPUs that the group's quota allows, at least 1.
func (d dir) cpus(root fs.FS) (n int, ok bool) {
	var quota, period int64
	if d.v2 {
		f := strings.Fields(d.text(root, "cpu.max"))
		if len(f) != 2 {
			return 0, false
		}
		quota, period = number(f[0]), number(f[1])
	} else {
		quota = number(d.text(root, "cpu.cfs_quota_us"))
		period = number(d.text(root, "cpu.cfs_period_us"))
	}
	if quota <= 0 || period <= 0 {
		return 0, false
	}
	return int(max(1, quota/period)), true
}

// text returns the content of a small file without surrounding space, or "" if the file
// cannot be read.
func (d dir) text(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, d.path+"/"+name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number parses a number. It returns -1 for any other text, such as "max".
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
