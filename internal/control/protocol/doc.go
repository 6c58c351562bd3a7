// SPDX-License-Identifier: Apache-2.0

// Package protocol is the language of the control plane: all messages between the head of a job,
// the agents of its hosts, its processes, gompictl, and the heads of other jobs.
//
// Each agent listens on an abstract Unix stream socket. A connection carries frames: a head of
// fixed length, and the body of one message (frame.go has the drawing). A process shows the token
// that it was started with, and gets everything that it needs in one answer, the welcome. Both
// ends check every field of what the other has written.
//
// kind.go is the table of all kinds of message, and says how to add one. codec.go has the
// encoding of fields. The messages stand in the file of their subject:
//
//	opening.go    what never changes, so that any two versions can refuse each other
//	process.go    what a process says of itself and of others; the welcome
//	event.go      what the head tells a process unasked
//	store.go      the store of the job and of sets
//	sets.go       process sets; setevent.go: what happens to them
//	changes.go    operations that change sets, and how members learn of them
//	spawn.go      processes that start others; ports.go: groups that connect
//	memory.go     shared memory of a host
//	tools.go      requests of gompictl
//	command.go    between the head and an agent; launch.go: between their launchers
//	foreign.go    between the heads of two jobs
//	reply.go      answers and errors
//
// Packages head, agent, server, link and client are the ends that speak it. The protocol is
// described in docs/design/004-control-plane.md.
package protocol

import (
	"fmt"
	"os"

	"gompi/internal/base/wire"
)

// The environment of a started process.
const (
	EnvAddr  = "GOMPI_CONTROL" // address of the agent's socket
	EnvToken = "GOMPI_TOKEN"   // the token of this process, 32 hexadecimal digits
	EnvSpare = "GOMPI_SPARE"   // 1: a spare, which is started before it is needed and welcomed then
)

// Names of the sets that every process has.
const (
	WorldURI  = "mpi://WORLD"
	SelfURI   = "mpi://SELF"
	ParentURI = "mpi://PARENT"
)

// Names and schemes of other sets.
const (
	MainURI    = "gompi://main"  // the main set of the job at the moment of the request
	LatestURI  = "mpi://self"    // as an input of an operation; elsewhere it is SelfURI
	EmptyURI   = "gompi://empty" // the set without members
	AppScheme  = "app://"        // names that programs choose
	HostScheme = "gompi://host/" // the sets of each host
)

// FromEnv returns the address and the token in the environment; ok is false if gompirun did not
// start the process. If one of the two is missing ok is true, and client.Dial fails: a process
// that belongs to a job must not run as if it were alone.
func FromEnv() (addr, token string, ok bool) {
	addr, token = os.Getenv(EnvAddr), os.Getenv(EnvToken)
	return addr, token, addr != "" || token != ""
}

// SetURI returns the name of the set with this number.
func SetURI(job wire.JobID, number uint32) string {
	return fmt.Sprintf("gompi://%016x/%d", uint64(job), number)
}
