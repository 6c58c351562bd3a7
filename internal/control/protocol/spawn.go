// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"gompi/internal/base/wire"
)

// Spawn asks for more processes.
type Spawn struct {
	Parts []SpawnPart
	// Parents is the group that they are spawned by, which has who asks: a set of it is
	// their mpi://PARENT. Nobody: that is the mpi://SELF of who asks.
	Parents wire.Members
	// Joins: parents and children make a communicator (Welcome.Family). It is answered
	// when all have joined; if one ends before, or who asks needs no answer any more,
	// they are ended.
	Joins bool
	// Do is how far it goes. A SpawnReserve has only counts and hosts, which may be
	// patterns, and its World is the places, as processes that are not started; if there
	// are too few it waits so long for them, 0: as any spawn. Those a SpawnStart starts
	// as At says, with commands of no choice: Parents is nobody.
	Do   SpawnDo
	At   wire.Members
	Wait time.Duration
}

// SpawnDo is how far a Spawn goes.
type SpawnDo uint8

const (
	SpawnAll SpawnDo = iota
	SpawnReserve
	SpawnStart
)

// MaxSpawnWait is the longest Wait.
const MaxSpawnWait = 365 * 24 * time.Hour

// SpawnPart is one command of a Spawn.
type SpawnPart struct {
	N     int      // processes
	Will  []Counts // if not all can be had: how many will do; nil: none
	Argv  []string // nil: the caller's
	Hosts []string // where; nil: anywhere
	Around
}

// Around is what a process finds around itself beside what all have.
type Around struct {
	Dir  string   // its directory; "": that of the command line's first program
	Path string   // where its program is looked for; "": on its PATH
	Env  []string // NAME=VALUE
}

// Bare reports whether there is nothing but what all have.
func (a *Around) Bare() bool { return a.Dir == "" && a.Path == "" && len(a.Env) == 0 }

// Counts are the numbers from, from + step, ... up to to.
type Counts struct{ From, To, Step uint32 }

// Limits of a Spawn.
const (
	MaxCommands = 1 << 10 // commands
	MaxCounts   = 1 << 8  // of each
	maxDir      = 1 << 12 // bytes
	maxHosts    = 1 << 10
)

// minPart is the bytes of a part whose lists and texts are empty.
const minPart = 40

func (*Spawn) kind() Kind { return KindSpawn }

func (m *Spawn) put(e *enc) {
	e.u32(uint32(len(m.Parts)))
	for i := range m.Parts {
		p := &m.Parts[i]
		e.i64(int64(p.N))
		e.u32(uint32(len(p.Will)))
		for _, c := range p.Will {
			e.u32(c.From)
			e.u32(c.To)
			e.u32(c.Step)
		}
		e.strs(p.Argv)
		e.strs(p.Hosts)
		e.around(&p.Around)
	}
	e.members(m.Parents)
	e.flag(m.Joins)
	e.u8(uint8(m.Do))
	e.members(m.At)
	e.i64(int64(m.Wait))
}

func (m *Spawn) get(d *dec) {
	n := d.count(MaxCommands, minPart-8)
	m.Parts = make([]SpawnPart, n)
	for i := range m.Parts {
		p := &m.Parts[i]
		p.N = d.num(MaxSpawn)
		for range d.count(MaxCounts, 12) {
			c := Counts{d.u32(), d.u32(), d.u32()}
			if d.err == nil && (c.Step == 0 || c.From > c.To || int64(c.To) > int64(p.N)) {
				d.fail("counts from %d to %d by %d, of %d", c.From, c.To, c.Step, p.N)
			}
			p.Will = append(p.Will, c)
		}
		p.Argv = d.strs(MaxWords, MaxArgs)
		p.Hosts = d.strs(maxHosts, MaxName)
		p.Around = d.around()
	}
	m.Parents = d.members()
	m.Joins = d.flag()
	if m.Do = SpawnDo(d.u8()); m.Do > SpawnStart {
		d.fail("unknown way %d to spawn", m.Do)
	}
	m.At = d.members()
	m.Wait = time.Duration(d.num(int(MaxSpawnWait)))
}

func (e *enc) around(a *Around) {
	e.str(a.Dir)
	e.str(a.Path)
	e.strs(a.Env)
}

func (d *dec) around() Around {
	return Around{d.str(maxDir), d.str(MaxArgs), d.strs(MaxWords, MaxArgs)}
}

// Most is the largest number of processes that will do where there is room for so many;
// none: false.
func (p *SpawnPart) Most(room int) (n int, ok bool) {
	if p.N <= room {
		return p.N, true
	}
	for _, c := range p.Will {
		if int64(c.From) > int64(room) {
			continue
		}
		if m := int(c.From + (min(c.To, uint32(room))-c.From)/c.Step*c.Step); !ok || m > n {
			n, ok = m, true
		}
	}
	return n, ok
}

// Least is the smallest number of processes that will do.
func (p *SpawnPart) Least() int {
	n := p.N
	for _, c := range p.Will {
		n = min(n, int(c.From))
	}
	return n
}

// SpawnBody is the answer to a Spawn. If it has failed when processes had their places,
// Text says why, and Part of which command; Parts: of none more than of others.
type SpawnBody struct {
	World, Parent wire.Set
	Counts        []uint32 // processes of each command
	Nodes         []string // SpawnReserve: the names of the job's hosts, by number; nil: they have none
	Text          string
	Part          uint32
}

func (*SpawnBody) kind() Kind { return KindReply }

func (m *SpawnBody) put(e *enc) {
	e.set(m.World)
	e.set(m.Parent)
	e.u32(uint32(len(m.Counts)))
	for _, n := range m.Counts {
		e.u32(n)
	}
	e.strs(m.Nodes[:min(len(m.Nodes), maxNodes)])
	e.str(Clip(m.Text, MaxText))
	e.u32(m.Part)
}

// maxNodes bounds the names of hosts in an answer.
const maxNodes = 1 << 12

func (m *SpawnBody) get(d *dec) {
	m.World, m.Parent = d.set(), d.set()
	n := d.count(MaxCommands, 4)
	m.Counts = nil
	for range n {
		m.Counts = append(m.Counts, d.u32())
	}
	m.Nodes = d.strs(maxNodes, MaxName)
	m.Text, m.Part = d.str(MaxText), d.u32()
}

// Signal asks for a signal to processes that who asks has had a part in spawning. The
// answer is empty.
type Signal struct {
	Signal  uint8
	Members wire.Members
}

// MaxSignal is the last of Linux.
const MaxSignal = 64

func (*Signal) kind() Kind   { return KindSignal }
func (m *Signal) put(e *enc) { e.u8(m.Signal); e.members(m.Members) }
func (m *Signal) get(d *dec) {
	if m.Signal = d.u8(); m.Signal < 1 || m.Signal > MaxSignal {
		d.fail("signal %d", m.Signal)
	}
	m.Members = d.members()
}

// NotStarted is why processes that belong together were not started; Proc is who could
// not be, if that is known.
type NotStarted struct {
	Proc wire.ProcID
	Err  error
}

func (e *NotStarted) Error() string { return e.Err.Error() }
func (e *NotStarted) Unwrap() error { return e.Err }
