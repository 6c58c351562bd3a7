// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"io/fs"
	"strconv"
	"strings"
)

// unlimited1 is the smallest value by which version 1 says "no limit": the
// kernel's largest number of pages, in bytes.
const unlimited1 = 1 << 62

// cpus returns the whole CPUs that the group's quota allows, at least 1.
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

// headroom returns how much memory the group can still be charged.
func (d dir) headroom(root fs.FS) (bytes int64, ok bool) {
	limitFile, useFile, prefix, dirty, writeback := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_", "dirty", "writeback"
	if d.v2 {
		limitFile, useFile, prefix, dirty, writeback = "memory.max", "memory.current", "", "file_dirty", "file_writeback"
	}
	limit, use := number(d.text(root, limitFile)), number(d.text(root, useFile))
	if limit < 0 || use < 0 || limit >= unlimited1 {
		return 0, false
	}
	cache := int64(0)
	for line := range strings.Lines(d.text(root, "memory.stat")) {
		name, val, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest, found := strings.CutPrefix(name, prefix)
		if !found {
			continue
		}
		switch n := max(0, number(val)); rest {
		case "inactive_file", "active_file":
			cache += n
		case dirty, writeback:
			cache -= n
		}
	}
	return limit - use + max(0, cache), true
}

// text returns a small file's content without surrounding space, "" if it
// cannot be read.
func (d dir) text(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, d.path+"/"+name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number returns -1 for everything that is no number, such as "max".
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
