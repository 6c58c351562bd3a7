// SPDX-License-Identifier: Apache-2.0

package protocol

import "gompi/internal/base/wire"

// What the two halves of a launcher say to each other over a link, beside orders
// and reports: package launch has what it means. A message has all its fields,
// whatever its kind.

// MaxChunk is the longest piece of output or input, in bytes.
const MaxChunk = 64 << 10

// Errand is what the launcher's head wants of an agent.
type Errand struct {
	Kind   uint8
	Proc   wire.ProcID
	Signal int
	Stream uint8 // 1 or 2, as a descriptor
	Count  uint32
	Clean  bool
	Text   string
	Data   []byte
	Starts []ErrandStart
	Names  []ErrandName
}

// ErrandStart is one process to start.
type ErrandStart struct {
	StartProc
	First bool
	Role  uint8
	App   uint32
}

// ErrandName is what a process is called.
type ErrandName struct {
	Proc       wire.ProcID
	Role       uint8
	Rank, Size uint32
}

// MaxStarts is how many processes one Errand has at most, and MaxStartArgs what
// their command lines have together, in bytes; who starts more says so in pieces.
// MaxRenames is how many Names one has.
const (
	MaxStarts    = 1 << 10
	MaxStartArgs = MaxArgs + MaxArgs/2
	MaxRenames   = 1 << 12
)

func (*Errand) kind() Kind { return KindErrand }

func (m *Errand) put(e *enc) {
	e.u8(m.Kind)
	e.proc(m.Proc)
	e.u8(uint8(m.Signal))
	e.u8(m.Stream)
	e.u32(m.Count)
	e.flag(m.Clean)
	e.str(Clip(m.Text, MaxText))
	e.bytes(m.Data)
	e.u32(uint32(len(m.Starts)))
	for i := range m.Starts {
		s := &m.Starts[i]
		e.proc(s.Proc)
		e.u32(uint32(s.Rank))
		e.u32(uint32(s.Size))
		e.flag(s.First)
		e.u8(s.Role)
		e.u32(s.App)
		e.u32(s.Spare)
		e.strs(s.Argv)
		e.around(&s.Around)
	}
	e.u32(uint32(len(m.Names)))
	for _, n := range m.Names {
		e.proc(n.Proc)
		e.u8(n.Role)
		e.u32(n.Rank)
		e.u32(n.Size)
	}
}

func (m *Errand) get(d *dec) {
	m.Kind, m.Proc, m.Signal, m.Stream, m.Count, m.Clean = d.u8(), d.proc(), int(d.u8()), d.u8(), d.u32(), d.flag()
	m.Text, m.Data = d.str(MaxText), d.bytes(MaxSetup)
	const least = 46 // bytes of a start without arguments
	if n := d.count(MaxStarts, least); n > 0 {
		m.Starts = make([]ErrandStart, n)
	}
	for i := range m.Starts {
		s := &m.Starts[i]
		s.Proc = d.proc()
		s.Rank, s.Size = int(d.u32()), int(d.u32())
		s.First, s.Role, s.App = d.flag(), d.u8(), d.u32()
		s.Spare = d.u32()
		s.Argv = d.strs(MaxWords, MaxArgs)
		s.Around = d.around()
		if d.err == nil && (s.Size < 1 || s.Size > MaxSpawn || s.Rank >= s.Size || len(s.Argv) == 0) {
			d.fail("start of rank %d of %d with %d words", s.Rank, s.Size, len(s.Argv))
		}
	}
	if n := d.count(MaxRenames, 21); n > 0 {
		m.Names = make([]ErrandName, n)
	}
	for i := range m.Names {
		m.Names[i] = ErrandName{d.proc(), d.u8(), d.u32(), d.u32()}
	}
}

// MaxSetup is the longest Data of an Errand, in bytes.
const MaxSetup = 2 << 20

// Seen is what an agent tells the launcher's head.
type Seen struct {
	Kind   uint8
	Proc   wire.ProcID
	Signal int
	Core   bool
	Code   int // or status
	PID    int
	Stream uint8
	Closed bool
	Text   string
	Data   []byte
}

func (*Seen) kind() Kind { return KindSeen }

func (m *Seen) put(e *enc) {
	e.u8(m.Kind)
	e.proc(m.Proc)
	e.u8(uint8(m.Signal))
	e.flag(m.Core)
	e.u8(uint8(m.Code))
	e.i64(int64(m.PID))
	e.u8(m.Stream)
	e.flag(m.Closed)
	e.str(Clip(m.Text, MaxText))
	e.bytes(m.Data)
}

func (m *Seen) get(d *dec) {
	m.Kind, m.Proc, m.Signal, m.Core, m.Code, m.PID = d.u8(), d.proc(), int(d.u8()), d.flag(), int(d.u8()), d.num(1<<30)
	m.Stream, m.Closed, m.Text, m.Data = d.u8(), d.flag(), d.str(MaxText), d.bytes(MaxChunk)
}
