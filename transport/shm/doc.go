// SPDX-License-Identifier: Apache-2.0

// Package shm carries messages between processes of one host through shared
// memory. Each directed pair has a fast box in the receiver's segment: a ring of
// one-line slots and a data ring. Large buffers are copied straight from heap to
// heap by process_vm_readv and process_vm_writev, by whichever side is inside
// the library. docs/design/002-shm.md draws the layout and gives the reasons;
// docs/design/037-shm-policies.md describes what is measured and chosen at run
// time.
//
// Nothing that another process can write is trusted: positions are computed and
// not read, lengths and ids are checked once in private memory, and a peer that
// breaks the rules loses its connection (ErrProtocol) and nothing else.
//
// # Files
//
//	layout.go                    the layout of segments and fast boxes
//	shm.go, connection.go, directory.go   connections
//	outring.go, inring.go        the two ends of a fast box
//	duplex.go, residency.go, renewal.go   what a sender does with its ring
//	bulk.go, copy.go, push.go, path_choice.go   large transfers
//	poll.go                      Poll, Arm and the work between messages
//	shared_memory.go, arena.go, region_unsafe.go   memory for collectives and windows
//
// # Limitations
//
//   - A process has at most 65,536 connections to it at a time; Connect says so
//     when they are used up.
//   - A slot that EvUp made only receives until Connect has been called for
//     it: the way back lies in the peer's segment. Send answers Full, and
//     accepted transfers wait.
//   - Any process that holds a segment can spoil the traffic of its owner;
//     only the agent hands segments out.
package shm
