// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
)

// unlimited1 is the smallest value by which version 1 says "no limit": the
// kernel's largest number of pages, in bytes.
const unlimited1 = 1 << 62

// Memory answers again and again how much memory the cgroups of this process
// leave. Finding and opening their files costs some hundred us, so it keeps
// them open; what it says is read from the kernel at every call all the same,
// also that the process has been moved to another group. (What is not
// noticed: a hierarchy mounted elsewhere later.) The zero value is ready.
// It belongs to one goroutine at a time and must be closed.
type Memory struct {
	root   fs.FS // nil until the first use: then the system's
	own    file
	found  string // what own said when groups were looked for
	groups []memoryGroup
	buf    []byte
}

// memoryGroup is one control group with the files that are asked.
type memoryGroup struct {
	limit, use, stat file
	prefix           string    // of the lines of stat that count the groups below too
	dirty            [2]string // lines of stat: file cache that cannot be dropped now
}

// Headroom returns how many bytes can still be charged before one of the
// groups is full: for each, limit minus use, and where that is less than need,
// plus file cache that the kernel can drop. So an answer below need is the
// real one. limited is false when no group has a limit (or none can be read);
// left is then meaningless. The answer is never negative and is out of date
// when it arrives: it tells "cannot be" from "should work", no more. Cost: a few
// short reads, 15 us for three groups.
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

// find looks for the groups that bind a process whose ownFile says own.
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

// Close closes the files. m may be used again; that opens them.
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

// file is a small file that the kernel writes, open from the first read on.
type file struct {
	path string  // relative to Memory.root
	open fs.File // nil: not yet
}

// read returns the file's content without surrounding space, nothing if it
// cannot be read; the next call then tries anew, as a file may appear when a
// controller is switched on. The result is valid until the next read.
func (m *Memory) read(f *file) []byte {
	if f.open != nil {
		if text, err := m.readOpen(f); err == nil {
			return text
		}
		f.close() // of a group that was removed; there may be one of the same name
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
		m.buf = make([]byte, max(4096, 2*len(m.buf))) // filled: there may be more
	}
}

func (f *file) close() {
	if f.open != nil {
		f.open.Close()
		f.open = nil
	}
}
