// SPDX-License-Identifier: Apache-2.0

// Package control is the language of the control plane: what the head of a job,
// the agents of its hosts, its processes and gompictl say to each other. Process
// and agent: identity, shared segments, process sets, key-value store, fences,
// spawning, deaths (messages.go, reply.go). Head and agent: orders and reports
// (link.go).
//
// One abstract Unix stream socket per agent carries length-prefixed, versioned
// frames (frame.go has the drawing, docs/design/004-control-plane.md the protocol).
// A process shows the token it was started with and gets everything it needs
// in one round trip. Both sides check every field of what the other wrote.
//
// Who speaks it: packages head, agent and control/client.
package protocol

import (
	"fmt"
	"os"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
)

// The environment of a started process.
const (
	EnvAddr  = "GOMPI_CONTROL" // address of the agent's socket
	EnvToken = "GOMPI_TOKEN"   // this process's token, 32 hexadecimal digits
	// EnvSpare is 1 in a process that is started before it is needed: its welcome
	// comes then.
	EnvSpare = "GOMPI_SPARE"
)

// Names of the sets that every process has.
const (
	WorldURI  = "mpi://WORLD"
	SelfURI   = "mpi://SELF"
	ParentURI = "mpi://PARENT"
)

// MainURI is the main set of the job as it is when it is asked for, EmptyURI the set
// without members. The programs' own names begin with AppScheme, those of the sets of
// each host with HostScheme.
const (
	MainURI    = "gompi://main"
	LatestURI  = "mpi://self" // as an input of an operation; else it is SelfURI
	EmptyURI   = "gompi://empty"
	AppScheme  = "app://"
	HostScheme = "gompi://host/"
)

// FromEnv returns the address and the token in the environment; ok is false
// if the process was not started by gompirun. If one of the two is missing ok
// is true, and client.Dial says so: a process that means to be part of a job must not
// run as if it were alone.
func FromEnv() (addr, token string, ok bool) {
	addr, token = os.Getenv(EnvAddr), os.Getenv(EnvToken)
	return addr, token, addr != "" || token != ""
}

// SetURI is the name of the set with this number.
func SetURI(job wire.JobID, number uint32) string {
	return fmt.Sprintf("gompi://%016x/%d", uint64(job), number)
}

// Welcome is what a process learns when it joins.
type Welcome struct {
	Self   wire.ProcID
	Secret [32]byte
	// World is mpi://WORLD of this process: the processes started together
	// with it, in rank order. Number is that of the set itself.
	World wire.Set
	// Parent is mpi://PARENT: the set of the process that spawned this one;
	// Number 0 and no members if there is none.
	Parent wire.Set
	// Family: the parents make a communicator with the world, of the ids that come with
	// Parent.
	Family bool
	// Late: it asks whom it is attached to, if anybody (KindKin).
	Late bool
	// Change is the change with which this process comes, nil: it is none of a
	// change.
	Change *ChangeBody
	// Segment and Bell are this process's own memfd and eventfd. The caller
	// owns them.
	Segment, Bell int
	// LocalProcs is the number of processes of the job on this host,
	// UsableCPUs what they may use together, MaxProcs the GOMAXPROCS to set
	// (0: leave it alone).
	LocalProcs, UsableCPUs, MaxProcs int
	// Hosts is how many the job has.
	Hosts int
	// FaultTolerant: a death does not end the job.
	FaultTolerant bool
	// KillGrace is the time between SIGTERM and SIGKILL when the job ends.
	KillGrace time.Duration
	// Settings are the knobs (GOMPI_*) given as flags of gompirun.
	Settings map[string]string

	// What the agent says beside it: Arena is the file out of which it gives ranges
	// (File: -1: none), which the caller owns, Given what it has given of that.
	Arena wire.Extent
	Given []Given
}

// Given is the memory for shared collectives of the first communicator of a set, in
// the arena of the welcome: all of the set's members on this host, so many, have it.
type Given struct {
	Set   uint32
	Ranks int
	X     wire.Extent // Bytes 0: there is none
}

// EventKind says what an Event tells.
type EventKind uint8

