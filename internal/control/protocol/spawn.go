// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"gompi/internal/base/wire"
)

// Messages of a process that starts other processes, and about those.

// Limits of a Spawn.
const (
	MaxCommands  = 1 << 10              // commands
	MaxCounts    = 1 << 8               // lists of counts of a command
	MaxSpawnWait = 365 * 24 * time.Hour // the longest Wait
	MaxSignal    = 64                   // the last signal of Linux
	MaxStatus    = 255                  // the largest exit status
	maxDir       = 1 << 12              // bytes of a directory
	maxHosts     = 1 << 10              // hosts of a command
	maxNodes     = 1 << 12              // names of hosts in an answer
)

// Spawn asks for more processes. The answer is a SpawnBody.
type Spawn struct {
	Parts []SpawnPart
	// Parents is the group that spawns, which has the sender: a set of it is mpi://PARENT of the
	// new processes. If it is empty that is mpi://SELF of the sender.
	Parents wire.Members
	// Joins: parents and children make a communicator (Welcome.Intercomm). The answer comes when
	// all have joined. If one of them ends before, or the sender cancels the request, the children
	// are ended.
	Joins bool
	Do    SpawnDo
	At    wire.Members  // SpawnStart: slots that the sender has reserved
	Wait  time.Duration // SpawnReserve: how long to wait for slots; 0: as any spawn
}

// SpawnDo says how far a Spawn goes.
type SpawnDo uint8

const (
	// SpawnAll reserves slots and starts processes in them.
	SpawnAll SpawnDo = iota
	// SpawnReserve reserves slots. The parts have only counts and hosts, which may be patterns.
	// World of the answer is the slots, as processes that are not started.
	SpawnReserve
	// SpawnStart starts processes in the slots At. The counts leave no choice, and Parents is
	// empty.
	SpawnStart
)

// SpawnPart is one command of a Spawn.
type SpawnPart struct {
	N     int      // processes
	Will  []Counts // other numbers that will do if there are not N slots; nil: none
	Argv  []string // nil: that of the sender
	Hosts []string // where the processes start; nil: anywhere
	LaunchEnv
}

// LaunchEnv is the environment of a process where it differs from that of the job.
type LaunchEnv struct {
	Dir  string   // directory; "": that of the command line's first program
	Path string   // where the program is looked for; "": in PATH
	Env  []string // NAME=VALUE
}

// Default reports whether the environment is that of the job.
func (a *LaunchEnv) Default() bool { return a.Dir == "" && a.Path == "" && len(a.Env) == 0 }

// Counts are the numbers From, From+Step, ... up to To.
type Counts struct{ From, To, Step uint32 }

// minPart is the bytes of a part whose lists and texts are empty.
const minPart = 40

func (*Spawn) kind() Kind { return KindSpawn }

func (m *Spawn) put(e *enc) {
	e.count(len(m.Parts), MaxCommands)
	for i := range m.Parts {
		p := &m.Parts[i]
		e.num(p.N, MaxSpawn)
		e.count(len(p.Will), MaxCounts)
		for _, c := range p.Will {
			e.u32(c.From)
			e.u32(c.To)
			e.u32(c.Step)
		}
		e.strs(p.Argv, MaxWords, MaxArgs)
		e.strs(p.Hosts, maxHosts, MaxName)
		e.launchEnv(&p.LaunchEnv)
	}
	e.members(m.Parents)
	e.flag(m.Joins)
	e.u8(uint8(m.Do))
	e.members(m.At)
	e.num(int(m.Wait), int(MaxSpawnWait))
}

func (m *Spawn) get(d *dec) {
	n := d.count(MaxCommands, minPart-8)
	m.Parts = make([]SpawnPart, n)
	for i := range m.Parts {
		p := &m.Parts[i]
		p.N = d.num(MaxSpawn)
		for range d.count(MaxCounts, 12) {
			c := Counts{From: d.u32(), To: d.u32(), Step: d.u32()}
			if d.err == nil && (c.Step == 0 || c.From > c.To || int64(c.To) > int64(p.N)) {
				d.fail("counts from %d to %d by %d, of %d", c.From, c.To, c.Step, p.N)
			}
			p.Will = append(p.Will, c)
		}
		p.Argv = d.strs(MaxWords, MaxArgs)
		p.Hosts = d.strs(maxHosts, MaxName)
		p.LaunchEnv = d.launchEnv()
	}
	m.Parents = d.members()
	m.Joins = d.flag()
	if m.Do = SpawnDo(d.u8()); m.Do > SpawnStart {
		d.fail("unknown way %d to spawn", m.Do)
	}
	m.At = d.members()
	m.Wait = time.Duration(d.num(int(MaxSpawnWait)))
}

