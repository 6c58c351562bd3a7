// SPDX-License-Identifier: Apache-2.0

// Package dyn is the interface of Huber et al., "Towards Dynamic Resource Management
// with MPI Sessions and PMIx" (EuroMPI/USA 2022), in Go: a process receives that resources of a set change, makes
// new sets of the old ones, and all integrate the change together.
//
//	MPI_Session_dyn_recv_res_change       Session.Receive, IReceive
//	MPI_Session_dyn_pset_create_op        Session.CreateOp, ICreateOp
//	MPI_Session_dyn_integrate_res_change  Session.Integrate, IIntegrate
//	MPI_Session_request_res_change        Session.Request, IRequest, Requested.Status
//
// Two things differ from C. The library never ends a process: who leaves is told to
// terminate, and returns from its main function. And nothing is replaced behind the
// program's back: it makes its communicator of the new set and assigns it.
//
// All members of a set must have said that they follow it, by Open or Follow, before it
// takes a change. Newcomers call Open too; they follow what they have integrated.
// docs/porting.md has the calls of C beside these, docs/design/027-published-interfaces.md
// how they are built.
package dyn
