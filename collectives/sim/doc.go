// SPDX-License-Identifier: Apache-2.0

// Package sim predicts how long collective operations take on machines that
// are not there: it runs the schedules of package collectives on virtual ranks
// under the LogGP model (Alexandrov, Ionescu, Schauser, Scheiman: LogGP:
// incorporating long messages into the LogP model. SPAA 1995).
//
// # The model
//
// A link has a latency L, a gap g and a time per byte G; a message costs the
// processor the overhead o at either end. A rank has one processor and, for
// each class of links (between nodes, inside a node), one port out and one
// port in.
//
//   - A round's sends are made one after the other, in the order of its steps:
//     each takes the processor for o. The message then waits for the port, which
//     it takes for g + (k-1)G; k is its length in bytes, and an empty message
//     counts as one byte.
//   - Its first byte is at the receiver L later. There it waits for the port in,
//     which it takes for g + (k-1)G; (k-1)G after it was given the port its last
//     byte is in.
//   - A round's messages are received in the order in which their first bytes
//     arrive: when the last byte is in and the processor is free, the message
//     takes the processor for o.
//   - Sends are eager: they wait for no receive. A round is complete when all its
//     messages are received and the last byte of all its sends has left. Then
//     its reductions and copies take Gamma for each byte, and the next
//     round starts.
//   - A message that comes before its round waits in front of the port and
//     disturbs no other.
//
// So an uncontended message of k bytes takes o + (k-1)G + L + o. Links do not
// contend: a node's ranks do not share its port, there are no switches.
//
// Under these rules the outcome depends on the messages between ranks and not on the
// order in which the simulator visits the ranks. So it needs no global clock and no heap of
// events, and the result is always the same.
//
// # Size
//
// A virtual rank is a cursor and some clocks, 80 bytes; a round's steps are
// asked for when the round starts and forgotten. Predict simulates as many
// ranks as are asked for where the work allows it, which all algorithms of a
// logarithmic number of messages a rank do up to a million ranks and more;
// it extrapolates the others from smaller groups and says so.
package sim
