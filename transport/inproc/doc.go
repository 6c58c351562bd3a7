// SPDX-License-Identifier: Apache-2.0

// Package inproc carries messages between ranks that are goroutines of one process, such as a
// thousand ranks in a test binary. It uses only Go memory, sync/atomic and mutexes, so the race
// detector sees all its accesses, also to the users' buffers.
//
// A Hub joins the processes. Two connected processes share a pair of links, one for each
// direction. A link is a chain of byte rings (ring.go). The sender writes them, and the
// receiver reads them in place. The first message makes a link, and it grows up to ringMax.
// Each process has an end (end.go): its view of the other one. To tell the owner of an end
// something (a message, room in a ring, the end of a transfer, a death), a goroutine puts the
// end on the owner's ready stack, and wakes the owner if it is armed. So the cost of Poll
// depends on the number of events and not on the number of peers.
//
// The receiver copies a bulk transfer directly from the sender's buffer, one chunk per Poll.
//
// Limitation: a process can be connected to only while it is open at the Hub.
package inproc
