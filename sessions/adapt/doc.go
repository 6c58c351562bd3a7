// SPDX-License-Identifier: Apache-2.0

// Package adapt is the interface of Comprés et al., "Infrastructure and API Extensions
// for Elastic Execution of MPI Applications" (EuroMPI 2016), iMPI, in Go. The loop of a
// program has a window in which its world is replaced by another one.
//
//	MPI_Init_adapt          Init
//	MPI_Probe_adapt         Process.Probe
//	MPI_Comm_adapt_begin    Process.Begin
//	MPI_Comm_adapt_commit   Process.Commit
//
// Two things differ from C. The library never ends a process: in a process that leaves,
// Commit returns ErrLeaving, which the main function returns. And MPI_COMM_WORLD is not
// replaced: Commit returns the new world, which is the Future of Begin, and the program
// assigns it. See docs/design/027-published-interfaces.md.
package adapt
