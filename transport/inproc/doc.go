// SPDX-License-Identifier: Apache-2.0

// Package inproc carries messages between ranks that are goroutines of one
// process: a thousand ranks in a test binary. All of its memory is Go memory
// and all of its synchronisation is sync/atomic and mutexes, so the race
// detector sees through it, up to the users' buffers.
//
// A Hub joins the processes. Two processes that have met share a pair of
// links, one for each direction: a chain of byte rings (ring.go), written by
// the sender, read in place by the receiver, made by the first message and
// grown by need up to ringMax. Each of the two keeps an end (end.go): its view
// of the other. Whoever has something for the owner of an end (a message, room
// in a ring, the end of a transfer, a death) puts the end on the owner's ready
// stack and wakes it if it is armed; so Poll costs what there is to do, not
// what peers there are.
//
// A bulk transfer is copied by the receiver from the sender's buffer, one
// piece a Poll.
//
// Limitations: a process can be connected to only while it is open at the
// Hub.
package inproc
