// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// memory is a file of its own, by a name, for whoever of this host asks for it. It is
// there as long as anybody has it: who was given it, until it says that it does not touch
// it any more, or nothing of it runs. The file goes with the last mapping.
type memory struct {
	files   *Files
	asked   int64 // bytes, as all say
	bytes   int64 // of the file: whole pages
	holders int
}

// maxMemories bounds the descriptors that memory takes here, maxMemoriesOf how many of
// them one process may have, so that none takes all.
const (
	maxMemories   = 4 << 10
	maxMemoriesOf = 1 << 10
)

// enterMemory gives p the memory of a name.
func (a *Agent) enterMemory(p *Proc, f protocol.Frame, m *protocol.Memory) {
	id := f.ID
	x, err := a.memoryFor(p, m)
	if err != nil {
		a.refuse(p, id, err)
		return
	}
	if p.memories == nil {
		p.memories = map[string]struct{}{}
	}
	p.memories[m.Name] = struct{}{}
	x.holders++
	a.sendFiles(p, x.files, reply(id, protocol.FrameFDs, &protocol.MemoryBody{Name: m.Name, Bytes: x.bytes, Host: a.host}))
}

// memoryFor finds or makes it.
func (a *Agent) memoryFor(p *Proc, m *protocol.Memory) (*memory, error) {
	if p.state != protocol.Joined {
		return nil, protocol.NotIn(a.id(p), p.state)
	}
	if m.Name == "" || m.Bytes < 1 || m.Bytes > segment.SpanBytes {
		return nil, protocol.Refused("memory %q of %d bytes, 1 to %d allowed, with a name", m.Name, m.Bytes, int64(segment.SpanBytes))
	}
	if _, has := p.memories[m.Name]; has {
		return nil, protocol.Refused("process %v has memory %q already", a.id(p), m.Name)
	}
	x := a.memories[m.Name]
	switch {
	case x != nil && x.asked != m.Bytes:
		return nil, protocol.Refused("memory %q has %d bytes on this host, not %d", m.Name, x.asked, m.Bytes)
	case len(p.memories) == maxMemoriesOf:
		return nil, protocol.Refused("memory %q: process %v has %d others, no more allowed", m.Name, a.id(p), len(p.memories))
	case x == nil && len(a.memories) == maxMemories:
		return nil, protocol.Refused("memory %q: there are %d others on this host, no more allowed", m.Name, len(a.memories))
	case x != nil:
		return x, nil
	}
	fd, bytes, err := segment.CreateArena(m.Bytes)
	if err != nil {
		return nil, fmt.Errorf("memory %q of %d bytes: %w", m.Name, m.Bytes, err)
	}
	x = &memory{files: &Files{segment: fd, bell: -1}, asked: m.Bytes, bytes: bytes}
	x.files.refs.Store(1)
	if bytes < m.Bytes {
		x.files.Release()
		return nil, fmt.Errorf("memory %q of %d bytes: %w", m.Name, m.Bytes, errFileLimit(bytes))
	}
	a.memories[m.Name] = x
	return x, nil
}

// leaveMemory takes back what p has of the memory of a name.
func (a *Agent) leaveMemory(p *Proc, m *protocol.LeaveMemory) { a.dropMemory(p, m.Name) }

func (a *Agent) dropMemory(p *Proc, name string) {
	if _, has := p.memories[name]; !has {
		return
	}
	delete(p.memories, name)
	x := a.memories[name]
	if x.holders--; x.holders == 0 {
		delete(a.memories, name)
		x.files.Release()
	}
}

// closeMemories frees what nobody maps.
func (a *Agent) closeMemories() {
	for _, x := range a.memories {
		x.files.Release()
	}
	clear(a.memories)
	for _, p := range a.procs {
		p.memories = nil
	}
}
