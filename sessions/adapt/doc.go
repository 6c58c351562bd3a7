// SPDX-License-Identifier: Apache-2.0

// Package adapt is the interface of Comprés et al., "Infrastructure and API Extensions
// for Elastic Execution of MPI Applications" (EuroMPI 2016), iMPI, in Go: a window in
// the loop of a program, in which its world becomes another one.
//
//	MPI_Init_adapt          Init
//	MPI_Probe_adapt         Process.Probe
//	MPI_Comm_adapt_begin    Process.Begin
//	MPI_Comm_adapt_commit   Process.Commit
//
// Two things differ from C. The library never ends a process: Commit of one that leaves
// returns ErrLeaving, which its main function returns, when it has cleaned up in the
// window. And MPI_COMM_WORLD is not replaced: Commit returns the new world, the
// communicator that Begin has given, which the program assigns.
// docs/design/027-published-interfaces.md
package adapt