const (
	// EvDied: Proc, which this process watches or has a Contact with, ended
	// without leaving in order; Text says how. Answered with Dead when nothing
	// of this process touches Proc's memory any more.
	EvDied EventKind = iota + 1
	// EvGone: likewise of one that left in order (Text is LeftInOrder) or
	// never joined (Text says how). It may come a little later than it could.
	// The answer is as to EvDied.
	EvGone
	// EvStacks: report with Stacks(ID, ...).
	EvStacks
	// EvHost: LocalProcs and MaxProcs have changed.
	EvHost
	// EvAbort: the job is ending; Text says why.
	EvAbort
	// EvCut: Proc, which lives, cannot talk to this process; Text says why.
	EvCut
	// EvPing: Proc, which cannot reach this process, asks whether it takes part.
	// Answered with Pong(Proc, ID), unless this process has left.
	EvPing
	// EvPong: Proc took part when Ping(Proc, ID) came. All deaths that the
	// head knew then were told before.
	EvPong
	// EvNone: Proc, which this process watches, is no process of the job and
	// never was.
	EvNone
	// EvStdin: the descriptor beside it is the process's standard input from now
	// on. The client sees to it, and passes the event on to nobody.
	EvStdin
	// EvCommitted: the operation ID, which was said to be Undecided, is committed.
	EvCommitted
	// EvUndone: likewise, it was rolled back. The ends of its newcomers are told later.
	EvUndone
	// EvJobOver: nothing is heard any more of the job ID, of which this process has asked;
	// the ends of all its processes were told.
	EvJobOver
)

// LeftInOrder is the Text of an EvGone of a process that has finalized.
const LeftInOrder = "left in order"

// Event is something the head tells unasked.
type Event struct {
	Kind                 EventKind
	Proc                 wire.ProcID
	Text                 string
	ID                   uint64
	LocalProcs, MaxProcs int
}

// ProcState is how far a process is.
type ProcState uint8

// A process only moves forward in this list.
const (
	Starting  ProcState = iota + 1 // reserved, perhaps forked; has not said hello
	Joined                         // has its welcome
	Finalized                      // has left in order; may still run
	Exited                         // has ended
	Spare                          // none of these: waits for a change to take it
)

// String gives the state in lower case.
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

// StartProc is one process to start. Its environment must get
// GOMPI_CONTROL=Address(job, host) and GOMPI_TOKEN, which the agent of its host has.
type StartProc struct {
	Proc       wire.ProcID
	Argv       []string
	Rank, Size int
	Host       uint32
	Spare      uint32 // not 0: it is a spare, to be started in the place of this number, or that runs under this serial
	// Awaited: who has started it hears how it ends, and unless it joins that is no
	// matter of the job.
	Awaited bool
	Around
}

// ProcInfo is one line of a snapshot.
type ProcInfo struct {
	Proc wire.ProcID
	// Rank in the main set of Size processes; of who is not in that, in its world,
	// which is the set numbered World. Name, if not empty, is what it is called
	// instead.
	Rank, Size int
	Name       string
	World      uint32
	// PID of the child that the launcher started, 0 before Started.
	PID   int
	State ProcState
	// How says how it ended, "" while it lives.
	How string
}

// Used is what a process has used since it began, as the agent of its host sees it
// whether the process runs or not.
type Used struct {
	// At is when that was seen, by the clock of the host, which has begun at any moment;
	// 0: it was not. Two of them give rates.
	At     time.Duration
	CPU    time.Duration // of all its threads together
	Memory int64         // its bytes in memory, those that it shares with others as well
	callreg.Tally
}

// StackReport is what one process says about itself, and its agent about it.
type StackReport struct {
	ProcInfo
	// Host is where it is, of several; Sets are those that it is a member of, by number,
	// the latest first, as far as they are in the list of sets: for a tool that asks for
	// KindUsed.
	Host string
	Sets []uint32
	// Answered is false if the process did not reply in time; then Queues
	// and Stacks are empty.
	Answered bool
	// Calls are its blocking calls, and Used is what it has used, both as its agent sees it.
	// Silent, if not empty, says that the agent did not answer.
	Calls  []callreg.Entry
	Used   Used
	Silent string
	// Queues is the engine's text about unmatched messages, Stacks a
	// goroutine dump. Both are cut at MaxReport bytes.
	Queues, Stacks []byte
}

// Called is what people call the process.
func (p *ProcInfo) Called() string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprintf("rank %d", p.Rank)
}

// Limits of the protocol.
const (
	MaxKey    = 1 << 10   // bytes in a key of the store
	MaxValue  = 256 << 10 // bytes in a value
	MaxReport = 1 << 20   // bytes of Queues and of Stacks
	MaxAddrs  = 64        // addresses a process may announce
	MaxArgs   = 1 << 20   // bytes in a command line to spawn
	MaxSpawn  = 1 << 16   // processes in one Spawn or AddJob
)
