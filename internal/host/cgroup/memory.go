// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
)

// unlimited1 is the least value that means "no limit" in version 1: the kernel's largest
// number of pages, in bytes.
const unlimited1 = 1 << 62

// Memory reads, as often as it is asked, how much memory the cgroups of this process
// leave. It keeps the files of the groups open, because finding and opening them costs
// some hundred us. Each answer still comes from the kernel, also when the process was
// moved to another group. Memory does not notice a hierarchy that is mounted elsewhere
// later. The zero value is ready. A Memory must be closed, and serves one goroutine at a
// time.
type Memory struct {
	root   fs.FS // nil until the first use, which sets the system's
	own    file
	found  string // text of own at the last search for groups
	groups []memoryGroup
	buf    []byte
}

// memoryGroup is one control group with the files that Memory reads.
type memoryGroup struct {
	limit, use, stat file
	prefix           string    // of the lines of stat that include the groups below
	dirty            [2]string // lines of stat for file cache that cannot be dropped now
}

// Headroom returns how many bytes can still be charged before one of the groups is full.
// For each group that is limit minus use. If that is less than need, Headroom adds the
// file cache that the kernel can drop. So a result below need is exact. limited is false
// if no group has a limit, or none can be read; left then means nothing. left is never
// negative. It is already out of date on return: it tells "cannot work" from "should
// work" and no more. The cost is a few short reads, 15 us for three groups.
func (m *Memory) Headroom(need int64) (left int64, limited bool) {
	if m.root == nil {
		m.root = system()
	}
	m.own.path = ownFile
	if own := m.read(&m.own); string(own) != m.found {
		m.find(string(own))
	}
	for i := range m.groups {
		if b, ok := m.headroom(&m.groups[i], need); ok && (!limited || b < left) {
			left, limited = b, true
		}
	}
	return max(left, 0), limited
}

// find looks for the groups of a process whose ownFile has the text own.
func (m *Memory) find(own string) {
	m.closeGroups()
	dirs, err := find(m.root, own, "memory")
	if err != nil {
		return // such as too many open files; the next call tries again
	}
	m.found = own
	for _, d := range dirs {
		g := memoryGroup{prefix: "total_", dirty: [2]string{"dirty", "writeback"}}
		limit, use := "/memory.limit_in_bytes", "/memory.usage_in_bytes"
		if d.v2 {
			g = memoryGroup{dirty: [2]string{"file_dirty", "file_writeback"}}
			limit, use = "/memory.max", "/memory.current"
		}
		g.limit.path, g.use.path, g.stat.path = d.path+limit, d.path+use, d.path+"/memory.stat"
		m.groups = append(m.groups, g)
	}
}

// headroom is Headroom for one group.
func (m *Memory) headroom(g *memoryGroup, need int64) (left int64, ok bool) {
	limit := number(string(m.read(&g.limit)))
	if limit < 0 || limit >= unlimited1 {
		return 0, false
	}
	use := number(string(m.read(&g.use)))
	if use < 0 {
		return 0, false
	}
	left = limit - use
	if left >= need {
		return left, true
	}
	cache := int64(0)
	for line := range bytes.Lines(m.read(&g.stat)) {
		name, val, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		rest, found := bytes.CutPrefix(name, []byte(g.prefix))
		if !found {
			continue
		}
		switch n := max(0, number(string(val))); string(rest) {
		case "inactive_file", "active_file":
			cache += n
		case g.dirty[0], g.dirty[1]:
			cache -= n
		}
	}
	return left + max(0, cache), true
}

// Close closes the files. The next use of m opens them again.
func (m *Memory) Close() {
	m.own.close()
	m.closeGroups()
}

func (m *Memory) closeGroups() {
	for i := range m.groups {
		g := &m.groups[i]
		g.limit.close()
		g.use.close()
		g.stat.close()
	}
	m.groups, m.found = nil, ""
}

// file is a small file that the kernel generates. It stays open after the first read.
type file struct {
	path string  // relative to Memory.root
	open fs.File // nil before the first read
}

// read returns the content of the file without surrounding space, or nothing if it cannot
// be read. Then the next call tries again, because a file may appear when a controller is
// switched on. The result is valid until the next read.
func (m *Memory) read(f *file) []byte {
	if f.open != nil {
		if text, err := m.readOpen(f); err == nil {
			return text
		}
		f.close() // the group was removed; a new one may have the same name
	}
	o, err := m.root.Open(f.path)
	if err != nil {
		return nil
	}
	f.open = o
	text, err := m.readOpen(f)
	if err != nil {
		f.close()
		return nil
	}
	return text
}

func (m *Memory) readOpen(f *file) ([]byte, error) {
	at, ok := f.open.(io.ReaderAt)
	if !ok {
		panic("gompi: BUG: a file of a cgroup without ReadAt")
	}
	for {
		n, err := at.ReadAt(m.buf, 0)
		if errors.Is(err, io.EOF) {
			return bytes.TrimSpace(m.buf[:n]), nil
		}
		if err != nil {
			return nil, err
		}
		m.buf = make([]byte, max(4096, 2*len(m.buf))) // it is full, so there may be more
	}
}

func (f *file) close() {
	if f.open != nil {
		f.open.Close()
		f.open = nil
	}
}
