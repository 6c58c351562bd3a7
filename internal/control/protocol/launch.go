// SPDX-License-Identifier: Apache-2.0

package protocol

import "gompi/internal/base/wire"

// Messages between the two halves of a launcher, over the link that carries commands and reports.
// Package launch/far has their kinds. A message has all its fields, whatever its kind.

// Limits of these messages.
const (
	MaxChunk     = 64 << 10            // bytes of one piece of output or input
	MaxSetup     = 2 << 20             // bytes of LaunchCommand.Data
	MaxStarts    = 1 << 10             // processes that one LaunchCommand starts
	MaxStartArgs = MaxArgs + MaxArgs/2 // bytes of their command lines together
	MaxRenames   = 1 << 12             // names in one LaunchCommand
)

// LaunchCommand is what the launcher's head wants of an agent. The head sends a long list in
// several commands.
type LaunchCommand struct {
	Kind   uint8
	Proc   wire.ProcID
	Signal int
	Stream uint8 // 1 or 2, as a descriptor
	Count  uint32
	Clean  bool
	Text   string
	Data   []byte
	Starts []LaunchStart
	Names  []LaunchName
}

// LaunchStart is one process to start.
type LaunchStart struct {
	StartProc
	First bool
	Role  uint8
	App   uint32
}

// LaunchName is the name of a process.
type LaunchName struct {
	Proc       wire.ProcID
	Role       uint8
	Rank, Size uint32
}

func (*LaunchCommand) kind() Kind { return KindLaunchCommand }

func (m *LaunchCommand) put(e *enc) {
	e.u8(m.Kind)
	e.proc(m.Proc)
	e.u8(uint8(m.Signal))
	e.u8(m.Stream)
	e.u32(m.Count)
	e.flag(m.Clean)
	e.text(m.Text)
	e.bytes(m.Data, MaxSetup)
	e.count(len(m.Starts), MaxStarts)
	for i := range m.Starts {
		s := &m.Starts[i]
		e.proc(s.Proc)
		e.u32(uint32(s.Rank))
		e.u32(uint32(s.Size))
		e.flag(s.First)
		e.u8(s.Role)
		e.u32(s.App)
		e.u32(s.Spare)
		e.strs(s.Argv, MaxWords, MaxArgs)
		e.launchEnv(&s.LaunchEnv)
	}
	e.count(len(m.Names), MaxRenames)
	for _, n := range m.Names {
		e.proc(n.Proc)
		e.u8(n.Role)
		e.u32(n.Rank)
		e.u32(n.Size)
	}
}

func (m *LaunchCommand) get(d *dec) {
	m.Kind = d.u8()
	m.Proc = d.proc()
	m.Signal = int(d.u8())
	m.Stream = d.u8()
	m.Count = d.u32()
	m.Clean = d.flag()
	m.Text = d.text()
	m.Data = d.bytes(MaxSetup)
	const least = 46 // bytes of a start without arguments
	if n := d.count(MaxStarts, least); n > 0 {
		m.Starts = make([]LaunchStart, n)
	}
	for i := range m.Starts {
		s := &m.Starts[i]
		s.Proc = d.proc()
		s.Rank = int(d.u32())
		s.Size = int(d.u32())
		s.First = d.flag()
		s.Role = d.u8()
		s.App = d.u32()
		s.Spare = d.u32()
		s.Argv = d.strs(MaxWords, MaxArgs)
		s.LaunchEnv = d.launchEnv()
		if d.err == nil && (s.Size < 1 || s.Size > MaxSpawn || s.Rank >= s.Size || len(s.Argv) == 0) {
			d.fail("start of rank %d of %d with %d words", s.Rank, s.Size, len(s.Argv))
		}
	}
	if n := d.count(MaxRenames, 21); n > 0 {
		m.Names = make([]LaunchName, n)
	}
	for i := range m.Names {
		m.Names[i] = LaunchName{Proc: d.proc(), Role: d.u8(), Rank: d.u32(), Size: d.u32()}
	}
}

// LaunchEvent is what an agent tells the launcher's head.
type LaunchEvent struct {
	Kind   uint8
	Proc   wire.ProcID
	Signal int
	Core   bool
	Code   int // exit code, or status
	PID    int
	Stream uint8
	Closed bool
	Text   string
	Data   []byte
}

func (*LaunchEvent) kind() Kind { return KindLaunchEvent }

func (m *LaunchEvent) put(e *enc) {
	e.u8(m.Kind)
	e.proc(m.Proc)
	e.u8(uint8(m.Signal))
	e.flag(m.Core)
	e.u8(uint8(m.Code))
	e.num(m.PID, maxPID)
	e.u8(m.Stream)
	e.flag(m.Closed)
	e.text(m.Text)
	e.bytes(m.Data, MaxChunk)
}

func (m *LaunchEvent) get(d *dec) {
	m.Kind = d.u8()
	m.Proc = d.proc()
	m.Signal = int(d.u8())
	m.Core = d.flag()
	m.Code = int(d.u8())
	m.PID = d.num(maxPID)
	m.Stream = d.u8()
	m.Closed = d.flag()
	m.Text = d.text()
	m.Data = d.bytes(MaxChunk)
}
