// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// counting counts how often files are opened and how many are open. Those
// opened in an earlier era cannot be read, as those of a removed group.
type counting struct {
	fs.FS
	opened, open int
	era          int
}

func (c *counting) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	c.opened++
	c.open++
	return &counted{f.(*os.File), c, c.era}, nil
}

type counted struct {
	*os.File
	c   *counting
	era int
}

func (f *counted) ReadAt(b []byte, off int64) (int, error) {
	if f.era != f.c.era {
		return 0, unix.ENODEV
	}
	return f.File.ReadAt(b, off)
}

func (f *counted) Close() error {
	f.c.open--
	return f.File.Close()
}

// TestMemoryFollows changes everything that the answer depends on under a
// Memory that has its files open.
func TestMemoryFollows(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/self/cgroup", "0::/a/b")
	write("proc/self/mountinfo", mount2)
	const a, b, other = "sys/fs/cgroup/a/", "sys/fs/cgroup/a/b/", "sys/fs/cgroup/other/"
	write(a+"memory.max", "max")
	write(a+"memory.current", "500")
	write(a+"memory.stat", "inactive_file 100\nfile_dirty 40")

	count := &counting{FS: os.DirFS(dir)}
	m := Memory{root: count}
	const none = -1
	expect := func(what string, need, want int64) {
		t.Helper()
		left, limited := m.Headroom(need)
		if !limited {
			left = none
		}
		if left != want {
			t.Errorf("%s: %d bytes left, want %d", what, left, want)
		}
	}
	expect("no limit", 1, none)
	write(a+"memory.max", "10000")
	expect("a limit is set", 9000, 9500)
	write(a+"memory.current", "8000")
	expect("use grows", 1000, 2000)
	expect("use grows, more needed than is free", 2001, 2060)
	write(a+"memory.stat", "inactive_file 5")
	expect("the cache shrinks", 2001, 2005)
	write(a+"memory.max", "8100")
	expect("the limit tightens", 100, 100)
	write(a+"memory.max", "8000")
	expect("nothing is left", 1, 5)
	write(a+"memory.max", "90000")
	expect("the limit is raised", 1, 82000)
	write(b+"memory.max", "700")
	write(b+"memory.current", "200")
	expect("a group below gets the controller", 500, 500)
	before := count.opened
	for range 10 {
		expect("nothing has changed", 1, 500)
	}
	if count.opened != before {
		t.Errorf("%d files opened without a change", count.opened-before)
	}
	write(other+"memory.max", "20")
	write(other+"memory.current", "5")
	write("proc/self/cgroup", "0::/other")
	expect("moved to another group", 15, 15)
	count.era++
	write(other+"memory.current", "6")
	expect("the group was removed and made again", 14, 14)
	if count.open != 3 {
		t.Errorf("%d files open; want own, limit and use", count.open)
	}
	// An answer longer than the first buffer.
	write("proc/self/cgroup", "0::/a/b\n1:"+string(make([]byte, 20000))+":/")
	expect("moved back", 500, 500)
	write(b+"memory.max", "max")
	write(a+"memory.max", "max")
	expect("no limit again", 1, none)

	m.Close()
	if count.open != 0 {
		t.Errorf("%d files open after Close", count.open)
	}
	write(a+"memory.max", "8100")
	expect("used after Close", 100, 100)
	m.Close()
}

// TestMemoryTriesAgain: what could not be opened once, for lack of
// descriptors perhaps, is not taken for "no limit" for ever.
func TestMemoryTriesAgain(t *testing.T) {
	root := tree(map[string]string{"proc/self/cgroup": "0::/"})
	m := Memory{root: root}
	defer m.Close()
	if left, limited := m.Headroom(1); limited {
		t.Errorf("a limit of %d out of nothing", left)
	}
	for name, f := range tree(map[string]string{
		"proc/self/mountinfo":      mount2,
		"sys/fs/cgroup/memory.max": "100", "sys/fs/cgroup/memory.current": "40",
	}) {
		root[name] = f
	}
	if left, limited := m.Headroom(1); !limited || left != 60 {
		t.Errorf("Headroom = %d, %v, want 60, true", left, limited)
	}
}

func BenchmarkHeadroom(b *testing.B) {
	var m Memory
	defer m.Close()
	for b.Loop() {
		m.Headroom(1 << 20)
	}
}
