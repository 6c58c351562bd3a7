// SPDX-License-Identifier: Apache-2.0

// Package shm carries messages between processes of one host through shared
// memory: a ring of one-line slots per directed pair inside the receiver's
// segment, and large buffers straight from heap to heap by process_vm_readv
// and process_vm_writev, copied by whichever of the two sides is inside the
// library. docs/design/002-shm.md draws the layout and tells the reasons.
//
// Nothing that another process can write is trusted: positions are computed,
// not read, lengths and ids are checked once into private memory, and a peer
// that breaks the rules loses its connection (ErrProtocol) and nothing else.
//
// # Limitations
//
//   - A process has at most 65,536 connections to it at a time; Connect says so
//     when they are used up.
//   - A slot that EvUp made only receives until Connect has been called for
//     it: the way back lies in the peer's segment. Send answers Full, an
//     accepted transfer waits.
//   - Any process that holds a segment can spoil the traffic of its owner;
//     only the agent gives segments out.
package shm
