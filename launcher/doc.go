// SPDX-License-Identifier: Apache-2.0

// Package launcher starts the processes of a job on this host, looks after
// them and ends with them: it is all of gompirun but the name.
//
// One goroutine, the head, owns the state of the job; everybody else posts it
// an event:
//
//	forker    the one OS thread that forks, locked and never ending, because
//	          the death signal of a child follows the thread that forked it
//	watcher   sees exits (pidfd) and leaves the children unreaped
//	pump      forwards one output stream, line by line; one for stdout, one
//	          for stderr
//	feeder    forwards standard input
//	server    the control plane (package control)
//	guardian  another process: kills what would outlive a killed head
//
// A process that has exited stays a zombie until the server says that nobody
// uses its pid any more; then its process group is killed, and it is reaped.
//
// docs/running.md tells users the command line, the messages and the exit
// status.
package launcher

// Exit status of gompirun where it is not a rank's own.
const (
	exitFailure    = 1   // bad command line, no memory, lost output, abort with code 0
	exitTimeout    = 124 // --timeout, as timeout(1) has it
	exitNotRunable = 126 // found, but not executable
	exitNotFound   = 127 // no such program
	exitSignal     = 128 // plus the signal's number
)
