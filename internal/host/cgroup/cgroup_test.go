// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"io/fs"
	"math"
	"slices"
	"testing"
	"testing/fstest"
)

func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// headroom asks a Memory that has not been asked before for all there is.
func headroom(root fs.FS) (int64, bool) {
	m := Memory{root: root}
	defer m.Close()
	return m.Headroom(math.MaxInt64)
}

const mount2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

func TestVersion2TakesTheTightestGroup(t *testing.T) {
	root := tree(map[string]string{
		"proc/self/cgroup":                       "0::/a/b\n",
		"proc/self/mountinfo":                    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + mount2,
		"sys/fs/cgroup/a/cpu.max":                "250000 100000\n",
		"sys/fs/cgroup/a/b/cpu.max":              "max 100000\n",
		"sys/fs/cgroup/a/memory.max":             "1000000\n",
		"sys/fs/cgroup/a/memory.current":         "900000\n",
		"sys/fs/cgroup/a/memory.stat":            "anon 5\ninactive_file 200000\nactive_file 50000\nfile_dirty 30000\nfile_writeback 20000\n",
		"sys/fs/cgroup/a/b/memory.max":           "max\n",
		"sys/fs/cgroup/a/b/memory.current":       "1\n",
		"sys/fs/cgroup/unrelated/memory.max":     "1\n",
		"sys/fs/cgroup/unrelated/memory.stat":    "",
		"sys/fs/cgroup/unrelated/cpu.max":        "1 100000",
		"sys/fs/cgroup/unrelated/memory.current": "1\n",
	})
	if n := cpuQuota(root, 64); n != 2 {
		t.Errorf("cpuQuota = %d, want 2", n)
	}
	if b, ok := headroom(root); !ok || b != 300000 {
		t.Errorf("headroom = %d, %v, want 300000, true", b, ok)
	}
}

func TestVersion1(t *testing.T) {
	root := tree(map[string]string{
		"proc/self/cgroup": "9:memory:/box\n4:cpu,cpuacct:/box/x\n1:name=systemd:/\n0::/\n",
		"proc/self/mountinfo": "31 30 0:27 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" +
			"32 30 0:28 /box /cg/memory rw - cgroup cgroup rw,memory\n" +
			"33 30 0:29 / /cg/unified rw - cgroup2 cgroup2 rw\n",
		"cg/cpu/box/x/cpu.cfs_quota_us":   "50000",
		"cg/cpu/box/x/cpu.cfs_period_us":  "100000",
		"cg/cpu/cpu.cfs_quota_us":         "-1",
		"cg/cpu/cpu.cfs_period_us":        "100000",
		"cg/memory/memory.limit_in_bytes": "4096000",
		"cg/memory/memory.usage_in_bytes": "4095000",
		"cg/memory/memory.stat":           "inactive_file 7\ntotal_inactive_file 3000\ntotal_active_file 2000\ntotal_dirty 500\ntotal_writeback 0\n",
		"cg/unified/memory.max":           "",
	})
	if n := cpuQuota(root, 8); n != 1 {
		t.Errorf("cpuQuota = %d, want 1", n)
	}
	if b, ok := headroom(root); !ok || b != 5500 {
		t.Errorf("headroom = %d, %v, want 5500, true", b, ok)
	}
}

func TestNoLimit(t *testing.T) {
	for name, root := range map[string]fstest.MapFS{
		"nothing": tree(nil),
		"v2 max": tree(map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mount2,
			"sys/fs/cgroup/memory.max": "max", "sys/fs/cgroup/memory.current": "12",
		}),
		"v1 huge": tree(map[string]string{
			"proc/self/cgroup":        "9:memory:/\n",
			"proc/self/mountinfo":     "32 30 0:28 / /m rw - cgroup cgroup rw,memory\n",
			"m/memory.limit_in_bytes": "9223372036854771712", "m/memory.usage_in_bytes": "12",
		}),
		"garbage": tree(map[string]string{
			"proc/self/cgroup": "\n::\nx\n0::/a\n", "proc/self/mountinfo": "- cgroup2\n a b - c d\n - \n" + mount2,
			"sys/fs/cgroup/a/memory.max": "12 34", "sys/fs/cgroup/a/cpu.max": "1",
		}),
	} {
		if n := cpuQuota(root, 8); n != 8 {
			t.Errorf("%s: cpuQuota = %d, want 8", name, n)
		}
		if b, ok := headroom(root); ok {
			t.Errorf("%s: limited to %d bytes", name, b)
		}
	}
}

func TestFullGroupHasNoNegativeHeadroom(t *testing.T) {
	root := tree(map[string]string{
		"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mount2,
		"sys/fs/cgroup/memory.max": "100", "sys/fs/cgroup/memory.current": "150",
	})
	if b, ok := headroom(root); !ok || b != 0 {
		t.Errorf("headroom = %d, %v, want 0, true", b, ok)
	}
}

func TestChain(t *testing.T) {
	for _, c := range []struct {
		m     mount
		group string
		want  []string
	}{
		{mount{root: "/", point: "/cg"}, "/", []string{"cg"}},
		{mount{root: "/", point: "/cg"}, "/a/b", []string{"cg/a/b", "cg/a", "cg"}},
		{mount{root: "/a", point: "/cg"}, "/a/b", []string{"cg/b", "cg"}},
		{mount{root: "/a", point: "/cg"}, "/ab", []string{"cg"}},
		{mount{root: "/", point: "/cg"}, "/../../x", []string{"cg"}},
	} {
		if got := c.m.chain(c.group); !slices.Equal(got, c.want) {
			t.Errorf("%+v.chain(%q) = %q, want %q", c.m, c.group, got, c.want)
		}
	}
}

func TestHere(t *testing.T) {
	if n := UsableCPUs(); n < 1 {
		t.Errorf("UsableCPUs = %d", n)
	}
	var m Memory
	defer m.Close()
	first, ok1 := m.Headroom(1 << 20)
	again, ok2 := m.Headroom(1 << 20)
	if first < 0 || again < 0 || ok1 != ok2 {
		t.Errorf("Headroom = %d, %v, then %d, %v", first, ok1, again, ok2)
	}
}

func FuzzFind(f *testing.F) {
	f.Add("0::/a/b\n9:memory:/x\n", mount2)
	f.Add("9:memory:/x\n", "32 30 0:28 /x /m rw - cgroup cgroup rw,memory\n")
	f.Fuzz(func(t *testing.T, own, mounts string) {
		root := tree(map[string]string{"proc/self/cgroup": own, "proc/self/mountinfo": mounts})
		if n := cpuQuota(root, 8); n < 1 || n > 8 {
			t.Errorf("cpuQuota = %d", n)
		}
		if _, ok := headroom(root); ok {
			t.Error("a limit out of nothing")
		}
	})
}
