// SPDX-License-Identifier: Apache-2.0

// Package collectives says what an algorithm of a collective operation is: a pure
// schedule. Its families are in flat, inter and twolevel, written with step and
// stage; verify proves them, sim predicts their times, selection knows them all
// and chooses one.
//
// A schedule says what one rank does, as a sequence of rounds of steps {send,
// recv, reduce, copy} on the symbolic buffers In, Out and Scratch. It contains
// no addresses, no element type and no communication, so three readers share
// it: the verifier, the simulator, and the engine that executes it. An algorithm sees only values that are equal on all ranks, besides the
// rank itself, the displacements of its own buffer and whether it is in place;
// those three change what a rank does locally, never what it sends. Lengths of
// blocks that only the two ends know (Gatherv, Scatterv, Alltoallv, neighbours)
// decide how much is sent; they never decide the destination or the time.
//
// # Rules of a schedule
//
//   - All sends and receives of a round are started together. When they are
//     complete the round's reductions and copies run in order. Then the next
//     round starts. A round may be empty.
//   - Sends may be synchronous: a send can wait for its receive to be started.
//   - Messages between one pair of ranks are matched in schedule order: the
//     k-th send from a to b meets the k-th receive of b from a, and their
//     lengths are equal. Messages of length 0 exist in barriers only.
//   - In one round no receive overlaps a send or another receive. The operands
//     of a reduction, and the ends of a copy, do not overlap.
//   - In is never written, nothing outside the declared lengths is touched, and
//     nothing undefined is read.
//
// Package verify proves these rules, the result, and the declared costs for given
// sizes, roots and counts.
//
// # Buffers
//
// Bcast uses Out on all ranks: the root's data is there at the start. In place
// means that In is the part of Out where its data would land (Allreduce,
// Alltoall, Scan: all of it; Reduce, Gather: at the root; Allgather: the rank's
// own block). Scatter in place at the root is the reverse, Out is the root's
// block of In; so is Reduce_scatter, where Out is the start of In. Exscan leaves
// Out of rank 0 alone. Args.InLen and Args.OutLen give the lengths.
//
// # Intercommunicators and nodes
//
// On an intercommunicator (Args.Remote) steps address the local or the remote
// group, and nobody is in place. Ranks of a root's group that are not the root
// have no rounds. Two-level algorithms use what Args.Nodes says about hosts.
// Both are made of stages, which are flat algorithms run by some of the ranks.
//
// # Forms with local vectors
//
// Vectors that MPI gives to some ranks only are nil elsewhere. In place InCounts
// and InDispls of Alltoallv are not read. Alltoallw and Neighbor_alltoallw,
// whose blocks differ in type, are the v-forms in bytes; no reference crosses
// blocks.
package collectives
