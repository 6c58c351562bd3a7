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
// goroutine. What may or may not have happened is the first result: done, found.
//
// I before a name starts the operation and gives a [Request], Init after it
// gives a [Persistent]; [Bufs] has the forms for derived datatypes.
//
// # Index by task
//
//   - Start and end: [Main]; [Init] and [Process], [FromContext],
//     [Acquire]; [Comm.Abort]. Who am I:
//     [Comm.Rank], [Comm.Size], [Comm.Name], [Comm.SetName], [Comm.Process],
//     [Comm.Transport]. Say it once: [SaidOnce].
//   - Send and receive: [Send], [Recv], [Sendrecv], [SendrecvReplace]; of
//     unknown length [RecvNew], [Messages]; one element [SendOne], [RecvOne].
//     Without waiting: [Isend], [Irecv], [Isendrecv], [IsendrecvReplace]. Other
//     modes: [Ssend], [Rsend], [Bsend] with [Comm.SendBuffer]. Look before
//     receiving: [Comm.Probe], [Comm.Iprobe]; take what was seen:
//     [Comm.Mprobe], [Comm.Improbe], [Mrecv], [RecvNew]. What came: [Status],
//     [Elements].
//   - Wait: [Request.Wait], [Request.Test]; for several [Waitall], [Waitany],
//     [Waitsome], [Completed]; without blocking [Testall], [Testany],
//     [Testsome]; how each ended [WaitallStatuses], [TestallStatuses]; only
//     look [Request.GetStatus], [GetStatusAny], [GetStatusAll],
//     [GetStatusSome]. Give up: [Request.Cancel], [Comm.WithContext].
//   - Operations of the program's own: [Process.GrequestStart]; again and again
//     [RequestKind], [Process.NewPersistent].
//   - Again and again: [SendInit], [RecvInit], [Startall], [FreeAll]; parts of a buffer by
//     several goroutines [PsendInit], [PrecvInit], [Persistent.Pready].
//   - Wait for each other: [Comm.Barrier]. One to all: [Bcast], [BcastNew],
//     [BcastOne]; parts to each [Scatter], [Scatterv], [ScatterNew]. All to
//     one: [Gather], [Gatherv], [GatherNew], [GatherOne]. All to all:
//     [Allgather], [Allgatherv], [AllgatherNew], [AllgatherOne], [Alltoall],
//     [Alltoallv], [AlltoallNew], [Bufs.Alltoallw].
//   - Compute a result of all ranks: [Allreduce], [AllreduceOne]; on one rank
//     [Reduce], [ReduceOne]; of the ranks below [Scan], [ScanOne], [Exscan],
//     [ExscanOne]; parts of it on each [ReduceScatter], [ReduceScatterBlock];
//     with [Sum], [Max], [MinLoc] and others, or [OpOf], [NewOp], [Op.Ordered];
//     [ReduceLocal] alone.
//   - Neighbors: [Dims], [DimsCreate], [Comm.CartCreate], [Comm.Cart],
//     [Comm.CartRank], [Comm.CartCoords], [Comm.CartShift], [Comm.CartSub],
//     [Comm.CartMap]; any graph [Comm.DistGraphCreateAdjacent],
//     [Comm.DistGraphCreate], [Comm.DistGraphNeighbors], [Comm.GraphCreate],
//     [Comm.Graph], [Comm.GraphNeighbors], [Comm.GraphMap], [Comm.TopoTest];
//     exchange with them [NeighborAllgather], [NeighborAllgatherv],
//     [NeighborAlltoall], [NeighborAlltoallv].
//   - Other communicators: [Comm.Split], [Comm.SplitType], [Comm.Dup],
//     [Comm.DupWithInfo], [Comm.Create], [Comm.CreateGroup]; of a [Group]
//     [CommFromGroup], [Comm.Group]; between two groups [Comm.IntercommCreate],
//     [IntercommCreateFromGroups], [Comm.IntercommMerge], [Comm.IsInter],
//     [Comm.RemoteSize], [Comm.RemoteGroup]. Compare and end them:
//     [Comm.Compare], [Comm.Free], [Comm.Disconnect].
//   - Other processes: [CommSpawn], [CommSpawnMultiple], [Process.Parent],
//     without a communicator [Spawn], [Ispawn]; what they run is a [Command];
//     [Process.Signal].
//     Groups that meet: [Process.OpenPort], [Process.ClosePort], [Comm.Accept],
//     [Comm.Connect], [Process.PublishName], [Process.UnpublishName],
//     [Process.LookupName], [Process.Join].
//   - Memory that is not one slice: [TypeOf], [TypeVector], [TypeIndexed],
//     [TypeFields], [TypeStruct], [TypeSubarray], [TypeDarray] and others make
//     a [Datatype]; [BufOf], [BufAs], [BufAt], [Comm.Bufs] use it; [Pack],
//     [Unpack], [PackExternal], [UnpackExternal].
//   - Notes on a communicator: [Comm.Info], [Comm.SetInfo], [NewInfo],
//     [NewKeyval], [SetAttr], [GetAttr], [DeleteAttr], [CopyAttr]; on a
//     datatype [TypeWithAttr], [TypeAttr].
//   - Errors and failures: [Error], [Class], [Comm.SetErrorHandler],
//     [Comm.ErrorHandler], [Comm.CallErrorHandler], [ErrorsAreFatal]; who has
//     failed [Comm.Failed], [Comm.FailedLocal], [Comm.AckFailed],
//     [Comm.SyncFailed]; give a communicator up on all ranks [Comm.Revoke],
//     [Comm.Revoked].
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
// errors, at a price: a buffer used by two operations of which one writes, or
// written by the program between the start of an operation and its Wait
// ([ErrInUse]), blocks of one collective that overlap where they are received
// ([ErrArg]), a message in ready mode that found no receive ([ErrNotReady]),
// and ranks that call different collectives, or one with different roots,
// counts, types or operations, also where counts are of two ranks only
// ([ErrMismatch], naming the rank). A process that ends says on standard error
// which messages it has not received, which operations it has not waited for, and
// which communicators and windows it has not freed. docs/running.md has the limits.
//
// # Errors
//
// Errors are returned, never fatal, and name ranks, tags and sizes; see
// [Error]. A process that dies makes the operations that need it fail with
// [ErrProcFailed], one that has finalized with [ErrLeft], and one that lives and
// cannot be reached with [ErrUnreachable]; nothing waits for ever. Calls on a nil communicator, which is
// what Split and its like give to ranks outside, fail with [ErrComm]; those that
// can return no error (Rank, Size) panic and say so.
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
