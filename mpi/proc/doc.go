// SPDX-License-Identifier: Apache-2.0

// Package proc starts and looks after processes by requests, as Gropp and Lusk proposed
// for MPI: who schedules, who starts processes and who connects them are apart. Allocate
// takes places from the scheduler, each of which is a persistent request (Kind). The
// program is chosen meanwhile: SetExec, SetArgs, Nodename, JSInfo. Start, or Startall of
// package mpi, starts it, whether or not it is an MPI program. The request is then
// complete twice: when the process has started, and when it has exited. Signal signals it,
// Attach and RemoteAttach connect with it, Detach parts again, and Free gives it up.
// Iaccept and Icontact are requests for processes that were started by others.
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
// Gropp and Lusk, Dynamic Process Management in an MPI Setting (1995). What is other
// there than here: Attach returns the larger communicator and leaves the old one as it is,
// Detach returns the smaller one, and processes of Spawn can be signalled, too
// (mpi.Process.Signal).
package proc
