// SPDX-License-Identifier: Apache-2.0

// Package launcher starts the processes of a job on this host, looks after
// them and ends with them: it is all of gompirun but the name.
//
// The head says what happens: which processes there are, what their ends mean,
// when the job ends. The agent of a host does it there: forks, output, seeing
// ends, reaping. They are packages that do not know each other
// (internal/launch/supervisor and agent) and tell each other what the interface
// launch.Host and the events have, names and numbers only. This one reads the
// command line and joins the two with the control plane of the job. One
// goroutine owns both; everybody else posts it what was seen:
//
//	forker    the one OS thread that forks, locked and never ending, because
//	          the death signal of a child follows the thread that forked it
//	exits     sees children end (pidfd) and leaves the children unreaped
//	pump      forwards one output stream, line by line; one for stdout, one
//	          for stderr
//	feeder    forwards standard input
//	server    the control plane (package onehost)
//	guardian  another process: kills what would outlive a killed head
//
// A head of several jobs (hold.go) is another gompirun, which has their slots and none of
// their processes; a job that is handed to it (to.go) is as any other, on a lease.
//
// The agent may be another process, with a connection to the head (far.go).
//
// A process that has exited stays a zombie until the control plane's half of the
// agent says that nobody uses its pid any more; then its process group is killed, and
// it is reaped.
//
// docs/running.md tells users the command line, the messages and the exit
// status.
package launcher
