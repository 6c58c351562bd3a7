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
// # Persistent and partitioned operations
//
// An Init (SendInit, RecvInit, BcastInit, ...) fixes the arguments of an
// operation once; Start and Wait then repeat it without checks and
// allocations. A partitioned send (PsendInit) lets parts of a buffer leave as
// goroutines fill them. See [Persistent].
//
// # Buffered mode
//
// Bsend never waits for the receiver. It needs buffer space, of the
// communicator ([Comm.SendBuffer]) or the process ([Process.SendBuffer]);
// [BufferAutomatic] is as much as is needed.
//
// # Collectives
//
// Every rank of a communicator makes the same collective calls in the same
// order. Each has three forms: Gather blocks, Igather returns a [Request],
// GatherInit a [Persistent]; and each a form on [Buf] for derived datatypes:
// comm.Bufs().Gather, Igather, GatherInit. In place means that send starts
// where its data would land in recv, so the same memory is given twice; nil is
// nothing but an empty buffer. In an operation with a root the others pass nil
// for what only the root uses. nil displacements: the blocks lie side by side.
//
// Lists of counts and displacements are read until a nonblocking call is
// complete, like buffers. A blocking call and a start allocate nothing.
//
// Two goroutines in collective calls of one communicator at once are an error
// that names both places ([ErrOverlap]); pending requests may be many. A call
// that fails on one rank because of its arguments ends with [ErrAborted] on
// those that make it.
//
// On an intercommunicator the data comes from the other group. The root passes
// [Root], the others of its group [ProcNull], and the remote group its rank.
//
// Neighborhood collectives (NeighborAlltoall, ...) exchange blocks with the
// neighbors of the caller in the communicator's topology.
//
// # Checking
//
// With GOMPI_CHECK=1 (gompirun --check) mistakes that go unnoticed else are
// errors, at a price: a buffer used by two operations of which one writes
// ([ErrInUse]), blocks of one collective that overlap where they are received
// ([ErrArg]), a message in ready mode that found no receive ([ErrNotReady]),
// and ranks that call different collectives, or one with different roots,
// counts, types or operations, also where counts are of two ranks only
// ([ErrMismatch], naming the rank).
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
// as if ctx were not there. If ctx has ended before a collective call, that
// call ends with ErrAborted on the other ranks, and the communicator lives on.
//
// # Limitations
//
// One host. docs/coverage.md goes through the standard section by section.
package mpi