func (e *enc) launchEnv(a *LaunchEnv) {
	e.str(a.Dir, maxDir)
	e.str(a.Path, MaxArgs)
	e.strs(a.Env, MaxWords, MaxArgs)
}

func (d *dec) launchEnv() LaunchEnv {
	return LaunchEnv{Dir: d.str(maxDir), Path: d.str(MaxArgs), Env: d.strs(MaxWords, MaxArgs)}
}

// Most returns the largest number of processes that will do where there are so many slots; false
// if none will do.
func (p *SpawnPart) Most(slots int) (n int, ok bool) {
	if p.N <= slots {
		return p.N, true
	}
	for _, c := range p.Will {
		if int64(c.From) > int64(slots) {
			continue
		}
		if m := int(c.From + (min(c.To, uint32(slots))-c.From)/c.Step*c.Step); !ok || m > n {
			n, ok = m, true
		}
	}
	return n, ok
}

// Least returns the smallest number of processes that will do.
func (p *SpawnPart) Least() int {
	n := p.N
	for _, c := range p.Will {
		n = min(n, int(c.From))
	}
	return n
}

// SpawnBody answers a Spawn. If the spawn failed after it had its slots, Text says why, and Part
// which command failed; Part is Parts of the Spawn if no one command did.
type SpawnBody struct {
	World, Parent wire.Set
	Counts        []uint32 // processes of each command
	Nodes         []string // SpawnReserve: names of the job's hosts, by number; nil: they have none
	Text          string
	Part          uint32
}

func (*SpawnBody) kind() Kind { return KindReply }

func (m *SpawnBody) put(e *enc) {
	e.set(m.World)
	e.set(m.Parent)
	e.numbers(m.Counts, MaxCommands)
	e.strs(m.Nodes[:min(len(m.Nodes), maxNodes)], maxNodes, MaxName)
	e.text(m.Text)
	e.u32(m.Part)
}

func (m *SpawnBody) get(d *dec) {
	m.World = d.set()
	m.Parent = d.set()
	m.Counts = d.numbers(MaxCommands)
	m.Nodes = d.strs(maxNodes, MaxName)
	m.Text = d.text()
	m.Part = d.u32()
}

// Signal asks for a signal to processes that the sender has helped to spawn. The answer is empty.
type Signal struct {
	Signal  uint8
	Members wire.Members
}

func (*Signal) kind() Kind { return KindSignal }

func (m *Signal) put(e *enc) {
	e.u8(m.Signal)
	e.members(m.Members)
}

func (m *Signal) get(d *dec) {
	if m.Signal = d.u8(); m.Signal < 1 || m.Signal > MaxSignal {
		d.fail("signal %d", m.Signal)
	}
	m.Members = d.members()
}

// GiveBack tells that its sender needs nothing more of processes in slots that it has reserved
// (SpawnReserve). The slots of those that are not started are free; the others run on by
// themselves.
type GiveBack struct{ Members wire.Members }

func (*GiveBack) kind() Kind   { return KindGiveBack }
func (m *GiveBack) put(e *enc) { e.members(m.Members) }
func (m *GiveBack) get(d *dec) { m.Members = d.members() }

// EndBody answers a KindEnd when the process has ended.
type EndBody struct {
	Status int32  // exit status, as gompirun would have it; -1: it is not known
	Text   string // how the process ended, for people
}

func (*EndBody) kind() Kind { return KindReply }

func (m *EndBody) put(e *enc) {
	e.u32(uint32(m.Status))
	e.text(m.Text)
}

func (m *EndBody) get(d *dec) {
	if m.Status = int32(d.u32()); m.Status < -1 || m.Status > MaxStatus {
		d.fail("status %d", m.Status)
	}
	m.Text = d.text()
}

// NotStarted is the error of processes that belong together and were not started.
type NotStarted struct {
	Proc wire.ProcID // the one that could not be started; 0: it is not known
	Err  error
}

func (e *NotStarted) Error() string { return e.Err.Error() }
func (e *NotStarted) Unwrap() error { return e.Err }
