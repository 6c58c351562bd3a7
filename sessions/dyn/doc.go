// SPDX-License-Identifier: Apache-2.0

// Package dyn is the interface of Huber et al., "Towards Dynamic Resource Management
// with MPI Sessions and PMIx" (EuroMPI/USA 2022), in Go. A process receives a change of a
// set's resources, makes new sets of the old ones, and all processes integrate the change
// together.
//
//	MPI_Session_dyn_recv_res_change       Session.Receive, IReceive
//	MPI_Session_dyn_pset_create_op        Session.CreateOp, ICreateOp
//	MPI_Session_dyn_integrate_res_change  Session.Integrate, IIntegrate
//	MPI_Session_request_res_change        Session.Request, IRequest, Requested.Status
//
// Two things differ from C. The library never ends a process: Integrate tells a process
// that leaves to terminate, and the process returns from its main function. And the library
// replaces no variable of the program: the program makes its communicator of the new set
// and assigns it.
//
// A set takes changes when all its members follow it, by Open or Follow. Newcomers call
// Open too; they follow the set that they have integrated.
// docs/porting.md shows the calls of C beside these, docs/design/027-published-interfaces.md
// how they work.
package dyn
