// SPDX-License-Identifier: Apache-2.0

// Package launcher is gompirun: it starts the processes of a job on this host, watches
// them and ends with them.
//
// The supervisor (internal/launch/supervisor) decides: it knows which processes there are,
// what their ends mean and when the job ends. The spawner of a host
// (internal/launch/spawner) acts there: it forks, forwards output, sees ends and reaps.
// The two packages do not import each other; they exchange calls (launch.Host) and events
// (launch.Event). This package reads the command line and connects both with the control
// plane of the job (job.go). One goroutine owns the supervisor and the spawner; all others
// post functions to it:
//
//	forker    the one OS thread that forks; it never ends, because the death signal
//	          of a child follows the thread that forked it
//	exits     sees children end (pidfd) and leaves them unreaped
//	pump      forwards one output stream, line by line; one each for stdout and stderr
//	feeder    forwards standard input
//	server    the control plane (internal/control/server)
//	guardian  another process: kills what would outlive a killed gompirun
//
// The spawner may be in another process, an agent, with a connection to the supervisor
// (agents.go).
//
// A head of several jobs (jobqueue.go) is another gompirun, which has the slots of the jobs
// and none of their processes. A job that is handed to it (leasedjob.go) is like any other,
// but for its lease. A driver (driver.go) connects a resource manager with a job; the
// manager is a policy of launcher/rm, the lease, or a program at a socket (socket.go).
//
// A process that has exited stays a zombie until the control plane says that no other
// process uses its pid any more; then its process group is killed, and it is reaped.
//
// docs/running.md has the command line, the messages and the exit statuses.
package launcher
