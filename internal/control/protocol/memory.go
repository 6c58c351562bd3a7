// SPDX-License-Identifier: Apache-2.0

package protocol

import "gompi/internal/base/wire"

// Messages about memory that processes of a host share, and that the agent makes.

const (
	// MaxMemoryName is the longest name of a Memory, in bytes.
	MaxMemoryName = 4 << 10
	// maxCommon bounds the common memory of a communicator, in bytes.
	maxCommon = 1 << 30
)

// Preallocated is the memory for shared collectives of the first communicator of a set, in the
// arena of the welcome. All members of the set on this host have it.
type Preallocated struct {
	Set   uint32
	Ranks int             // members of the set on this host
	X     wire.ArenaRange // Bytes 0: there is none
}

func (e *enc) preallocated(p *Preallocated) {
	e.u32(p.Set)
	e.u32(uint32(p.Ranks))
	e.arenaRange(p.X)
}

func (d *dec) preallocated() Preallocated {
	return Preallocated{Set: d.u32(), Ranks: int(d.u32()), X: d.arenaRange()}
}

// arenaRange appends a range of an arena, without the arena's file.
func (e *enc) arenaRange(x wire.ArenaRange) {
	e.u32(x.Arena)
	e.i64(x.Total)
	e.i64(x.Off)
	e.i64(x.Bytes)
}

func (d *dec) arenaRange() wire.ArenaRange {
	return wire.ArenaRange{Arena: d.u32(), Total: d.i64(), Off: d.i64(), Bytes: d.i64(), File: -1}
}

// Common asks for memory that the members of a communicator have in common. All of them send the
// same, but for Have. The answer is a CommonBody.
type Common struct {
	ID      wire.ContextID
	Members wire.Members
	Bytes   int64
	First   int64  // bytes from the beginning that have pages when the answer comes
	Have    uint64 // arenas of which the sender needs no descriptor, as bits
}

func (*Common) kind() Kind { return KindCommon }

func (m *Common) put(e *enc) {
	e.u64(m.Have) // first: see CommonKey
	e.proc(m.ID.Creator)
	e.u32(m.ID.Serial)
	e.members(m.Members)
	e.num(int(m.Bytes), maxCommon)
	e.num(int(m.First), maxCommon)
}

func (m *Common) get(d *dec) {
	m.Have = d.u64()
	m.ID.Creator = d.proc()
	m.ID.Serial = d.u32()
	m.Members = d.members()
	m.Bytes = int64(d.num(maxCommon))
	m.First = int64(d.num(maxCommon))
}

// CommonKey returns the part of an encoded Common that all members send alike.
func CommonKey(body []byte) []byte { return body[8:] }

// CommonBody answers a Common. The descriptor of the arena comes with it if the sender needs that.
type CommonBody struct{ X wire.ArenaRange }

func (*CommonBody) kind() Kind   { return KindReply }
func (m *CommonBody) put(e *enc) { e.arenaRange(m.X) }
func (m *CommonBody) get(d *dec) { m.X = d.arenaRange() }

// LeaveCommon tells that its sender does not touch a range any more.
type LeaveCommon struct {
	Arena uint32
	Off   int64
}

func (*LeaveCommon) kind() Kind { return KindLeaveCommon }

func (m *LeaveCommon) put(e *enc) {
	e.u32(m.Arena)
	e.i64(m.Off)
}

func (m *LeaveCommon) get(d *dec) {
	m.Arena = d.u32()
	m.Off = d.i64()
}

// Memory asks the agent for memory of its host by a name. All processes that have the same name
// at the same time get the same file. A new file has no pages. Names are those of the job. The
// answer is a MemoryBody, and the descriptor of the file, twice.
type Memory struct {
	Name  string
	Bytes int64 // the same from all who ask
}

func (*Memory) kind() Kind { return KindMemory }

func (m *Memory) put(e *enc) {
	e.str(m.Name, MaxMemoryName)
	e.i64(m.Bytes)
}

func (m *Memory) get(d *dec) {
	m.Name = d.str(MaxMemoryName)
	m.Bytes = d.i64()
}

// MemoryBody answers a Memory.
type MemoryBody struct {
	Name  string
	Bytes int64  // of the file: whole pages
	Host  uint32 // the same for all who have the same memory
}

func (*MemoryBody) kind() Kind { return KindReply }

func (m *MemoryBody) put(e *enc) {
	e.str(m.Name, MaxMemoryName)
	e.i64(m.Bytes)
	e.u32(m.Host)
}

func (m *MemoryBody) get(d *dec) {
	m.Name = d.str(MaxMemoryName)
	m.Bytes = d.i64()
	m.Host = d.u32()
}

// LeaveMemory tells that its sender does not touch the memory of a name any more.
type LeaveMemory struct{ Name string }

func (*LeaveMemory) kind() Kind   { return KindLeaveMemory }
func (m *LeaveMemory) put(e *enc) { e.str(m.Name, MaxMemoryName) }
func (m *LeaveMemory) get(d *dec) { m.Name = d.str(MaxMemoryName) }
