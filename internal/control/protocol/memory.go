// SPDX-License-Identifier: Apache-2.0

package protocol

// MaxMemoryName is how long the name of memory of a host may be, in bytes.
const MaxMemoryName = 4 << 10

// Memory asks the agent for memory of its host by a name: the file that was made for who
// asked for it first, while anybody has it, else a new one, without a page. Names are the
// job's. The answer is a MemoryBody with the file, twice.
type Memory struct {
	Name  string
	Bytes int64 // the same for all that ask
}

func (*Memory) kind() Kind   { return KindMemory }
func (m *Memory) put(e *enc) { e.str(m.Name); e.i64(m.Bytes) }
func (m *Memory) get(d *dec) { m.Name, m.Bytes = d.str(MaxMemoryName), d.i64() }

// MemoryBody is the answer to a Memory.
type MemoryBody struct {
	Name  string
	Bytes int64  // of the file: whole pages
	Host  uint32 // the same on all who have the same memory
}

func (*MemoryBody) kind() Kind   { return KindReply }
func (m *MemoryBody) put(e *enc) { e.str(m.Name); e.i64(m.Bytes); e.u32(m.Host) }
func (m *MemoryBody) get(d *dec) {
	m.Name, m.Bytes, m.Host = d.str(MaxMemoryName), d.i64(), d.u32()
}

// LeaveMemory tells that a process does not touch memory of its host any more, by its name.
type LeaveMemory struct{ Name string }

func (*LeaveMemory) kind() Kind   { return KindLeaveMemory }
func (m *LeaveMemory) put(e *enc) { e.str(m.Name) }
func (m *LeaveMemory) get(d *dec) { m.Name = d.str(MaxMemoryName) }
