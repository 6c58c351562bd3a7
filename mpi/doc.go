// SPDX-License-Identifier: Apache-2.0

// Package mpi is a Message Passing Interface for Go, after the MPI 4.1
// standard: ranks that send each other messages and call collective
// operations, over shared memory and TCP, without cgo.
//
//	func main() {
//		mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
//			fmt.Println("rank", world.Rank(), "of", world.Size())
//			return world.Barrier()
//		})
//	}
//
// Start it with
//
//	gompirun -np 4 ./prog
//
// or without gompirun as one rank of one.
//
// # Shape
//
// Calls that need an element type are functions over []T: mpi.Send(comm, buf,
// dest, tag). The others are methods: comm.Rank(), req.Wait(). T is any type
// of fixed size without pointers; package mpi/value moves other values.
// Counts are lengths of slices, 64 bits wide. Every call may be made from any
// goroutine.
//
// # Buffers
//
// A buffer given to a call that starts an operation (Isend, Irecv, Ibcast, a
// persistent Start) belongs to the library until the request is complete: a
// send buffer may be read, a receive buffer neither read nor written. The
// request keeps it alive.
//
// # Errors
//
// Errors are returned, never fatal, and name ranks, tags and sizes; see
// [Error]. A process that dies makes the operations that need it fail with
// [ErrProcFailed]; nothing waits for ever.
//
// # Giving up
//
// comm.WithContext(ctx) is the same communicator for calls that end with ctx.
// A receive that no message has matched is withdrawn; a send is withdrawn if
// the receiver confirms that it was unmatched; a collective that is abandoned
// revokes the communicator on all its ranks. A call that had matched completes
// as if ctx were not there.
//
// # Limitations
//
// Derived datatypes, intercommunicators, topologies and the collectives
// beyond Barrier, Bcast, Allreduce, Allgather and Allgatherv are not there
// yet. One host.
package mpi
