// SPDX-License-Identifier: Apache-2.0

// Package proc starts, watches and connects processes by requests, as Gropp and Lusk
// proposed for MPI. It separates the scheduler, the start of processes and their connection.
//
// Allocate takes slots from the scheduler; each slot is a persistent request (Kind). Before
// the start the program is chosen: SetExec, SetArgs, Nodename, JSInfo. Start, or Startall of
// package mpi, starts it, whether or not it is an MPI program. The request then completes
// twice: when the process has started, and when it has exited. Signal sends it a signal,
// Attach and RemoteAttach connect with it, Detach separates again, and Free gives it up.
// Iaccept and Icontact are requests for processes that others have started.
//
//	reqs, err := proc.Allocate(p, proc.Places{N: 4})
//	for _, r := range reqs { proc.SetExec(r, "worker") }
//	err = mpi.Startall(reqs)
//	err = mpi.Waitall(reqs)                        // they have started
//	workers, err := proc.RemoteAttach(comm, reqs)  // as CommSpawn
//	...
//	err = mpi.Waitall(reqs)                        // they have exited
//	err = mpi.FreeAll(reqs)
//
// The requests are those of package mpi, so that Waitany, Testsome and the others take
// them, alone and, by their Request, among messages.
//
// Source: Gropp and Lusk, Dynamic Process Management in an MPI Setting (1995). This package
// differs in three points. Attach returns the larger communicator and leaves the old one as
// it is. Detach returns the smaller one. Processes of Spawn can be signalled as well
// (mpi.Process.Signal).
package proc
