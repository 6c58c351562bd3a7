// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
)

// ProcState is the state of a process.
type ProcState uint8

// A process moves forward in this list only.
const (
	Starting  ProcState = iota + 1 // it has a slot and may be forked; it has not said hello
	Joined                         // it has its welcome
	Finalized                      // it has finalized, and may still run
	Exited                         // it has ended
	Spare                          // none of these: it waits for a change to take it
)

// String returns the state in lower case.
func (s ProcState) String() string {
	switch s {
	case Starting:
		return "starting"
	case Joined:
		return "joined"
	case Finalized:
		return "finalized"
	case Exited:
		return "exited"
	case Spare:
		return "spare"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// StartProc is one process to start. Its environment must have GOMPI_CONTROL=Address(job, host)
// and GOMPI_TOKEN, which the agent of its host knows.
type StartProc struct {
	Proc       wire.ProcID
	Argv       []string
	Rank, Size int
	Host       uint32
	// Spare, if it is not 0, makes it a spare: one to start in the slot of this number, or one
	// that runs under this serial.
	Spare uint32
	// Awaited: the process that started it hears how it ends. Unless it joins, its end does not
	// concern the job.
	Awaited bool
	LaunchEnv
}

// ProcInfo is one process in a snapshot.
type ProcInfo struct {
	Proc wire.ProcID
	// Rank in the main set of Size processes; that of a process outside the main set, in its
	// world.
	Rank, Size int
	// Name, if it is not empty, is what to call the process instead of its rank.
	Name string
	// World is the number of the set that is its world.
	World uint32
	// PID is that of the child that the launcher started, 0 before it is started.
	PID   int
	State ProcState
	// How says how the process ended, "" while it lives.
	How string
}

// Called returns what people call the process.
func (p *ProcInfo) Called() string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprintf("rank %d", p.Rank)
}

// Used is what a process has used since it began, as the agent of its host sees it.
type Used struct {
	// At is when the agent saw it, by a clock of the host that began at any moment; 0: the agent
	// has not seen it. The difference of two Used gives rates.
	At     time.Duration
	CPU    time.Duration // of all its threads together
	Memory int64         // bytes in memory, with those that it shares with others
	callreg.Counters
}

func (e *enc) used(u *Used) {
	e.duration(u.At)
	e.duration(u.CPU)
	e.i64(u.Memory)
	for _, n := range u.Numbers() {
		e.u64(*n)
	}
}

func (d *dec) used() (u Used) {
	u.At = d.duration()
	u.CPU = d.duration()
	u.Memory = d.i64()
	for _, n := range u.Numbers() {
		*n = d.u64()
	}
	if d.err == nil && u.Memory < 0 {
		d.fail("%d bytes of memory", u.Memory)
	}
	return u
}

// StackReport is a process as a tool sees it: what the process says, and what its agent says.
type StackReport struct {
	ProcInfo
	// Host is the host of the process, if there are several. Sets are the sets that it is a member
	// of, the latest first, as far as they are in the list of sets. Both are for KindUsed.
	Host string
	Sets []uint32
	// Answered is false if the process did not reply in time. Then Queues and Stacks are empty.
	Answered bool
	// Calls are its blocking calls, and Used is what it has used, both as its agent sees them.
	// Silent, if it is not empty, says that the agent did not answer.
	Calls  []callreg.Entry
	Used   Used
	Silent string
	// Queues is the engine's text about unmatched messages, Stacks a dump of all goroutines. Each
	// is cut at MaxReport bytes.
	Queues, Stacks []byte
}

// MaxSetsOf bounds the Sets of a StackReport.
const MaxSetsOf = 8

func (*StackReport) kind() Kind { return KindPart }

func (r *StackReport) put(e *enc) {
	e.proc(r.Proc)
	e.num(r.Rank, MaxMembers)
	e.num(r.Size, MaxMembers)
	e.str(r.Name, MaxName)
	e.u32(r.World)
	e.num(r.PID, maxPID)
	e.u8(uint8(r.State))
	e.text(r.How)
	e.flag(r.Answered)
	e.text(r.Silent)
	e.str(r.Host, MaxName)
	e.numbers(r.Sets, MaxSetsOf)
	e.used(&r.Used)
	e.calls(r.Calls)
	e.bytes(r.Queues, MaxReport)
	e.bytes(r.Stacks, MaxReport)
}

func (r *StackReport) get(d *dec) {
	r.Proc = d.proc()
	r.Rank = d.num(MaxMembers)
	r.Size = d.num(MaxMembers)
	r.Name = d.str(MaxName)
	r.World = d.u32()
	r.PID = d.num(maxPID)
	r.State = ProcState(d.u8())
	if d.err == nil && (r.State < Starting || r.State > Spare) {
		d.fail("unknown state %d", r.State)
	}
	r.How = d.text()
	r.Answered = d.flag()
	r.Silent = d.text()
	r.Host = d.str(MaxName)
	r.Sets = d.numbers(MaxSetsOf)
	r.Used = d.used()
	r.Calls = d.calls()
	r.Queues = d.bytes(MaxReport)
	r.Stacks = d.bytes(MaxReport)
}

// maxCalls is more than the slots of a blocking-call registry; minCall is the bytes of a call with
// empty texts, maxCall of one with the longest texts.
const (
	maxCalls = 1 << 10
	minCall  = 102
	maxCall  = minCall + callreg.MaxOp + callreg.MaxCaller + callreg.MaxUnmatched
)

// calls appends the first maxCalls of a list of blocking calls.
func (e *enc) calls(list []callreg.Entry) {
	list = list[:min(len(list), maxCalls)]
	e.count(len(list), maxCalls)
	for i := range list {
		e.call(&list[i])
	}
}

func (d *dec) calls() []callreg.Entry {
	n := d.count(maxCalls, minCall)
	if n == 0 {
		return nil
	}
	list := make([]callreg.Entry, n)
	for i := range list {
		d.call(&list[i])
	}
	return list
}

func (e *enc) call(c *callreg.Entry) {
	e.str(Clip(c.Op, callreg.MaxOp), callreg.MaxOp)
	e.proc(c.Comm.Creator)
	e.u32(c.Comm.Serial)
	e.i64(int64(c.CommSize))
	e.i64(int64(c.Rank))
	e.i64(int64(c.Peer))
	e.proc(c.PeerProc)
	e.i64(int64(c.Tag))
	e.i64(c.Bytes)
	e.i64(c.Since.UnixNano())
	e.str(c.Caller[max(0, len(c.Caller)-callreg.MaxCaller):], callreg.MaxCaller) // the end says more
	e.proc(c.Holder)
	e.flag(c.HolderWaits)
	e.flag(c.Running)
	e.str(Clip(c.Unmatched, callreg.MaxUnmatched), callreg.MaxUnmatched)
}

func (d *dec) call(c *callreg.Entry) {
	c.Op = d.str(callreg.MaxOp)
	c.Comm = wire.ContextID{Creator: d.proc(), Serial: d.u32()}
	c.CommSize = int(d.i64())
	c.Rank = int(d.i64())
	c.Peer = int(d.i64())
	c.PeerProc = d.proc()
	c.Tag = int(d.i64())
	c.Bytes = d.i64()
	c.Since = time.Unix(0, d.i64())
	c.Caller = d.str(callreg.MaxCaller)
	c.Holder = d.proc()
	c.HolderWaits = d.flag()
	c.Running = d.flag()
	c.Unmatched = d.str(callreg.MaxUnmatched)
}
